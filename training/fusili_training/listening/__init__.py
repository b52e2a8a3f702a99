"""Listening: a network that hears which pitches are struck, and the music that it learns from."""
