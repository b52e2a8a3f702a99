"""Rendering: a corpus of scores -> shards of training pairs with their ground truth; without torch."""
