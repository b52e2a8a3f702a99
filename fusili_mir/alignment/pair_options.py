"""How a recording is to be aligned with a score: what a user may say of this pair, and no other."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

__all__ = ["KEPT_OPTIONS", "PairOptions"]


@dataclass(frozen=True, kw_only=True)
class PairOptions:
    """Options of one alignment; see `fusili_mir.align_recording`.

    Attributes
    ----------
    unfold, repeats : str
        How repeats are played.
    jumps : bool
        Whether cuts are expected.
    dpi : float
        Resolution at which PDF pages are drawn.
    page_range : str, optional
        Pages to use.
    start_sec, end_sec : float, optional
        Stretch of the recording.
    transpose, tuning
        Pitch of the recording.
    anchors : Path, optional
        A table of seconds that are known.
    """

    unfold: str = "auto"
    jumps: bool = False
    repeats: str | None = None
    dpi: float = 200.0
    page_range: str | None = None
    start_sec: float | None = None
    end_sec: float | None = None
    transpose: str | float = "auto"
    tuning: str | float | None = None
    anchors: Path | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what JSON can represent; anchors are in a table of their own."""
        return {name: getattr(self, name) for name in KEPT_OPTIONS}


KEPT_OPTIONS = tuple(field.name for field in fields(PairOptions) if field.name != "anchors")
"""Names of the options that a result keeps, to be decoded again."""
