"""Which parts of a score are printed and heard: all of them, the keyboard parts, or the others.

Parts that are left out are deleted from the MusicXML tree, so that what is engraved is a score of its own.
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
"""`whole` is the score as it is, `piano` its parts of two staves or more, `voice` its parts of one staff."""


@dataclass(frozen=True, eq=False)
class LaidOutScore:
    """A score reduced to some of its parts; ids of notes and measures are those of the whole score."""

    score_file: ScoreFile
    part_ids: frozenset[str]


def possible_layouts(score_file: ScoreFile) -> tuple[Layout, ...]:
    """Return the layouts that a score offers: more than `whole` where it has parts of both kinds."""
    sizes = {_n_staves(part) > 1 for part in _parts(score_file)}
    return LAYOUTS if sizes == {True, False} else ("whole",)


def draw_layouts(
    score_file: ScoreFile, weights: Mapping[str, float], number: int, rng: np.random.Generator
) -> list[Layout]:
    """Draw different layouts of a score.

    Parameters
    ----------
    score_file : ScoreFile
    weights : mapping
        How likely each layout is, at least 0; they need not sum to 1.
    number : int
        How many; fewer come when the score does not offer as many with a weight.
    rng : np.random.Generator

    Returns
    -------
    list of Layout
        At least one: a score that offers none with a weight is taken whole.
    """
    offered = [layout for layout in possible_layouts(score_file) if weights.get(layout, 0) > 0] or ["whole"]
    # The smallest of exponential waiting times: a weighted draw without replacement.
    waiting = [rng.exponential() / weights.get(layout, 1.0) for layout in LAYOUTS if layout in offered]
    return [offered[place] for place in np.argsort(waiting)[:number]]


def lay_out(score_file: ScoreFile, layout: Layout) -> LaidOutScore:
    """Reduce a score to the parts of a layout.

    Parameters
    ----------
    score_file : ScoreFile
        It is not changed.
    layout : "whole", "piano" or "voice"

    Returns
    -------
    LaidOutScore
    """
    if layout not in possible_layouts(score_file):
        raise InputError(f"{score_file.filename}: no layout {layout!r}; expected parts of both kinds")
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
    """Delete the other parts from the part list, and all brackets, which may have joined them."""
    part_list = root.find("part-list")
    if part_list is None:
        return
    for child in list(part_list):
        if child.tag == "part-group" or (child.tag == "score-part" and child.get("id") not in kept):
            part_list.remove(child)
