"""Rendering: a corpus of scores -> shards of training pairs with ground truth. Needs no torch."""
