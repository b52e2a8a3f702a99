"""Bridges from alignments to other tools of music research."""
