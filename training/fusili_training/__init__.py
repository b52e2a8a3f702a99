"""Rendering a corpus, and training the FuSiLi models and their baselines."""
