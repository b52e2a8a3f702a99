"""Unfolding the repeats of a score without losing track of which note head is played.

partitura names the notes of an unfolded part ``n12-1``, ``n12-2``, and so on. Here each note also keeps the ids
of its printed heads, so these names are never parsed.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import partitura as pt
from partitura.utils.music import update_note_ids_after_unfolding

from fusili_mir.errors import InputError
from fusili_mir.scores.playing_graph import graph_of_order, playing_graph
from fusili_mir.scores.written_repeats import written_repeats

__all__ = [
    "NamedUnfold",
    "SoundingNote",
    "Stretches",
    "Unfold",
    "UnfoldedScore",
    "stretches_of",
    "unfold_score",
    "unfolded_stretches",
]

NamedUnfold: TypeAlias = Literal["none", "maximal", "minimal"]
Stretches: TypeAlias = tuple[tuple[int, int], ...]
"""Stretches of measures in playing order: the first one, counted from 0, and the one after the last."""

Unfold: TypeAlias = NamedUnfold | Stretches
"""A way to play the repeats: a name, or what is played."""


@dataclass(frozen=True)
class SoundingNote:
    """One note as it sounds: a row of partitura's note array.

    Attributes
    ----------
    id : str
        Its id in the (unfolded) score.
    notated_ids : tuple of str
        Ids of its printed heads: several if it is tied.
    """

    id: str
    notated_ids: tuple[str, ...]


@dataclass(frozen=True)
class UnfoldedScore:
    """A score in playing order, with the printed heads of its notes.

    Attributes
    ----------
    score : partitura.score.Score
        The unfolded score; its note ids are unique.
    notes : tuple of SoundingNote
        All notes, part by part.
    """

    score: pt.score.Score
    notes: tuple[SoundingNote, ...]


def unfold_score(score: pt.score.Score, unfold: Unfold = "maximal") -> UnfoldedScore:
    """Write out the repeats of a score.

    Parameters
    ----------
    score : partitura.score.Score
        The score as notated; it is left unchanged. Its note ids must be unique.
    unfold : "maximal", "minimal", "none" or stretches of measures
        "maximal" plays every repeat (but none again after a da capo or dal segno), "minimal" plays none and takes
        the last of alternative endings, and "none" keeps the score as notated.

    Returns
    -------
    UnfoldedScore
    """
    if isinstance(unfold, str) and unfold not in get_args(NamedUnfold):
        raise InputError(f"unfold is {unfold!r}, expected one of {', '.join(get_args(NamedUnfold))}")
    parts = []
    notes: list[SoundingNote] = []
    stretches = () if unfold == "none" else unfolded_stretches(score, unfold)
    for part in score.parts:
        unfolded = _unfold_part(part, stretches) if stretches else part
        notated_id = {id(note): str(note.id) for note in unfolded.notes}
        if unfold != "none":
            update_note_ids_after_unfolding(unfolded)
        notes.extend(
            SoundingNote(str(note.id), tuple(notated_id[id(head)] for head in _tied_heads(note)))
            for note in unfolded.notes_tied
        )
        parts.append(unfolded)
    result = copy.copy(score)
    result.parts = parts
    return UnfoldedScore(result, tuple(notes))


def unfolded_stretches(score: pt.score.Score, unfold: Unfold) -> Stretches:
    """Return the stretches of measures that a way of playing the repeats of a score consists of."""
    if not isinstance(unfold, str):
        return unfold
    structure = written_repeats(score)
    graph = playing_graph(structure)
    if unfold == "none":
        return ((0, structure.n_measures),)
    way = graph.maximal_way() if unfold == "maximal" else graph.minimal_way()
    return stretches_of(graph.measures(way))


def stretches_of(measures: Sequence[int]) -> Stretches:
    """Join measures in playing order to stretches.

    >>> stretches_of([0, 1, 0, 1, 2])
    ((0, 2), (0, 3))
    """
    return tuple((section.first, section.stop) for section in graph_of_order(measures).sections)


def _unfold_part(part: pt.score.Part, stretches: Stretches) -> pt.score.Part:
    """Copy the measures of a part in playing order."""
    measures = sorted(part.iter_all(pt.score.Measure), key=lambda measure: measure.start.t)
    beyond = max(end for _, end in stretches)
    if beyond > len(measures):
        raise InputError(f"measure {beyond} is to be played; part {part.id} has {len(measures)} measures")
    variant = pt.score.ScoreVariant(part)
    for first, end in stretches:
        variant.add_segment(measures[first].start, measures[end - 1].end)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        unfolded = variant.create_variant_part()
    _restore_ties(part, unfolded)
    return unfolded


def _restore_ties(part: pt.score.Part, unfolded: pt.score.Part) -> None:
    """Restore the ties that partitura cuts at the start of a repeated section or an ending."""
    tied_to = {note.id: note.tie_next.id for note in part.notes if note.tie_next is not None}
    starting = {(note.id, note.start.t): note for note in unfolded.notes}
    for note in unfolded.notes:
        following = starting.get((tied_to.get(note.id), note.end.t))
        if note.tie_next is None and following is not None and following.tie_prev is None:
            note.tie_next, following.tie_prev = following, note


def _tied_heads(note: pt.score.Note) -> Iterator[pt.score.Note]:
    """Yield a note and the notes tied to it, in order."""
    seen: set[int] = set()  # a damaged file may have a circle of ties
    while note is not None and id(note) not in seen:
        seen.add(id(note))
        yield note
        note = note.tie_next
