from __future__ import annotations

import numpy as np
import partitura as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusili_mir.alignment.played import PLAYED_MEASURE_DTYPE, PLAYED_NOTE_DTYPE, PlayedScore
from fusili_mir.alignment.playing_course import PlayingCourse
from fusili_mir.alignment.stop_pitches import pitches_of_notes, pitches_of_places
from fusili_mir.arrays import Float32
from fusili_mir.audio.onset_map import N_PITCHES
from fusili_mir.decoding.course import Course, reading_course
from fusili_mir.decoding.onset_evidence import StopPitches

C4, E4, G4 = 39, 43, 46  # indices of the pitches 60, 64, 67


def notes_at(*stops_and_pitches: tuple[int, int], n_stops: int) -> StopPitches:
    """Pitches of the stops of a score of notes (stop, MIDI pitch)."""
    notes = np.zeros(len(stops_and_pitches), PLAYED_NOTE_DTYPE)
    notes["pitch"] = [pitch for _, pitch in stops_and_pitches]
    stop_of_note = np.array([stop for stop, _ in stops_and_pitches])
    played = PlayedScore(pt.score.Score([]), notes, np.zeros(0, PLAYED_MEASURE_DTYPE), "none")
    course = reading_course(np.arange(n_stops))
    return pitches_of_notes(played, PlayingCourse(course, stop_of_note, stop_of_note >= 0))


def shares(weights: Float32) -> dict[int, float]:
    return {int(pitch): float(weights[pitch]) for pitch in np.flatnonzero(weights)}


def test_the_notes_of_a_chord_share_its_weight() -> None:
    pitches = notes_at((0, 60), (1, 60), (1, 64), (2, 67), n_stops=3)
    assert [shares(stop) for stop in pitches.weights] == [{C4: 1.0}, {C4: 0.5, E4: 0.5}, {G4: 1.0}]
    assert pitches.n_notes.tolist() == [1.0, 2.0, 1.0]
    assert not pitches.are_read


def test_the_same_pitch_in_two_voices_counts_once() -> None:
    pitches = notes_at((0, 60), (0, 60), (0, 64), n_stops=1)
    assert shares(pitches.weights[0]) == {C4: 0.5, E4: 0.5}
    assert pitches.n_notes.tolist() == [2.0]


def test_notes_without_a_head_belong_to_no_stop_and_pitches_beyond_a_piano_to_its_last_keys() -> None:
    pitches = notes_at((0, 60), (-1, 64), (1, 120), (1, 5), n_stops=2)
    assert [shares(stop) for stop in pitches.weights] == [{C4: 1.0}, {0: 0.5, 87: 0.5}]


def test_a_place_has_the_most_certain_of_its_columns_pitch_by_pitch() -> None:
    columns = np.zeros((5, N_PITCHES), np.float32)
    columns[1, [C4, E4]] = [0.9, 0.1]
    columns[2, [C4, E4]] = [0.2, 0.6]
    columns[4, G4] = 0.25
    course = Course(np.array([1, 2, 4]), np.array([0, 2, 3]), np.array([0.0, 3.0, 5.0]), is_spaced=True)
    pitches = pitches_of_places(columns, course)
    assert shares(pitches.weights[0]) == pytest.approx({C4: 0.6, E4: 0.4})  # 0.9 and 0.6 of 1.5
    assert shares(pitches.weights[1]) == {G4: 1.0}
    assert pitches.n_notes == pytest.approx([1.5, 1.0])  # at least one
    assert pitches.are_read


def test_a_repeated_place_has_the_same_pitches_each_time_and_at_most_six_notes() -> None:
    columns = np.zeros((2, N_PITCHES), np.float32)
    columns[0, C4], columns[1, :20] = 1.0, 0.5
    pitches = pitches_of_places(columns, reading_course(np.array([0, 1, 0])))
    assert pitches.weights[0].tolist() == pitches.weights[2].tolist()
    assert pitches.n_notes.tolist() == [1.0, 6.0, 1.0]


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 20))
def test_the_weights_of_every_stop_add_up_to_1(seed: int, n_stops: int) -> None:
    rng = np.random.default_rng(seed)
    columns = rng.uniform(1e-3, 1.0, (30, N_PITCHES)).astype(np.float32)
    first = np.sort(rng.choice(np.arange(1, 30), n_stops, replace=False))
    course = Course(rng.permutation(30)[: first[-1]], np.append(0, first), np.arange(n_stops + 1.0))
    read = pitches_of_places(columns, course)
    sounding = [(stop, int(pitch)) for stop in range(n_stops) for pitch in rng.integers(0, 128, 3)]
    for pitches in (read, notes_at(*sounding, n_stops=n_stops)):
        assert pitches.weights.shape == (n_stops, N_PITCHES)
        assert pitches.weights.sum(axis=1) == pytest.approx(np.ones(n_stops), rel=1e-5)
        assert pitches.n_notes.min() >= 1


def test_where_nothing_at_all_is_read_no_pitch_counts() -> None:
    columns = np.zeros((2, N_PITCHES), np.float32)
    columns[1, C4] = 0.01
    pitches = pitches_of_places(columns, reading_course(np.arange(2)))
    assert pitches.n_notes.tolist() == [0.0, 1.0]
    assert not pitches.weights[0].any()


def test_what_is_read_for_sure_is_not_doubtful_and_what_is_half_read_is_half() -> None:
    columns = np.zeros((3, N_PITCHES), np.float32)
    columns[0, C4], columns[1, [C4, E4]] = 1.0, 0.5
    read = pitches_of_places(columns, reading_course(np.arange(3)))
    assert read.doubtful is not None
    assert read.doubtful.tolist() == pytest.approx([0.0, 0.5 / 1.05, 0.0])  # the last is empty
