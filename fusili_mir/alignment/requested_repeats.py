"""How repeats are played, as a user asks for it."""

from __future__ import annotations

import numpy as np

from fusili_mir.alignment.unfolding_choice import UnfoldChoice
from fusili_mir.errors import InputError
from fusili_mir.pages.pages import Pages
from fusili_mir.scores.playing_order import parse_playing_order
from fusili_mir.scores.unfolding import Stretches, stretches_of

__all__ = ["requested_repeats"]

_NAMES: dict[str, UnfoldChoice] = {
    "auto": "auto",
    "maximal": "maximal",
    "minimal": "minimal",
    "as_written": "none",
}


def requested_repeats(pages: Pages, repeats: str | Stretches) -> UnfoldChoice | Stretches:
    """Return how repeats are played; raise an error if these pages cannot be played so."""
    if not isinstance(repeats, str):
        return repeats
    if repeats in _NAMES:
        return _NAMES[repeats]
    if not len(pages.measures):
        raise InputError(
            f"{pages.filename}: no measures are known, so repeats cannot name them; leave them out"
        )
    order = np.argsort(pages.measures["measure"], kind="stable")
    return stretches_of(parse_playing_order(repeats, pages.measures["number"][order].tolist()))
