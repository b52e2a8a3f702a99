"""What can be said about the pitch of a recording beforehand: a transposition, and the tuning of A."""

from __future__ import annotations

from fusili_mir.audio.spectral_peaks import A4_HZ
from fusili_mir.errors import InputError

__all__ = ["check_pitch", "check_transpose", "check_tuning"]

_MOST_SEMITONES = 24.0
_LOWEST_HZ, _HIGHEST_HZ = 220.0, 880.0


def check_pitch(transpose: str | float, tuning: str | float | None) -> tuple[float | None, float | None]:
    """Check the options of `find_pitch`, and return semitones and Hz, each None if it is to be found.

    >>> check_pitch("auto", None), check_pitch(-2, None), check_pitch("auto", "415")
    ((None, None), (-2.0, 440.0), (None, 415.0))
    """
    semitones = check_transpose(transpose)
    if tuning is None:
        return semitones, None if semitones is None else A4_HZ
    return semitones, check_tuning(tuning)


def check_transpose(transpose: str | float) -> float | None:
    """Return the semitones by which a recording sounds above its score, None if they are to be found."""
    expected = f"auto or {-_MOST_SEMITONES:g} to {_MOST_SEMITONES:g} semitones"
    return _check(transpose, "transpose", (-_MOST_SEMITONES, _MOST_SEMITONES), expected)


def check_tuning(tuning: str | float) -> float | None:
    """Return the frequency of A in a recording in Hz, None if it is to be found."""
    expected = f"auto or {_LOWEST_HZ:g} to {_HIGHEST_HZ:g} Hz for A"
    return _check(tuning, "tuning", (_LOWEST_HZ, _HIGHEST_HZ), expected)


def _check(value: str | float, name: str, limits: tuple[float, float], expected: str) -> float | None:
    if isinstance(value, str) and value == "auto":
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if isinstance(value, bool) or not limits[0] <= number <= limits[1]:
        raise InputError(f"{name} is {value!r}, expected {expected}")
    return number
