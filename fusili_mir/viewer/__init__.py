"""Viewer: results -> one page to see, hear and correct them."""
