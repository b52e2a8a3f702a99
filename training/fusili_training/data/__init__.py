"""Data: shards -> pairs, varied and put together as batches."""
