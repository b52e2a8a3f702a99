"""Sound: the notes of a score -> an expressive performance -> audio."""
