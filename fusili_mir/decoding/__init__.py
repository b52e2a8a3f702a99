"""Decoding: arrays -> a path and times; it knows nothing of pages, files or partitura."""
