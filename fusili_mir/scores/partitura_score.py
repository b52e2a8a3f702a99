"""Scores that are partitura objects: from Python, from a MIDI file, from a match file.

The user's objects are left unchanged; `fusili_mir.scores.score_writing` writes them as MusicXML to engrave.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import mido
import partitura as pt
from partitura import score as ps

from fusili_mir.boundary import reason
from fusili_mir.errors import InputError
from fusili_mir.limits import check_limit
from fusili_mir.scores.midi_notation import grid_error
from fusili_mir.scores.note_ids import name_notes
from fusili_mir.scores.part_copies import copy_part
from fusili_mir.scores.part_times import quarters_of, times_of
from fusili_mir.scores.score_limits import check_midi_numbers
from fusili_mir.scores.score_warning import ScoreWarning

__all__ = ["ScoreLike", "as_score", "is_score_like", "load_score_midi"]

ScoreLike: TypeAlias = ps.Score | ps.Part | ps.PartGroup | Sequence[ps.Part | ps.PartGroup]
"""What partitura calls a score: a score, a part, a group of parts, or a list of these."""

_ONE = (ps.Score, ps.Part, ps.PartGroup)
_DRUMS = 9  # MIDI channel, counted from 0
_OFF_GRID_QUARTER = 0.02  # onsets of a score are exact; those of a performance are some 0.05 off


def is_score_like(score: Any) -> bool:
    """Return whether something is a score of partitura's."""
    if isinstance(score, _ONE):
        return True
    return (
        isinstance(score, list | tuple) and bool(score) and all(isinstance(each, _ONE[1:]) for each in score)
    )


def as_score(score: ScoreLike, filename: str) -> ps.Score:
    """Copy a score of partitura's, so that it can be named and completed.

    Parameters
    ----------
    score : Score, Part, PartGroup or a list of parts
    filename : str
        Name of the score, for messages.

    Returns
    -------
    partitura.score.Score
        A copy with unique part ids, with measures, and with the ids of `fusili_mir.scores.note_ids`.
    """
    parts = score.parts if isinstance(score, ps.Score) else list(ps.iter_parts(score))
    if not any(part.notes for part in parts):
        raise InputError(f"{filename}: its {len(parts)} parts have no notes; expected at least one")
    copies = [copy_part(part, part_id) for part, part_id in zip(parts, _part_ids(parts), strict=True)]
    copied = ps.Score(copies)
    for name in ("work_title", "movement_title", "title", "composer"):
        setattr(copied, name, getattr(score, name, None))
    name_notes(copied, {}, filename)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in copies:
            _measure(part)
    share_measures(copied)
    return copied


def load_score_midi(filename: str) -> ps.Score:
    """Load a MIDI file as a score, without drums.

    Warns
    -----
    ScoreWarning
        If tracks of drums are left out, or if the onsets look like those of a performance.
    """
    check_limit("midi_bytes", Path(filename).stat().st_size, filename)
    try:
        midi = mido.MidiFile(filename)
        check_midi_numbers(midi, filename)
        score: ps.Score = pt.load_score_midi(filename, assign_note_ids=True, quiet=True)
        drums = _drum_tracks(midi)
    except InputError:
        raise
    except Exception as error:  # partitura and mido raise whatever their parsing trips over
        raise InputError(
            f"{filename}: partitura cannot read it as a score ({reason(error)}); expected a MIDI "
            "file with notes"
        ) from error
    left_out = [part for number, part in enumerate(score.parts) if number in drums]
    if left_out:
        warnings.warn(
            f"{filename}: {len(left_out)} of {len(score.parts)} tracks are drums, which have no pitch; they are "
            "left out",
            ScoreWarning,
            stacklevel=2,
        )
        score.parts = score.part_structure = [part for part in score.parts if part not in left_out]
    if not score.parts:
        raise InputError(f"{filename}: no track has notes with a pitch; expected at least one")
    if grid_error(score) > _OFF_GRID_QUARTER:
        warnings.warn(
            f"{filename}: its notes are not on the beats of a score, so it looks like a performance; the "
            "engraved rhythm is rounded",
            ScoreWarning,
            stacklevel=2,
        )
    share_measures(score)
    return score


def share_measures(score: ps.Score) -> None:
    """Let all parts have as many measures as the longest, in place."""
    longest = max(score.parts, key=lambda part: len(list(part.iter_all(ps.Measure))))
    measures = list(longest.iter_all(ps.Measure))
    quarters = quarters_of(longest)
    for part in score.parts:
        time = times_of(part)
        for measure in measures[len(list(part.iter_all(ps.Measure))) :]:
            start, end = (time(float(quarters(point.t))) for point in (measure.start, measure.end))
            part.add(ps.Measure(measure.number, measure.name), start, end)


def _measure(part: ps.Part) -> None:
    """Add measures to a part that has none, and tie its notes across them."""
    if next(part.iter_all(ps.Measure), None) is not None or not part.notes:
        return
    if next(part.iter_all(ps.TimeSignature), None) is None:
        part.add(ps.TimeSignature(4, 4), part.first_point.t)
    ps.add_measures(part)
    ps.tie_notes(part)


def _part_ids(parts: Sequence[ps.Part]) -> list[str]:
    """Return the ids of parts; those that are missing or doubled are numbered."""
    ids: list[str] = []
    for number, part in enumerate(parts, start=1):
        own = str(part.id) if part.id else f"P{number}"
        ids.append(own if own not in ids else f"{own}_{number}")
    return ids


def _drum_tracks(midi: mido.MidiFile) -> set[int]:
    """Return which parts of a MIDI file are drums: partitura makes a part of each track with notes."""
    channels = [
        {message.channel for message in track if message.type == "note_on" and message.velocity}
        for track in midi.tracks
    ]
    with_notes = [own for own in channels if own]
    return {number for number, own in enumerate(with_notes) if own == {_DRUMS}}
