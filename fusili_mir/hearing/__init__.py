"""Hearing: networks that ship, whatever the bundle: onsets in sound, notes on staves."""
