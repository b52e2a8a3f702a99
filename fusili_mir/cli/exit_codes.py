"""Exit codes beside 0 (done), 1 (bad input, one line says what) and 2 (wrong usage)."""

from __future__ import annotations

__all__ = ["UNRELIABLE_EXIT_CODE"]

UNRELIABLE_EXIT_CODE = 3
"""With `--strict`: the result is written, but the recording does not seem to be of the score."""
