from __future__ import annotations

import numpy as np
import pytest

from fusili_mir.audio.sound_envelope import SoundEnvelope
from fusili_mir.decoding.course import Course, reading_course
from fusili_mir.decoding.similarity import CourseSimilarity, unit_vectors
from fusili_mir.decoding.stop_times import stop_times
from fusili_mir.decoding.warping_path import WarpingPath
from fusili_mir.errors import InputError
from fusili_mir.geometry import FrameGrid

NOTES = np.eye(4, dtype=np.float32)[:, None]  # (C=4, R=1, d=4)


def path_of(stops: list[int], filler: list[int] | None = None, confidence: float = 1.0) -> WarpingPath:
    is_filler = np.isin(np.arange(len(stops)), filler or [])
    ones = np.full(len(stops), confidence, np.float32)
    return WarpingPath(np.array(stops), is_filler, ones, np.where(is_filler, 0, ones).astype(np.float32), 1.0)


def similarity_of(frames: list[list[float]], course: Course | None = None) -> CourseSimilarity:
    course = course or reading_course(np.arange(4))
    return CourseSimilarity(NOTES, np.ones((4, 1), bool), unit_vectors(np.array(frames)), course)


def test_without_an_envelope_a_stop_begins_with_its_first_frame() -> None:
    similarity = similarity_of([[1, 0, 0, 0], [0.6, 0.8, 0, 0], [0, 1, 0, 0]])
    times = stop_times(path_of([0, 1, 1]), similarity, FrameGrid(3, 1.0))
    assert times.onset_sec[:2].tolist() == [0.0, 1.0]
    assert times.end_sec == 3.0


def test_a_sudden_change_lies_on_the_border_of_two_frames() -> None:
    similarity = similarity_of([[1, 0, 0, 0], [0, 1, 0, 0]])
    times = stop_times(path_of([0, 1]), similarity, FrameGrid(2, 0.5, start_sec=10.0))
    assert times.onset_sec[:2] == pytest.approx([10.0, 10.5])


def test_after_filler_an_onset_is_where_its_frame_begins() -> None:
    similarity = similarity_of([[1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0]])
    times = stop_times(path_of([0, 0, 1], filler=[1]), similarity, FrameGrid(3, 1.0))
    assert times.onset_sec[1] == 2.0


def test_skipped_stops_lie_between_their_neighbours_as_in_the_score() -> None:
    course = Course(np.arange(4), np.arange(5), np.array([0.0, 1.0, 4.0, 5.0, 6.0]))
    similarity = similarity_of([[1, 0, 0, 0]] * 4 + [[0, 0, 1, 0]], course)
    times = stop_times(path_of([0, 0, 0, 0, 2]), similarity, FrameGrid(5, 1.0))
    assert times.onset_sec[:3] == pytest.approx([0.0, 1.0, 4.0])
    assert times.confidence[:3].tolist() == [1.0, 0.0, 1.0]


def test_stops_before_and_after_what_was_heard_have_no_time() -> None:
    similarity = similarity_of([[0, 1, 0, 0], [0, 0, 1, 0]])
    times = stop_times(path_of([1, 2]), similarity, FrameGrid(2, 1.0))
    assert times.is_heard.tolist() == [False, True, True, False]


def test_the_confidence_of_a_stop_is_the_mean_over_its_frames() -> None:
    similarity = similarity_of([[1, 0, 0, 0]] * 2 + [[0, 1, 0, 0]])
    path = WarpingPath(
        np.array([0, 0, 1]),
        np.zeros(3, bool),
        np.ones(3, np.float32),
        np.array([1, 0.5, 0.25], np.float32),
        1.0,
    )
    assert stop_times(path, similarity, FrameGrid(3, 1.0)).confidence[:2].tolist() == [0.75, 0.25]


def test_a_recording_in_which_nothing_is_heard_is_refused() -> None:
    similarity = similarity_of([[1, 0, 0, 0]])
    with pytest.raises(InputError, match="is it a recording of this piece"):
        stop_times(path_of([0], filler=[0]), similarity, FrameGrid(1, 1.0))


def envelope_with_onsets(*onsets_sec: float, n_steps: int = 400) -> SoundEnvelope:
    """Onsets that rise and fall within two steps of 10 ms, above what is usual."""
    steps = np.arange(n_steps)
    rise = 0.001 + sum(np.maximum(0.0, 4 - (steps - 100 * onset_sec) ** 2) for onset_sec in onsets_sec)
    return SoundEnvelope(rise.astype(np.float32), np.ones(n_steps, np.float32))


def test_a_stop_begins_with_the_onset_nearest_to_its_first_frame() -> None:
    similarity = similarity_of([[1, 0, 0, 0]] * 2 + [[0, 1, 0, 0]] * 2)
    envelope = envelope_with_onsets(0.033, 1.962)
    times = stop_times(path_of([0, 0, 1, 1]), similarity, FrameGrid(4, 1.0), envelope)
    assert times.onset_sec[:2] == pytest.approx([0.033, 1.962], abs=1e-3)


def test_a_stop_without_an_onset_nearby_begins_with_its_first_frame() -> None:
    similarity = similarity_of([[1, 0, 0, 0]] * 2 + [[0, 1, 0, 0]] * 2)
    envelope = envelope_with_onsets(1.5)
    times = stop_times(path_of([0, 0, 1, 1]), similarity, FrameGrid(4, 1.0, start_sec=0.25), envelope)
    assert times.onset_sec[:2] == pytest.approx([0.25, 2.25])


def test_stops_that_find_the_same_onset_begin_together_and_never_before_each_other() -> None:
    similarity = similarity_of([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    grid = FrameGrid(4, 0.04, start_sec=1.0)
    times = stop_times(path_of([0, 1, 2, 3]), similarity, grid, envelope_with_onsets(1.06))
    assert np.all(np.diff(times.onset_sec) >= 0)
    assert times.onset_sec[1:3] == pytest.approx([1.06, 1.06], abs=1e-3)


def test_no_stop_begins_or_ends_outside_the_recording() -> None:
    similarity = similarity_of([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    early = stop_times(path_of([0, 1, 2, 3]), similarity, FrameGrid(4, 1.0, start_sec=-0.3, audio_sec=3.2))
    assert early.onset_sec == pytest.approx([0.0, 0.7, 1.7, 2.7])
    assert early.end_sec == 3.2
    late = stop_times(path_of([0, 1, 2, 3]), similarity, FrameGrid(4, 1.0, start_sec=0.3, audio_sec=3.2))
    assert late.onset_sec == pytest.approx([0.3, 1.3, 2.3, 3.2])
    assert late.end_sec == 3.2
