from lxml import etree

from fusili_mir.scores.accidentals import add_accidentals, renew_accidentals
from fusili_mir.scores.written_notes import read_written_notes


def note(name: str, step: str, alter: int = 0, mark: str = "", octave: int = 4, more: str = "") -> str:
    return (
        f"<note id='{name}'><pitch><step>{step}</step><alter>{alter}</alter><octave>{octave}</octave></pitch>"
        f"<duration>1</duration>{f'<accidental>{mark}</accidental>' if mark else ''}<stem>up</stem>{more}</note>"
    )


def renewed(*notes: str, fifths: int = 0, changed: str = "") -> dict[str | None, str | None]:
    key = f"<attributes><key><fifths>{fifths}</fifths></key></attributes>"
    part = etree.fromstring(f"<part><measure>{key}{''.join(notes)}</measure></part>")
    renew_accidentals(read_written_notes(part), set(changed.split()))
    return {element.get("id"): element.findtext("accidental") for element in part.iter("note")}


def test_an_accidental_holds_to_the_end_of_the_measure() -> None:
    assert renewed(note("a", "F", 1), note("b", "F", 1), note("c", "F"), note("d", "F")) == {
        "a": "sharp",
        "b": None,
        "c": "natural",
        "d": None,
    }


def test_it_holds_for_its_octave_and_staff_only() -> None:
    other_staff = note("c", "F", 1, more="<staff>2</staff>")
    assert renewed(note("a", "F", 1), note("b", "F", 1, octave=5), other_staff) == dict.fromkeys(
        "abc", "sharp"
    )


def test_the_signature_is_taken_for_granted() -> None:
    assert renewed(note("a", "B", -1), note("b", "B"), note("c", "E", -2), fifths=-2) == {
        "a": None,
        "b": "natural",
        "c": "flat-flat",
    }


def test_a_key_change_within_the_measure_starts_anew() -> None:
    change = "<attributes><key><fifths>1</fifths></key></attributes>"
    assert renewed(note("a", "F", 1), change, note("b", "F", 1), note("c", "F")) == {
        "a": "sharp",
        "b": None,
        "c": "natural",
    }


def test_a_tied_note_shows_nothing_and_lends_nothing() -> None:
    assert renewed(note("a", "F", 1, more="<tie type='stop'/>"), note("b", "F", 1), note("c", "F")) == {
        "a": None,
        "b": "sharp",
        "c": "natural",
    }


def test_a_courtesy_accidental_stays_unless_the_note_changed() -> None:
    assert renewed(note("a", "F", mark="natural"), note("b", "G", mark="natural"), changed="b") == {
        "a": "natural",
        "b": None,
    }


def test_the_accidental_stands_where_musicxml_wants_it() -> None:
    part = etree.fromstring(f"<part><measure>{note('a', 'F', 1)}</measure></part>")
    renew_accidentals(read_written_notes(part), set())
    assert [child.tag for child in part[0][0]] == ["pitch", "duration", "accidental", "stem"]


def test_a_part_without_any_accidentals_gets_those_that_its_pitches_need() -> None:
    bars = "".join(f"<measure>{note(name, 'F', 1)}</measure>" for name in "ab")
    part = etree.fromstring(f"<part>{bars}</part>")
    add_accidentals(part)
    assert [element.text for element in part.iter("accidental")] == ["sharp", "sharp"]


def test_a_part_with_accidentals_of_its_own_is_left_as_it_is() -> None:
    part = etree.fromstring(
        f"<part><measure>{note('a', 'F', 1, 'sharp')}{note('b', 'G', 1)}</measure></part>"
    )
    before = etree.tostring(part)
    add_accidentals(part)
    assert etree.tostring(part) == before
