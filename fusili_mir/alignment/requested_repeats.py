"""How repeats are played, as a user asks for it."""

from __future__ import annotations

from typing import cast

import numpy as np

from fusili_mir.alignment.unfolding_choice import UnfoldChoice, check_unfold
from fusili_mir.errors import InputError
from fusili_mir.pages.pages import Pages
from fusili_mir.scores.playing_order import PlayingOrder, parse_playing_order
from fusili_mir.scores.unfolding import Stretches, stretches_of

__all__ = ["requested_repeats"]


def requested_repeats(
    pages: Pages, unfold: str | Stretches, jumps: bool, repeats: PlayingOrder | None
) -> UnfoldChoice | Stretches:
    """Return how repeats are played, as requested; raise an error if these pages cannot be played so."""
    if not isinstance(unfold, str):
        if not unfold:
            raise InputError("unfold is empty; expected the measures that are played")
        return unfold
    check_unfold(unfold)
    if repeats is None:
        return cast(UnfoldChoice, unfold)
    if unfold != "auto" or jumps:
        raise InputError(
            "repeats were given, and unfold or jumps, too; expected one of them: repeats say what is played"
        )
    if not len(pages.measures):
        raise InputError(
            f"{pages.filename}: no measures are known, so repeats cannot name them; leave them out"
        )
    order = np.argsort(pages.measures["measure"], kind="stable")
    return stretches_of(parse_playing_order(repeats, pages.measures["number"][order].tolist()))
