"""Bring score images and recordings together: which spot on which page sounds at which second."""

__version__ = "0.1.0"
