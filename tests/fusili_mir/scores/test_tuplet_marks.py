from __future__ import annotations

from example_scores import note
from lxml import etree

from fusili_mir.scores.tuplet_marks import mark_tuplets

DIVISIONS = 6


def shortened(pitch: str, duration: int, actual: int, normal: int, notations: str = "") -> str:
    modification = (
        f"<time-modification><actual-notes>{actual}</actual-notes><normal-notes>{normal}</normal-notes>"
        "</time-modification>"
    )
    return (
        note(pitch)
        .replace("<duration>2<", f"<duration>{duration}<")
        .replace("<staff>", f"{modification}<staff>")
        .replace("</note>", f"{notations}</note>")
    )


def marks(content: str) -> list[str]:
    """The marks of each note: "(" begins a tuplet, ")" ends it."""
    measure = etree.fromstring(f"<measure>{content}</measure>")
    mark_tuplets(measure, DIVISIONS)
    kinds = {"start": "(", "stop": ")"}
    return [
        "".join(kinds[mark.get("type", "")] for mark in each.iterfind("notations/tuplet"))
        for each in measure.iterfind("note")
    ]


def test_a_tuplet_ends_where_its_notes_fill_a_beat() -> None:
    triplets = "".join(shortened(pitch, 2, 3, 2) for pitch in ("C5", "D5", "E5", "C5", "D5", "E5"))
    assert marks(triplets) == ["(", "", ")", "(", "", ")"]


def test_a_tuplet_ends_where_other_notes_follow() -> None:
    assert marks(shortened("C5", 2, 3, 2) + note("D5")) == ["()", ""]


def test_tuplets_with_marks_of_their_own_are_left_as_they_are() -> None:
    own = "<notations><tuplet type='start'/></notations>"
    assert marks(shortened("C5", 2, 3, 2, own) + shortened("D5", 2, 3, 2)) == ["(", ""]


def tremolo(kind: str) -> str:
    return f"<notations><ornaments><tremolo type='{kind}'>3</tremolo></ornaments></notations>"


def test_the_two_notes_of_a_tremolo_are_no_tuplet() -> None:
    assert marks(shortened("C5", 6, 2, 1, tremolo("start")) + shortened("E5", 6, 2, 1, tremolo("stop"))) == [
        "",
        "",
    ]


def test_a_tremolo_within_a_triplet_is_part_of_it() -> None:
    halves = [shortened("C5", 2, 6, 2, tremolo("start")), shortened("E5", 2, 6, 2, tremolo("stop"))]
    assert marks("".join(halves) + shortened("G5", 2, 3, 2)) == ["(", "", ")"]
