"""Alignment: pages, a recording and an encoder -> when every note, measure and place sounds."""
