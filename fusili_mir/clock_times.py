"""Times as people write them: seconds, minutes and seconds, or hours, minutes and seconds."""

from __future__ import annotations

import re

from fusili_mir.errors import InputError

__all__ = ["parse_time"]

_CLOCK = re.compile(r"(?:(\d{1,9}):)?(\d{1,9}):([0-5]?\d(?:\.\d*)?)")


def parse_time(text: str | float) -> float:
    """Read a time in seconds, written as 75, 75.5, 1:15.5 or 0:01:15.5.

    >>> [parse_time(text) for text in ("75.5", "1:15.5", "1:00:00")]
    [75.5, 75.5, 3600.0]
    """
    try:
        return float(text)
    except ValueError:
        match = _CLOCK.fullmatch(str(text).strip())
    if match is None or (match[1] is not None and int(match[2]) > 59):
        raise InputError(f"{text!r} is not a time; expected seconds or m:ss, such as 75.5 or 1:15.5")
    return 3600.0 * int(match[1] or 0) + 60.0 * int(match[2]) + float(match[3])
