"""Bridges from alignments to other tools of the field."""
