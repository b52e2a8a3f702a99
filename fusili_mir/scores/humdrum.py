"""Humdrum kern: Verovio converts it to MEI, and partitura says which ids it gives to the notes.

partitura's reader of kern loses count where spines split, so score time comes from the MEI. The ids are still
partitura's: it reads a copy of the file in which the pitch of every token says where the token stands.
"""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
import warnings
from pathlib import Path

import partitura as pt

from fusili_mir.boundary import reason
from fusili_mir.scores.score_warning import ScoreWarning
from fusili_mir.scores.verovio_process import convert_to_mei

__all__ = ["humdrum_note_ids", "humdrum_to_mei"]

Place = tuple[int, int]
"""Line and field of a token, both counted from 1."""

_STEPS = "CDEFGAB"
_ACCIDENTALS = {0: "", 1: "#", 2: "##", -1: "-", -2: "--"}
_ALTERS = tuple(_ACCIDENTALS)
_PITCH = re.compile(r"[a-gA-G]+[-#n]*")
_NULL_LINE = re.compile(r"\.(\t\.)*")
_METER = re.compile(r"\*M(\d+/\d+)")
_METER_OF_SIGN = {"*met(c)": "4/4", "*met(c|)": "2/2"}
_VEROVIO_ID = re.compile(r"note-L(\d+)F(\d+)")


def humdrum_to_mei(filename: str, text: str) -> str:
    """Convert kern to MEI. Notes have ids such as ``note-L12F2S1``: line, field, and place in a chord.

    What Verovio gives another length is taken out first: lines of null tokens and rests among grace notes, which
    have none, and meter signs such as that of 4/4 in a piece that is in 2/4.
    """
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if line.startswith("*") and "*met(" in line:
            lines[number] = _without_wrong_signs(lines, number)
        elif line[:1] not in ("!", "*", "=", ""):
            tokens = ["." if "q" in token and "r" in token else token for token in line.split("\t")]
            lines[number] = "\t".join(tokens)
            if _NULL_LINE.fullmatch(lines[number]):
                lines[number] = "!!"
    return convert_to_mei(filename, "\n".join(lines), "humdrum")


def _without_wrong_signs(lines: list[str], number: int) -> str:
    """Return a line of meter signs without those that are not the sign of the meter that stands beside them."""
    beside = [*lines[number + 1 : number + 4], *reversed(lines[max(0, number - 3) : number])]
    meter = next((found[1] for line in beside if (found := _METER.search(line))), None)
    fields = lines[number].split("\t")
    return "\t".join(
        "*" if meter and field in _METER_OF_SIGN and _METER_OF_SIGN[field] != meter else field
        for field in fields
    )


def humdrum_note_ids(filename: str, text: str, verovio_ids: list[str]) -> dict[str, str | None]:
    """Return the ids that partitura gives to the notes of a kern file.

    Parameters
    ----------
    filename : str
        Name of the score, for messages.
    text : str
        Content of the file.
    verovio_ids : list of str
        Ids of the notes in the MEI of `humdrum_to_mei`.

    Returns
    -------
    dict from str to str or None
        Verovio's id -> partitura's; None if partitura has no such note. The notes of a chord share one id.

    Warns
    -----
    ScoreWarning
        If partitura cannot read the file.
    """
    marked, places = _mark(text)
    ids: dict[Place, str] = {}
    try:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            copy = Path(folder) / "score.krn"
            copy.write_text(marked, encoding="utf-8")
            score = pt.load_kern(str(copy), force_note_ids="keep", quiet=True)
        for part in score.parts:
            for note in part.notes:
                place = _marked_place(note, places)
                if place is not None:
                    ids[place] = str(note.id)
    except Exception as error:  # noqa: BLE001 - partitura raises whatever its parsing trips over
        warnings.warn(
            f"{filename}: partitura's own reader of kern fails on it ({reason(error)}), so "
            "there are no ids of partitura's; notes are named as in a file without ids (p0n0, ...)",
            ScoreWarning,
            stacklevel=2,
        )
    return {own: ids.get(_place(own)) for own in verovio_ids}


def _place(verovio_id: str) -> Place:
    found = _VEROVIO_ID.match(verovio_id)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _mark(text: str) -> tuple[str, list[Place]]:
    """Replace the pitch of every note by the number of its token, written as a pitch; list the tokens."""
    places: list[Place] = []
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if line[:1] in ("!", "*", "=", ""):
            continue
        fields = line.split("\t")
        for field, token in enumerate(fields):
            if "r" not in token and re.search(r"[0-9q]", token) and _PITCH.search(token):
                mark = _pitch_of_number(len(places))
                places.append((number + 1, field + 1))
                fields[field] = " ".join(_PITCH.sub(mark, note, count=1) for note in token.split(" "))
        lines[number] = "\t".join(fields)
    return "\n".join(lines), places


def _pitch_of_number(number: int) -> str:
    """Write a number as a pitch of kern.

    >>> _pitch_of_number(0), _pitch_of_number(8), _pitch_of_number(35), _pitch_of_number(70)
    ('c', 'd#', 'C', 'cc')
    """
    rest, step = divmod(number, len(_STEPS))
    octave, alter = divmod(rest, len(_ALTERS))
    repeats, low = divmod(octave, 2)
    letter = _STEPS[step] if low else _STEPS[step].lower()
    return letter * (repeats + 1) + _ACCIDENTALS[_ALTERS[alter]]


def _marked_place(note: pt.score.Note, places: list[Place]) -> Place | None:
    low = note.octave <= 3  # kern writes C3 as C, CC is the octave below; c is C4, cc the octave above
    octave = 2 * (3 - note.octave) + 1 if low else 2 * (note.octave - 4)
    number = (octave * len(_ALTERS) + _ALTERS.index(note.alter or 0)) * len(_STEPS) + _STEPS.index(note.step)
    return places[number] if number < len(places) else None
