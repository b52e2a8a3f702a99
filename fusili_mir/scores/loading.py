"""Loading any symbolic score: what is engraved, what sounds when, and which note is which.

| brought | engraved | score time and ids |
| --- | --- | --- |
| MusicXML, MXL | a repaired copy of it | `partitura.load_musicxml` |
| MEI | its first readings | its layers; ids of the file |
| Humdrum kern, ABC | MEI that Verovio converts it to | that MEI; for kern the ids of `partitura.load_kern` |
| MuseScore, and what it imports | MusicXML that an installed MuseScore converts it to | as for MusicXML |
| MIDI, match file, partitura object | what `partitura.save_musicxml` writes | partitura's score |
"""

from __future__ import annotations

import contextlib
import io
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import partitura as pt
from partitura.io.importmatch import load_matchfile

from fusili_mir.boundary import printable, reading, reason
from fusili_mir.errors import InputError
from fusili_mir.scores.humdrum import humdrum_note_ids, humdrum_to_mei
from fusili_mir.scores.measure_lengths import share_measure_lengths
from fusili_mir.scores.mei_score import read_mei_score
from fusili_mir.scores.musescore import convert_with_musescore
from fusili_mir.scores.note_ids import name_notes
from fusili_mir.scores.partitura_score import (
    ScoreLike,
    as_score,
    is_score_like,
    load_score_midi,
)
from fusili_mir.scores.printed_parts import left_out_parts, part_name, tablature_staves
from fusili_mir.scores.repeat_signs import share_repeat_signs
from fusili_mir.scores.score_file import ScoreFile, parse_score, read_score_file
from fusili_mir.scores.score_formats import score_format
from fusili_mir.scores.score_limits import check_abc_numbers, check_kern_numbers, check_match_numbers
from fusili_mir.scores.score_warning import ScoreWarning
from fusili_mir.scores.score_writing import write_score_file
from fusili_mir.scores.untrusted_xml import read_bytes
from fusili_mir.scores.verovio_process import convert_to_mei

__all__ = ["LoadedScore", "ScoreSource", "load_score", "read_any_score_file"]

ScoreSource: TypeAlias = str | os.PathLike[str] | ScoreFile | ScoreLike
"""A symbolic score: a file, a tree, or a score of partitura's."""

_COMPLETE = "is it a complete score?"


@dataclass(frozen=True, eq=False)
class LoadedScore:
    """A symbolic score, ready to be engraved and played.

    Attributes
    ----------
    score_file : ScoreFile
        What is engraved, with ids of its own.
    score : partitura.score.Score
        The score as notated. Every note has a unique id; see `fusili_mir.scores.note_ids`.
    note_ids : mapping from str to str
        Id of a note in `score_file` -> its id in `score`.
    is_rounded : bool
        Whether the engraved rhythm is rounded, as that of a MIDI file may be.
    """

    score_file: ScoreFile
    score: pt.score.Score
    note_ids: Mapping[str, str]
    is_rounded: bool = False

    @property
    def filename(self) -> str:
        """Name of the score, for messages."""
        return self.score_file.filename

    def named_file(self) -> ScoreFile:
        """Return what is engraved, with the ids of `score`."""
        return self.score_file.with_note_ids(self.note_ids)


def load_score(source: ScoreSource) -> LoadedScore:
    """Load a symbolic score.

    Parameters
    ----------
    source : str, Path, ScoreFile, partitura.score.Score, Part, PartGroup or a list of parts
        A file is recognised by its content. The notes of a `ScoreFile` keep the ids of its tree, and a score of
        partitura's is left unchanged.

    Returns
    -------
    LoadedScore

    Warns
    -----
    ScoreWarning
        If parts are left out, ids are doubled, or another program converted the file.
    """
    if isinstance(source, ScoreFile):
        return _load_tree(source, keep_ids=True)
    if is_score_like(source):
        name = str(getattr(source, "title", None) or getattr(source, "id", None) or "score")
        with reading(name, _COMPLETE):
            return _write(as_score(source, name), name)
    if not isinstance(source, str | os.PathLike):
        raise InputError(
            f"found a {type(source).__name__}, expected a score: a file, or a Score, Part or list of parts of "
            "partitura's"
        )
    filename = str(Path(source))
    with reading(filename, _COMPLETE):
        return _load_file(filename)


def read_any_score_file(filename: str | os.PathLike[str]) -> ScoreFile:
    """Read what is engraved of a score in any format: MusicXML and MEI as they are, others converted."""
    if score_format(filename) in ("xml", None):  # what is no score gets the message of that reader
        return read_score_file(Path(filename))
    return load_score(filename).named_file()


