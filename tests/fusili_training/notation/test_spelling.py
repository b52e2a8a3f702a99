import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusili_mir.scores.pitch_names import Key
from fusili_training.notation.spelling import Spelling, spell

SHARPS, FLATS = "FCGDAEB", "BEADGCF"
MAJOR = [0, 2, 4, 5, 7, 9, 11]


def test_signatures_alter_the_usual_steps() -> None:
    assert dict(Key.of_fifths(3).alters) == {"F": 1, "C": 1, "G": 1}
    assert dict(Key.of_fifths(-2).alters) == {"B": -1, "E": -1}
    assert Key.of_fifths(0).alter("F") == 0
    assert Key.of_fifths(8).alter("F") == 2


@given(st.integers(21, 108), st.integers(-7, 7), st.booleans())
def test_every_spelling_has_the_pitch(pitch: int, fifths: int, rising: bool) -> None:
    spellings = spell(pitch, Key.of_fifths(fifths), rising)
    assert spellings
    assert {spelling.pitch for spelling in spellings} == {pitch}


@given(st.integers(-7, 7), st.sampled_from(MAJOR), st.integers(2, 7), st.booleans())
def test_notes_of_the_key_need_no_accidental(fifths: int, degree: int, octave: int, rising: bool) -> None:
    key = Key.of_fifths(fifths)
    best = spell((7 * fifths) % 12 + degree + 12 * octave, key, rising)[0]
    assert best.alter == key.alter(best.step)


@pytest.mark.parametrize(
    ("pitch", "fifths", "rising", "expected"),
    [
        (61, 0, True, Spelling("C", 1, 4)),
        (63, 0, True, Spelling("E", -1, 4)),
        (68, 0, True, Spelling("G", 1, 4)),
        (68, 0, False, Spelling("A", -1, 4)),
        (61, -4, True, Spelling("D", -1, 4)),
        (59, -6, False, Spelling("C", -1, 4)),
        (60, 7, True, Spelling("B", 1, 3)),
        (67, 6, True, Spelling("F", 2, 4)),
    ],
)
def test_foreign_notes_are_spelled_as_musicians_would(
    pitch: int, fifths: int, rising: bool, expected: Spelling
) -> None:
    assert spell(pitch, Key.of_fifths(fifths), rising)[0] == expected
