"""Unfolding the repeats of a score without losing track of which note head is played.

partitura names the notes of an unfolded part ``n12-1``, ``n12-2``, and so on. Here each note also keeps the ids
of its printed heads, so these names are never parsed.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import partitura as pt
from partitura.utils.music import update_note_ids_after_unfolding

from fusili_mir.errors import InputError

__all__ = ["SoundingNote", "Unfold", "UnfoldedScore", "count_unfoldings", "unfold_score"]

NamedUnfold: TypeAlias = Literal["none", "maximal", "minimal"]
Unfold: TypeAlias = NamedUnfold | int
"""A way to play the repeats: a name, or a number from 0 to `count_unfoldings` - 1."""

_MAX_REPEATS = 3  # the number of unfoldings doubles with each repeat


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
    unfold : "maximal", "minimal", "none" or int
        "maximal" plays every repeat (but none again after a da capo or dal segno), "minimal" plays none and takes
        the last of alternative endings, and "none" keeps the score as notated. A number from 0 to
        `count_unfoldings` - 1 takes some repeats and skips others.

    Returns
    -------
    UnfoldedScore
    """
    if not isinstance(unfold, int) and unfold not in get_args(NamedUnfold):
        raise InputError(f"unfold is {unfold!r}, expected one of {', '.join(get_args(NamedUnfold))}")
    parts = []
    notes: list[SoundingNote] = []
    for part in score.parts:
        unfolded = _unfold_part(part, unfold)
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


def count_unfoldings(score: pt.score.Score) -> int:
    """Return the number of ways to take or skip the repeats of a score.

    It is 0 for a score with more than a few repeats, and for one whose parts disagree about them.
    """
    n_repeats = max((len(list(part.iter_all(pt.score.Repeat))) for part in score.parts), default=0)
    if n_repeats > _MAX_REPEATS:
        return 0
    counts = {len(_paths(part)) for part in score.parts}
    return counts.pop() if len(counts) == 1 else 0


def _paths(part: pt.score.Part) -> list[pt.score.Path]:
    """List partitura's paths through the sections of a part, without repeats after a da capo."""
    with _contradictions_named(part):
        paths: list[pt.score.Path] = pt.score.get_paths(part, ignore_leap_info=False)
        return paths


@contextmanager
def _contradictions_named(part: pt.score.Part) -> Iterator[None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Exception as error:  # contradictory repeat signs make partitura raise errors of any kind
        raise InputError(
            f"part {part.id}: its repeats and endings contradict each other ({type(error).__name__}: {error}); "
            "correct them, or use the score as notated (unfold none)"
        ) from error


def _unfold_part(part: pt.score.Part, unfold: Unfold) -> pt.score.Part:
    if unfold == "none":
        return part
    with _contradictions_named(part):
        if isinstance(unfold, int):
            unfolded = pt.score.new_part_from_path(_paths(part)[unfold], part, update_ids=False)
        elif unfold == "maximal":
            unfolded = pt.score.unfold_part_maximal(part, update_ids=False, ignore_leaps=False)
        else:
            unfolded = pt.score.unfold_part_minimal(part)
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
