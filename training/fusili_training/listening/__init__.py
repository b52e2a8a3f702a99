"""Listening: a network that hears which notes begin when, and the music that it learns from."""
