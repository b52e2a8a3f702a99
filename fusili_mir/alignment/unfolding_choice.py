"""Choosing how the repeats of a score were played: the way that explains the recording best."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import numpy as np
import partitura as pt

from fusili_mir.alignment.played import PlayedScore, play_pages
from fusili_mir.alignment.playing_course import PlayingCourse, playing_course
from fusili_mir.arrays import Float32, Int64
from fusili_mir.decoding.rough_search import DecodingOptions
from fusili_mir.decoding.section_lattice import SectionGraph
from fusili_mir.decoding.section_search import search_sections
from fusili_mir.decoding.similarity import CourseSimilarity
from fusili_mir.errors import InputError
from fusili_mir.model.encoded import EncodedAudio, EncodedScore
from fusili_mir.pages.pages import Pages
from fusili_mir.scores.playing_graph import PlayingGraph, playing_graph
from fusili_mir.scores.unfolding import NamedUnfold, Stretches, Unfold, unfolded_stretches
from fusili_mir.scores.written_repeats import written_repeats
from fusili_mir.short_repr import short_repr

__all__ = [
    "AS_WRITTEN_COST",
    "CUT_COST",
    "JUMP_COST",
    "RETURN_COST",
    "UnfoldChoice",
    "Unfolding",
    "check_unfold",
    "choose_unfolding",
    "cut_costs",
    "section_graph",
]

UnfoldChoice: TypeAlias = Literal["auto"] | NamedUnfold

# Nats, as many as five to ten seconds of music that fits are worth. Among 27 human performances without cuts, 400
# find two, 1000 none. In a quartet of 36 minutes 1000 find four, so with a symbolic score cuts are not looked for
# unless they are expected.
CUT_COST = 1000.0
# After the last measure the music ends, or goes back to where a da capo or dal segno leads, which is not read on
# images. Of eight songs with a da capo, 700 find eight and 1000 five; 500 find one in a sonata that has none.
RETURN_COST = 700.0
JUMP_COST = 150.0  # the same where the user expects it: set by hand, about a second of music
AS_WRITTEN_COST = 60.0  # to go on as written where a sign leads elsewhere: more than rushing through it gains
_SAME_BEAT = 1e-6


@short_repr
@dataclass(frozen=True)
class Unfolding:
    """One of the ways in which a score may be played, compared with a recording.

    Attributes
    ----------
    played : PlayedScore
    on_course : PlayingCourse
    similarity : CourseSimilarity
        Similarity of its course and the recording.
    probability : float
        Probability of this way among all ways to play the repeats; 1 if it was not chosen.
    """

    played: PlayedScore
    on_course: PlayingCourse
    similarity: CourseSimilarity
    probability: float = 1.0


def check_unfold(unfold: str) -> None:
    """Raise an error unless it is one of the ways to unfold a score."""
    names = ("auto", *get_args(NamedUnfold))
    if unfold not in names:
        raise InputError(f"unfold is {unfold!r}, expected one of {', '.join(names)}")


def choose_unfolding(
    pages: Pages,
    score: EncodedScore,
    audio: EncodedAudio,
    scale: float,
    unfold: UnfoldChoice | Stretches = "auto",
    options: DecodingOptions | None = None,
    jumps: bool = False,
) -> Unfolding:
    """Write out the repeats of a score as they were played.

    Parameters
    ----------
    pages : Pages
        Pages from `render_pages` with ``unfold="none"``.
    score, audio : EncodedScore, EncodedAudio
        Both encoded with the same bundle.
    scale : float
        The bundle's scale of cosines.
    unfold : "auto", "maximal", "minimal", "none" or stretches of measures
        With "auto", all ways of taking repeats, da capos and the like are compared in one search. A score without
        repeats, played as it is, stays as notated, and so do its ids.
    options : DecodingOptions, optional
    jumps : bool
        Whether the music is expected to go on at measures that no sign leads to.

    Returns
    -------
    Unfolding
    """
    if isinstance(unfold, str):
        check_unfold(unfold)
    if unfold != "auto":
        return _unfolding(play_pages(pages, unfold), score, audio)
    notated = _unfolding(play_pages(pages, "none"), score, audio)
    assert pages.score is not None  # noqa: S101
    structure = written_repeats(pages.score)
    if not structure.has_repeats and not jumps:
        return notated
    stops = _measure_stops(notated, structure.n_measures)
    costs = cut_costs(structure.n_measures, jumps) if jumps else None
    graph = section_graph(playing_graph(structure), stops, costs)
    heard = notated.similarity.among(audio.sound.sounding)
    found = search_sections(heard, graph, audio.grid.frame_sec, scale, options)
    chosen = _named(found.measures, pages.score)
    if chosen == "none" or (chosen == "maximal" and not structure.has_repeats):
        return replace(notated, probability=found.probability)
    return replace(_unfolding(play_pages(pages, chosen), score, audio), probability=found.probability)


def cut_costs(n_measures: int, jumps: bool) -> Float32:
    """Return what it costs to go on, after each measure, at any other one [shape=(n_measures,)].

    >>> cut_costs(3, jumps=False).tolist()
    [1000.0, 1000.0, 700.0]
    """
    costs = np.full(n_measures, JUMP_COST if jumps else CUT_COST, np.float32)
    costs[-1:] = min(float(costs[-1]), RETURN_COST)
    return costs


def section_graph(
    graph: PlayingGraph,
    measures: Int64,
    cut_cost: Float32 | None = None,
    as_written_cost: float = AS_WRITTEN_COST,
) -> SectionGraph:
    """Lay the ways to play a score over the stops of its course as written.

    Parameters
    ----------
    graph : PlayingGraph
    measures : np.ndarray of int [shape=(n_measures + 1,)]
        First stop of each measure, and the number of stops; see `SectionGraph`.
    cut_cost : np.ndarray of float [shape=(n_measures,)], optional
        What it costs to go on, after each measure, at any one that the signs do not lead to, in nats; None if
        that is impossible.
    as_written_cost : float
        What it costs to go straight on where the signs lead elsewhere.

    Returns
    -------
    SectionGraph
        A path may also go straight on as written where the signs lead elsewhere, as players of files do.
    """
    cost_of = {(edge.source, edge.target): -np.log(edge.probability) for edge in graph.edges}
    for source, section in enumerate(graph.sections):
        following = (
            n for n in range(source + 1, len(graph.sections)) if graph.sections[n].first == section.stop
        )
        target = next(following, None)
        if target is not None:
            cost_of.setdefault((source, target), as_written_cost)
    return SectionGraph(
        first=np.array([section.first for section in graph.sections]),
        end=np.array([section.stop for section in graph.sections]),
        source=np.array([source for source, _ in cost_of], dtype=np.int64),
        target=np.array([target for _, target in cost_of], dtype=np.int64),
        cost=np.array(list(cost_of.values()), dtype=np.float32),
        may_end=np.array(graph.ends) > 0,
        measures=measures,
        cut_cost=cut_cost,
    )


def _measure_stops(notated: Unfolding, n_measures: int) -> Int64:
    """Return the first stop of each measure of a score as notated, and the number of stops."""
    measures, course = notated.played.measures, notated.on_course.course
    start_beat = np.full(n_measures, np.nan)
    start_beat[measures["measure"]] = measures["start_beat"]
    known = np.flatnonzero(np.isfinite(start_beat))  # a measure without a box is no place to go on
    following = known[np.minimum(np.searchsorted(known, np.arange(n_measures)), len(known) - 1)]
    stops = np.searchsorted(course.start[:-1], start_beat[following] - _SAME_BEAT)
    return np.append(np.maximum.accumulate(stops), len(course))


def _named(stretches: Stretches, score: pt.score.Score) -> Unfold:
    """Return the name of what is played, if it has one."""
    names: tuple[NamedUnfold, ...] = ("maximal", "minimal", "none")
    return next((name for name in names if unfolded_stretches(score, name) == stretches), stretches)


def _unfolding(played: PlayedScore, score: EncodedScore, audio: EncodedAudio) -> Unfolding:
    on_course = playing_course(played, score.axis)
    similarity = CourseSimilarity(score.embeddings, score.mask, audio.frames, on_course.course)
    return Unfolding(played, on_course, similarity)
