"""Notation: reading and changing the written notes of a score (spelling, mutations, layouts)."""
