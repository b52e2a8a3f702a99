"""Decoding: arrays in, a path and times out; it knows no page, no file and no partitura."""
