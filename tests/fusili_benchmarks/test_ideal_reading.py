import numpy as np
import pytest

from fusili_benchmarks.ideal_reading import ideal_reading
from fusili_mir.geometry import FrameGrid, PatchGrid
from fusili_training.truth import TRUTH_DTYPE, TruthArray

PATCHES = PatchGrid(1, 6, 4, 128)
FRAMES = FrameGrid(6, 1.0)


def melody(*pitches: int) -> TruthArray:
    """One note a second, each in a column of its own."""
    rows = [
        (f"n{place}", pitch, 0, 0, 4.0 * place + 1, 10.0, 4.0 * place + 3, 14.0, place, place + 1, True)
        for place, pitch in enumerate(pitches)
    ]
    return np.array(rows, dtype=TRUTH_DTYPE)


def test_different_notes_are_all_told_apart() -> None:
    assert ideal_reading(melody(60, 62, 64, 65, 67, 69), PATCHES, FRAMES, 0.4).tolist() == [1.0] * 6


def test_the_same_note_in_two_places_is_right_by_chance() -> None:
    found = ideal_reading(melody(60, 62, 60, 65, 67, 69), PATCHES, FRAMES, 0.4)
    assert found.tolist() == [0.5, 1.0, 0.5, 1.0, 1.0, 1.0]


def test_who_sees_the_notes_beside_it_tells_more_places_apart() -> None:
    music = melody(60, 62, 64, 60, 62, 69)  # "60 62" twice, then another note
    assert ideal_reading(music, PATCHES, FRAMES, 0.4).tolist() == [0.5, 0.5, 1.0, 0.5, 0.5, 1.0]
    assert ideal_reading(music, PATCHES, FRAMES, 1.6).tolist() == [1.0] * 6


def test_a_note_that_is_held_is_right_as_long_as_it_sounds() -> None:
    music = melody(60, 62, 60, 62)
    music["offset_sec"][0] = 4.0  # its column is right throughout
    assert ideal_reading(music, PATCHES, FRAMES, 0.4).tolist() == pytest.approx([0.5, 0.5, 1.0, 0.5])
