"""Rendering a corpus, training the FuSiLi models and their baselines."""
