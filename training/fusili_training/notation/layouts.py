"""Layouts of a score: all parts are printed and heard, or only the keyboard parts, or only the others.

Parts that are left out are deleted from the MusicXML tree, so the rest is a complete score.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from lxml import etree

from fusili_mir.errors import InputError
from fusili_mir.scores.score_file import ScoreFile

__all__ = ["LAYOUTS", "LaidOutScore", "Layout", "draw_layouts", "lay_out", "possible_layouts"]

Layout: TypeAlias = Literal["whole", "piano", "voice"]

LAYOUTS: tuple[Layout, ...] = ("whole", "piano", "voice")
"""`whole`: all parts; `piano`: the parts with two or more staves; `voice`: the parts with one staff."""


@dataclass(frozen=True, eq=False)
class LaidOutScore:
    """A score reduced to some of its parts; notes and measures keep the ids of the whole score."""

    score_file: ScoreFile
    part_ids: frozenset[str]


def possible_layouts(score_file: ScoreFile) -> tuple[Layout, ...]:
    """Return the layouts that are possible for a score: all of them if it has parts of both kinds."""
    sizes = {_n_staves(part) > 1 for part in _parts(score_file)}
    return LAYOUTS if sizes == {True, False} else ("whole",)


def draw_layouts(
    score_file: ScoreFile, weights: Mapping[str, float], number: int, rng: np.random.Generator
) -> list[Layout]:
    """Draw layouts of a score, without repetition.

    Parameters
    ----------
    score_file : ScoreFile
    weights : mapping
        Weight of each layout, at least 0; the weights need not sum to 1.
    number : int
        Number of layouts, or fewer if fewer with a weight above 0 are possible.
    rng : np.random.Generator

    Returns
    -------
    list of Layout
        At least one: `whole` if none with a weight above 0 is possible.
    """
    offered = [layout for layout in possible_layouts(score_file) if weights.get(layout, 0) > 0] or ["whole"]
    # The smallest exponential waiting times are a weighted draw without replacement.
    waiting = [rng.exponential() / weights.get(layout, 1.0) for layout in LAYOUTS if layout in offered]
    return [offered[place] for place in np.argsort(waiting)[:number]]


def lay_out(score_file: ScoreFile, layout: Layout) -> LaidOutScore:
    """Reduce a score to the parts of a layout.

    Parameters
    ----------
    score_file : ScoreFile
        The whole score; it is not changed.
    layout : "whole", "piano" or "voice"

    Returns
    -------
    LaidOutScore
    """
    if layout not in possible_layouts(score_file):
        raise InputError(
            f"{score_file.filename}: no layout {layout!r}; expected both parts of one staff and parts of several"
        )
    kept = frozenset(
        str(part.get("id"))
        for part in _parts(score_file)
        if layout == "whole" or (_n_staves(part) > 1) == (layout == "piano")
    )
    if layout == "whole":
        return LaidOutScore(score_file, kept)
    measures = list(zip(score_file.measure_ids(), score_file.measure_numbers(), strict=True))
    root = copy.deepcopy(score_file.root)
    for part in root.findall("part"):
        if part.get("id") not in kept:
            root.remove(part)
    _shorten_part_list(root, kept)
    for measure, (measure_id, number) in zip(root.findall("part[1]/measure"), measures, strict=False):
        measure.set("id", measure_id)
        measure.set("number", number)
    return LaidOutScore(ScoreFile(score_file.filename, score_file.kind, root), kept)


def _parts(score_file: ScoreFile) -> list[etree._Element]:
    return score_file.root.findall("part") if score_file.kind == "musicxml" else []


def _n_staves(part: etree._Element) -> int:
    return max((int(staves.text or 1) for staves in part.iterfind("measure/attributes/staves")), default=1)


def _shorten_part_list(root: etree._Element, kept: frozenset[str]) -> None:
    """Delete the other parts from the part list, and all brackets, which might join them."""
    part_list = root.find("part-list")
    if part_list is None:
        return
    for child in list(part_list):
        if child.tag == "part-group" or (child.tag == "score-part" and child.get("id") not in kept):
            part_list.remove(child)
