from pathlib import Path

import numpy as np
import partitura as pt
import pytest

from fusili_mir.errors import InputError
from fusili_training.sound.score_notes import read_score_notes

NOTE = "<note id='{id}'>{grace}{chord}<pitch><step>{step}</step><octave>4</octave></pitch>{duration}{rest}</note>"


def note(
    id_: str, step: str = "C", quarters: int = 1, grace: bool = False, chord: bool = False, rest: str = ""
) -> str:
    return NOTE.format(
        id=id_,
        step=step,
        grace="<grace/>" if grace else "",
        chord="<chord/>" if chord else "",
        duration="" if grace else f"<duration>{quarters}</duration>",
        rest="<voice>1</voice><type>quarter</type>" + rest,
    )


def dynamic(mark: str) -> str:
    return f"<direction><direction-type><dynamics><{mark}/></dynamics></direction-type></direction>"


def wedge(kind: str) -> str:
    return f"<direction><direction-type><wedge type='{kind}'/></direction-type></direction>"


def read(folder: Path, *measures: str) -> np.ndarray:
    head = "<attributes><divisions>1</divisions></attributes>"
    body = "".join(
        f"<measure number='{i + 1}'>{head if i == 0 else ''}{m}</measure>" for i, m in enumerate(measures)
    )
    path = folder / "score.musicxml"
    path.write_text(
        "<score-partwise version='4.0'><part-list><score-part id='P1'><part-name>A</part-name></score-part>"
        f"</part-list><part id='P1'>{body}</part></score-partwise>"
    )
    return read_score_notes(pt.load_musicxml(path))


def test_tied_notes_are_one_sounding_note(tmp_path: Path) -> None:
    notes = read(
        tmp_path,
        note("a", quarters=4, rest="<tie type='start'/>"),
        note("b", quarters=4, rest="<tie type='stop'/>"),
    )
    assert notes["id"].tolist() == ["a"]
    assert notes["duration_quarter"].tolist() == [8.0]


def test_grace_notes_count_the_steps_to_their_main_note(tmp_path: Path) -> None:
    notes = read(tmp_path, note("g1", "D", grace=True) + note("g2", "E", grace=True) + note("m", quarters=4))
    assert dict(zip(notes["id"].tolist(), notes["grace"].tolist(), strict=True)) == {"g1": 2, "g2": 1, "m": 0}


def test_the_notes_of_a_grace_chord_are_one_step(tmp_path: Path) -> None:
    chord = (
        note("g1", "D", grace=True) + note("g2", "F", grace=True) + note("g3", "A", grace=True, chord=True)
    )
    notes = read(tmp_path, chord + note("m", quarters=4))
    assert dict(zip(notes["id"].tolist(), notes["grace"].tolist(), strict=True)) == {
        "g1": 2,
        "g2": 1,
        "g3": 1,
        "m": 0,
    }


def test_a_dynamic_mark_holds_until_the_next_and_a_crescendo_leads_there(tmp_path: Path) -> None:
    notes = read(
        tmp_path,
        note("a") + dynamic("p") + note("b") + wedge("crescendo") + note("c") + note("d"),
        wedge("stop") + dynamic("f") + note("e", quarters=4),
    )
    # p is 48, f is 86; the hairpin spans c (at its start) and d (half-way)
    assert notes["velocity"].tolist() == [64, 48, 48, 67, 86]


def test_articulation_marks_shorten_and_accent(tmp_path: Path) -> None:
    mark = "<notations><articulations><{}/></articulations></notations>"
    notes = read(
        tmp_path,
        note("a", rest=mark.format("staccato"))
        + note("b", rest=mark.format("accent"))
        + note("c", quarters=2),
    )
    assert notes["held"].tolist() == [0.5, 1.0, 1.0]
    assert notes["velocity"].tolist() == [64, 76, 64]


def test_notes_without_ids_of_their_own_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="2 notes of the score have only 1 different ids"):
        read(tmp_path, note("a", quarters=2) + note("a", "D", quarters=2))
