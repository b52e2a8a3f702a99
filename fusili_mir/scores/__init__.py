"""Scores: a file -> a score with an id on every note, its repeats and its unfoldings."""
