"""Data: shards -> pairs, augmented and collated into batches."""
