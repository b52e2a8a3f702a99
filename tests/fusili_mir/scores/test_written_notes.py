import pytest
from lxml import etree

from fusili_mir.errors import InputError
from fusili_mir.scores.pitch_names import Key
from fusili_mir.scores.written_notes import read_written_notes, tie_chains


def note(name: str, step: str, quarters: int, *more: str, chord: bool = False) -> str:
    return (
        f"<note id='{name}'>{'<chord/>' if chord else ''}<pitch><step>{step}</step><octave>4</octave></pitch>"
        f"<duration>{quarters}</duration>{''.join(more)}</note>"
    )


def tie(*kinds: str) -> str:
    return "".join(f"<tie type='{kind}'/>" for kind in kinds)


def part(*measures: str) -> etree._Element:
    return etree.fromstring("<part>" + "".join(f"<measure>{m}</measure>" for m in measures) + "</part>")


def test_places_follow_chords_backups_forwards_and_divisions() -> None:
    notes = read_written_notes(
        part(
            "<attributes><divisions>1</divisions></attributes>"
            + note("a", "C", 2)
            + note("b", "E", 2, chord=True)
            + note("c", "D", 2)
            + "<backup><duration>4</duration></backup><forward><duration>1</duration></forward>"
            + note("d", "G", 3, "<staff>2</staff>"),
            "<attributes><divisions>2</divisions></attributes>" + note("e", "A", 2),
        )
    )
    assert [(n.element.get("id"), n.onset, n.end, n.staff, n.measure) for n in notes] == [
        ("a", 0, 2, 1, 0),
        ("b", 0, 2, 1, 0),
        ("c", 2, 4, 1, 0),
        ("d", 1, 4, 2, 0),
        ("e", 4, 5, 1, 1),
    ]


def test_keys_belong_to_their_staff_until_changed() -> None:
    def in_staves(name: str) -> str:
        return note(f"{name}1", "C", 1, "<staff>1</staff>") + note(f"{name}2", "C", 1, "<staff>2</staff>")

    notes = read_written_notes(
        part(
            "<attributes><key><fifths>2</fifths></key></attributes>" + in_staves("a"),
            "<attributes><key number='2'><fifths>-1</fifths></key></attributes>" + in_staves("b"),
            "<attributes><key><key-step>B</key-step><key-alter>-1</key-alter></key></attributes>"
            + in_staves("c"),
        )
    )
    two, flat = Key.of_fifths(2), Key.of_fifths(-1)
    assert [n.key for n in notes] == [two, two, two, flat, flat, flat]


def test_transposition_counts_octaves() -> None:
    transpose = "<transpose><chromatic>-2</chromatic><octave-change>-1</octave-change></transpose>"
    assert (
        read_written_notes(part(f"<attributes>{transpose}</attributes>" + note("a", "C", 1)))[0].transposition
        == -14
    )


def test_ties_join_heads_over_bar_lines() -> None:
    notes = read_written_notes(
        part(
            note("a", "C", 2, tie("start")) + note("b", "E", 2, chord=True),
            note("c", "C", 2, tie("stop", "start")),
            note("d", "C", 2, tie("stop")),
        )
    )
    assert [[n.element.get("id") for n in chain] for chain in tie_chains(notes)] == [["a", "c", "d"], ["b"]]


def test_heads_with_a_tie_to_nowhere_or_to_two_places_are_left_out() -> None:
    unison = (
        note("x", "G", 2, tie("start"))
        + "<backup><duration>2</duration></backup>"
        + note("y", "G", 2, tie("start"))
    )
    notes = read_written_notes(
        part(note("a", "C", 2, tie("start")) + note("b", "D", 2) + unison, note("z", "G", 1, tie("stop")))
    )
    assert [[n.element.get("id") for n in chain] for chain in tie_chains(notes)] == [["b"]]


def test_rests_and_unpitched_notes_are_passed_over() -> None:
    silent = "<note><rest/><duration>1</duration></note><note><unpitched/><duration>1</duration></note>"
    (only,) = read_written_notes(part(silent + note("a", "C", 1)))
    assert only.onset == 2


@pytest.mark.parametrize(
    "bad",
    [
        "<note id='a'><pitch><step>H</step><octave>4</octave></pitch><duration>1</duration></note>",
        "<note id='a'><pitch><step>C</step></pitch><duration>1</duration></note>",
        "<note id='a'><pitch><step>C</step><octave>4</octave></pitch><duration>long</duration></note>",
    ],
)
def test_a_note_that_cannot_be_read_gives_one_line(bad: str) -> None:
    with pytest.raises(InputError, match="expected"):
        read_written_notes(part(bad))
