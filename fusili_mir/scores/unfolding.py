"""Unfolding the repeats of a score without losing track of which note head is played.

partitura names the notes of an unfolded part ``n12-1``, ``n12-2``, and so on; here each keeps, beside that name,
the id of the head that is printed. Names are never taken apart.
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
"""A way to play the repeats: by name, or one of those that `count_unfoldings` counts, from 0."""

_MAX_REPEATS = 3  # the ways to take or leave repeats double with each


@dataclass(frozen=True)
class SoundingNote:
    """One note as it sounds: a row of partitura's note array.

    Attributes
    ----------
    id : str
        Its id in the (unfolded) score.
    notated_ids : tuple of str
        The heads that print it: several when it is tied.
    """

    id: str
    notated_ids: tuple[str, ...]


@dataclass(frozen=True)
class UnfoldedScore:
    """A score in the order in which it is played, and what is printed of it.

    Attributes
    ----------
    score : partitura.score.Score
        Its note ids are unique.
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
        As notated; it is left unchanged. Its note ids must be unique.
    unfold : "maximal", "minimal", "none" or int
        Play every repeat (but none again after a da capo or dal segno), play none and take the last of
        alternative endings, or keep the score as it is notated; or take some repeats and leave others, in one
        of the ways that `count_unfoldings` counts.

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
    """Return in how many ways the repeats of a score can be taken or left.

    The answer is 0 for a score with more than a few repeats, and for one whose parts disagree about them.
    """
    n_repeats = max((len(list(part.iter_all(pt.score.Repeat))) for part in score.parts), default=0)
    if n_repeats > _MAX_REPEATS:
        return 0
    counts = {len(_paths(part)) for part in score.parts}
    return counts.pop() if len(counts) == 1 else 0


def _paths(part: pt.score.Part) -> list[pt.score.Path]:
    """List partitura's ways through the sections of a part; sections after a da capo are not repeated."""
    with _contradictions_named(part):
        paths: list[pt.score.Path] = pt.score.get_paths(part, ignore_leap_info=False)
        return paths


@contextmanager
def _contradictions_named(part: pt.score.Part) -> Iterator[None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Exception as error:  # partitura raises whatever contradicting repeat signs lead to
        raise InputError(
            f"part {part.id}: its repeats and endings contradict each other ({type(error).__name__}: {error}); "
            "mend them, or take the score as notated (unfold none)"
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
    """Tie again what partitura cuts where a repeated section or an ending begins."""
    tied_to = {note.id: note.tie_next.id for note in part.notes if note.tie_next is not None}
    starting = {(note.id, note.start.t): note for note in unfolded.notes}
    for note in unfolded.notes:
        following = starting.get((tied_to.get(note.id), note.end.t))
        if note.tie_next is None and following is not None and following.tie_prev is None:
            note.tie_next, following.tie_prev = following, note


def _tied_heads(note: pt.score.Note) -> Iterator[pt.score.Note]:
    """Yield a note and those that it is tied to, in order."""
    seen: set[int] = set()  # a damaged file may tie in a circle
    while note is not None and id(note) not in seen:
        seen.add(id(note))
        yield note
        note = note.tie_next
