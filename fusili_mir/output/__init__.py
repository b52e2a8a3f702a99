"""Output: results -> files, tables and pictures."""
