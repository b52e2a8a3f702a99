"""A score and a recording that were given in each other's place."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fusili_mir.boundary import printable
from fusili_mir.brought_files import is_picture, is_sound
from fusili_mir.errors import InputError
from fusili_mir.pages.page_ranges import split_page_range
from fusili_mir.scores.score_formats import score_format

__all__ = ["refuse_swapped"]


def refuse_swapped(
    score: Any, recording: Any, way_out: str = "the score comes first, then the recording"
) -> None:
    """Raise an `InputError` if the score is a recording and the recording is a score.

    Parameters
    ----------
    score, recording
        As a user gave them: only files are looked at.
    way_out : str
        How they are to be given, for the message.
    """
    files = list(score) if isinstance(score, list | tuple) else [score]
    if len(files) != 1 or not is_sound(files[0]) or not isinstance(recording, str | os.PathLike):
        return
    notation, pages = score_format(recording), split_page_range(Path(recording))[0]
    is_score = notation is not None or is_picture(pages) or pages.is_dir()
    if not is_score or (notation == "midi" and score_format(files[0]) == "midi"):  # which may be either
        return
    found = f"{printable(files[0])} is a recording, and {printable(recording)} a score"
    raise InputError(f"score and recording seem to be swapped: {found}; {way_out}")