def _load_file(filename: str) -> LoadedScore:
    kind = score_format(filename)
    if kind == "midi":
        return _write(load_score_midi(filename), filename)
    if kind == "match":
        read_bytes(filename)  # is it too large?
        check_match_numbers(load_matchfile(filename), filename)
        return _write(as_score(_load_with_partitura(filename), filename), filename)
    if kind == "musescore":
        score_file = parse_score(convert_with_musescore(filename), filename)
        warnings.warn(
            f"{filename}: converted to MusicXML by MuseScore; the notes and ids are those of the conversion",
            ScoreWarning,
            stacklevel=3,
        )
        return _load_tree(score_file)
    if kind in ("humdrum", "abc"):
        text = read_bytes(filename).decode("utf-8", "replace").removeprefix("\ufeff")
        text = "\n".join(text.splitlines()) + "\n"
        check_numbers = check_kern_numbers if kind == "humdrum" else check_abc_numbers
        check_numbers(text, filename)
        return _load_humdrum(filename, text) if kind == "humdrum" else _load_abc(filename, text)
    return _load_tree(read_score_file(filename))


def _load_humdrum(filename: str, text: str) -> LoadedScore:
    try:
        score_file = parse_score(humdrum_to_mei(filename, text).encode(), filename)
    except InputError as error:  # Verovio crashes on some files that partitura reads
        score = _load_with_partitura(filename, error)
        warnings.warn(
            f"{filename}: Verovio cannot read it, so it is engraved as partitura reads it; check its rhythm",
            ScoreWarning,
            stacklevel=4,
        )
        return _write(as_score(score, filename), filename)
    given = {
        own: (score_file.given_ids[own] or "") if own in score_file.given_ids else own
        for own in (str(note.get(score_file.id_attribute)) for note in score_file.notes())
    }
    partituras = humdrum_note_ids(filename, text, list(given.values()))
    given_ids = {own: partituras[verovios] for own, verovios in given.items()}
    return _load_tree(ScoreFile(filename, "mei", score_file.root, given_ids))


def _load_abc(filename: str, text: str) -> LoadedScore:
    score_file = parse_score(convert_to_mei(filename, text, "abc").encode(), filename)
    ids = (str(note.get(score_file.id_attribute)) for note in score_file.notes())
    return _load_tree(ScoreFile(filename, "mei", score_file.root, dict.fromkeys(ids)))


def _load_with_partitura(filename: str, cause: InputError | None = None) -> pt.score.Score:
    """Load a file as `partitura.load_score` does; if it fails, and something failed before, that is the cause."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return pt.load_score(filename, quiet=True)
    except Exception as error:  # partitura raises whatever its parsing trips over
        raise cause or _unreadable(filename, error) from error


def _write(score: pt.score.Score, filename: str) -> LoadedScore:
    written = write_score_file(score, filename)
    return LoadedScore(written.score_file, _checked(score, filename), written.note_ids, written.is_rounded)


def _load_tree(score_file: ScoreFile, keep_ids: bool = False) -> LoadedScore:
    filename = score_file.filename
    try:
        if score_file.kind == "musicxml":
            score = pt.load_musicxml(io.BytesIO(score_file.to_bytes()), quiet=True)
        else:
            score = read_mei_score(score_file.root)
    except Exception as error:  # a malformed score makes partitura raise errors of any kind
        raise _unreadable(filename, error) from error
    note_ids = name_notes(score, {} if keep_ids else score_file.given_ids, filename)
    if score_file.kind == "musicxml":
        _leave_out(score, score_file)
    return LoadedScore(score_file, _checked(score, filename), note_ids)


def _checked(score: pt.score.Score, filename: str) -> pt.score.Score:
    """Return a score whose parts agree about measures and repeats, and whose note arrays can be made."""
    for part in score.parts:
        for note in part.notes:  # partitura ties a grace note in the middle of a tie to itself
            if note.tie_prev is note or note.tie_next is note:
                note.tie_prev = note.tie_next = None
    share_measure_lengths(score, filename)
    try:
        share_repeat_signs(score)
        for part in score.parts:
            part.note_array()
    except Exception as error:  # a malformed score makes partitura raise errors of any kind
        raise _unreadable(filename, error) from error
    return score


def _unreadable(filename: str, error: Exception) -> InputError:
    return InputError(f"{filename}: partitura cannot read it ({printable(reason(error))}); {_COMPLETE}")


def _leave_out(score: pt.score.Score, score_file: ScoreFile) -> None:
    """Remove percussion and tablature, which are not engraved."""
    root = score_file.root
    left_out = left_out_parts(root)
    said = [f"{part_name(root, part_id)} ({kind})" for part_id, kind in left_out.items()]
    for part in score.parts:
        element = next((e for e in root.iterchildren("part") if e.get("id") == part.id), None)
        staves = set() if element is None or part.id in left_out else tablature_staves(element)
        for note in [
            n for n in part.iter_all(pt.score.GenericNote, include_subclasses=True) if n.staff in staves
        ]:
            part.remove(note)
        if staves:
            said.append(f"a staff of {part_name(root, str(part.id))} (tablature)")
    if left_out:
        score.parts = [part for part in score.parts if part.id not in left_out]
        score.part_structure = list(score.parts)
    if said:
        warnings.warn(
            f"{score_file.filename}: left out {', '.join(said)}; only notes on a staff with a pitch are engraved",
            ScoreWarning,
            stacklevel=4,
        )


def is_symbolic(source: Any) -> bool:
    """Return whether something is a symbolic score rather than images."""
    if isinstance(source, str | os.PathLike):
        return score_format(source) is not None
    return isinstance(source, ScoreFile) or is_score_like(source)
