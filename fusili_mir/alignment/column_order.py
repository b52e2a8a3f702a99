"""The order in which the columns of page images are played: repeats as they were read, taken or not.

All ways of taking the repeats are compared with the recording in one search, as for symbolic scores
(`fusili_mir.alignment.unfolding_choice`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fusili_mir.alignment.unfolding_choice import cut_costs, section_graph
from fusili_mir.arrays import Bool, Float64, Int64
from fusili_mir.decoding.course import reading_course
from fusili_mir.decoding.rough_search import DecodingOptions
from fusili_mir.decoding.section_search import search_sections
from fusili_mir.decoding.similarity import CourseSimilarity
from fusili_mir.model.encoded import EncodedAudio, EncodedScore
from fusili_mir.pages.pages import Pages
from fusili_mir.pages.score_axis import ScoreAxis
from fusili_mir.scores.playing_graph import PlayingGraph, playing_graph
from fusili_mir.scores.unfolding import Stretches, stretches_of
from fusili_mir.short_repr import short_repr

__all__ = [
    "ColumnOrder",
    "bar_line_columns",
    "choose_columns",
    "column_lengths",
    "columns_of_stretches",
    "measure_columns",
    "unwritten_steps",
]

_MOST_UNLIKE = 2.5  # widths of measures that are taken to last alike
_LINE_SPACES, _SIGN_SPACES = 0.4, 0.9  # half widths of a bar line, and of one with dots or a second line


@short_repr
@dataclass(frozen=True)
class ColumnOrder:
    """Columns in playing order.

    Attributes
    ----------
    columns : np.ndarray of int [shape=(P,)]
    stretches : tuple of (int, int)
        The measures that they belong to; empty if no measures are known.
    probability : float
        Probability of this way among all ways to play the repeats; 1 if it was not chosen.
    """

    columns: Int64
    stretches: Stretches = ()
    probability: float = 1.0


def choose_columns(
    pages: Pages,
    score: EncodedScore,
    audio: EncodedAudio,
    scale: float,
    unfold: str | Stretches = "auto",
    jumps: bool = False,
    options: DecodingOptions | None = None,
) -> ColumnOrder:
    """Find the order in which page images are played.

    Parameters
    ----------
    pages : Pages
        Pages from `load_pages`.
    score, audio : EncodedScore, EncodedAudio
        Both encoded with the same bundle.
    scale : float
        The bundle's scale of cosines.
    unfold : "auto", "maximal", "minimal", "none" or stretches of measures
        With "auto", as fits the recording best.
    jumps : bool
        Whether the music is expected to go on at measures that no sign leads to.
    options : DecodingOptions, optional

    Returns
    -------
    ColumnOrder
    """
    as_written = np.arange(len(score.axis))
    if pages.repeats is None or not len(pages.measures):
        return ColumnOrder(as_written)
    graph = playing_graph(pages.repeats)
    starts = measure_columns(pages, score.axis)
    whole: Stretches = ((0, len(pages.measures)),)
    if unfold == "auto":
        similarity = CourseSimilarity(score.embeddings, score.mask, audio.frames, reading_course(as_written))
        sections = section_graph(graph, starts, cut_costs(len(starts) - 1, jumps))
        heard = similarity.among(audio.sound.sounding)
        found = search_sections(heard, sections, audio.grid.frame_sec, scale, options)
        return columns_of_stretches(found.measures, starts, found.probability)
    if unfold == "none":
        return columns_of_stretches(whole, starts)
    if isinstance(unfold, str):
        way = graph.maximal_way() if unfold == "maximal" else graph.minimal_way()
        return columns_of_stretches(stretches_of(graph.measures(way)), starts)
    return columns_of_stretches(unfold, starts)


def columns_of_stretches(stretches: Stretches, starts: Int64, probability: float = 1.0) -> ColumnOrder:
    """Return the columns of stretches of measures.

    >>> columns_of_stretches(((0, 1), (0, 2)), np.array([0, 2, 3])).columns.tolist()
    [0, 1, 0, 1, 2]
    """
    columns = [np.arange(starts[first], starts[end]) for first, end in stretches]
    return ColumnOrder(np.concatenate(columns).astype(np.int64), stretches, probability)


def measure_columns(pages: Pages, axis: ScoreAxis) -> Int64:
    """Return the first column of each measure, and the number of columns [shape=(n_measures + 1,)].

    What is left of the first bar line of a system belongs to its first measure.
    """
    measures = pages.measures
    starts = axis.index_in_system(measures["system"], measures["x0"])
    begins = np.append(True, np.diff(measures["system"]) != 0)
    leftmost = np.searchsorted(axis.columns["system"], measures["system"])
    starts = np.where(begins, leftmost, starts)
    starts[0] = 0
    return np.append(np.maximum.accumulate(starts), len(axis)).astype(np.int64)


def bar_line_columns(pages: Pages, axis: ScoreAxis) -> Bool:
    """Mark the columns on bar lines, where nothing begins to sound [shape=(C,)]."""
    marked = np.zeros(len(axis), dtype=bool)
    middle = (axis.columns["x0"].astype(np.float64) + axis.columns["x1"]) / 2
    space_of = dict(zip(pages.systems["system"].tolist(), pages.systems["space_px"].tolist(), strict=True))
    for line in pages.bar_lines:
        reach = _LINE_SPACES if line["kind"] in ("single", "dotted") else _SIGN_SPACES
        near = np.abs(middle - float(line["x"])) <= reach * space_of[int(line["system"])]
        marked |= near & (axis.columns["system"] == line["system"])
    return marked


def column_lengths(pages: Pages, axis: ScoreAxis) -> Float64:
    """Return how long the music is expected to stay on each column, 1 on average [shape=(C,)].

    Measures last about as long as each other, and note heads are spaced by what lies between them: so columns of
    wide measures are passed faster. Half way between equal measures and equal columns fits recordings best.
    """
    lengths = np.ones(len(axis))
    if not len(pages.measures):
        return lengths
    starts = measure_columns(pages, axis)
    widths = np.diff(starts)
    usual = float(np.median(widths[widths > 0]))
    for first, end in pairwise(starts.tolist()):
        if end > first:
            lengths[first:end] = np.sqrt(np.clip(usual / (end - first), 1 / _MOST_UNLIKE, _MOST_UNLIKE))
    return lengths


def unwritten_steps(stretches: Stretches, graph: PlayingGraph) -> list[tuple[int, int]]:
    """Return the steps of a way of playing that no sign leads to: measures that they leave and go on with."""
    written = {(graph.sections[edge.source].stop, graph.sections[edge.target].first) for edge in graph.edges}
    steps = [(before[1] - 1, after[0]) for before, after in pairwise(stretches)]
    return [(last, first) for last, first in steps if (last + 1, first) not in written]
