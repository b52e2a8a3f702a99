from __future__ import annotations

import numpy as np
import pytest
from example_evidence import all_sounding, nothing_heard

from fusili_mir.arrays import Float32, Int64
from fusili_mir.decoding.course import Course, reading_course
from fusili_mir.decoding.similarity import CourseSimilarity, unit_vectors
from fusili_mir.decoding.stop_times import StopTimes
from fusili_mir.decoding.warping_path import (
    DecodingOptions,
    RoughSearch,
    WarpingPath,
    _frame_confidence,
    decode_path,
)
from fusili_mir.errors import InputError
from fusili_mir.geometry import FrameGrid

SCALE = 20.0
FRAME_SEC = 0.04
D = 32


def score_embeddings(n_columns: int, seed: int = 0) -> Float32:
    return unit_vectors(np.random.default_rng(seed).normal(size=(n_columns, 1, D)))


def recording(embeddings: Float32, columns: Int64, noise: float = 0.7, seed: int = 1) -> Float32:
    """Frames that sound like some columns (none for -1), with noise."""
    rng = np.random.default_rng(seed)
    clean = np.where(
        (columns >= 0)[:, None], embeddings[columns, 0], unit_vectors(rng.normal(size=(len(columns), D)))
    )
    return unit_vectors(clean + noise * unit_vectors(rng.normal(size=clean.shape)))


def similarity_of(embeddings: Float32, frames: Float32, columns: Int64 | None = None) -> CourseSimilarity:
    course = reading_course(np.arange(len(embeddings)) if columns is None else columns)
    return CourseSimilarity(embeddings, np.ones((len(embeddings), 1), bool), frames, course)


def decode(embeddings: Float32, frames: Float32, options: DecodingOptions | None = None) -> WarpingPath:
    grid = FrameGrid(len(frames), FRAME_SEC)
    evidence = nothing_heard(len(embeddings), grid.duration_sec)
    sound = all_sounding(len(frames))
    return decode_path(similarity_of(embeddings, frames), grid, SCALE, sound, evidence, options).path


def walk(n_columns: int, n_frames: int, seed: int = 2) -> Int64:
    """A path at a changing tempo from the first to the last column."""
    pace = np.cumsum(np.random.default_rng(seed).uniform(0.2, 1.8, n_frames))
    return np.minimum((pace - pace[0]) / (pace[-1] - pace[0]) * n_columns, n_columns - 1).astype(np.int64)


def test_a_noisy_recording_is_followed_to_the_column() -> None:
    embeddings, true = score_embeddings(100), walk(100, 400)
    path = decode(embeddings, recording(embeddings, true))
    assert np.abs(path.stop - true).max() <= 1
    assert np.mean(path.stop == true) > 0.95
    assert not path.is_filler.any()
    assert path.reliability > 0.8


@pytest.mark.parametrize("rough_cells", [2**10, 2**12, 2**23])
def test_a_rough_search_in_groups_leads_to_the_same_path(rough_cells: int) -> None:
    embeddings, true = score_embeddings(150), walk(150, 600)
    options = DecodingOptions(rough_cells=rough_cells, band_stops=64)
    path = decode(embeddings, recording(embeddings, true), options)
    assert np.mean(path.stop == true) > 0.95


def test_what_is_not_in_the_score_is_filler_before_between_and_after() -> None:
    embeddings, music = score_embeddings(60), walk(60, 240)
    silence = np.full(50, -1)
    true = np.concatenate((silence, music[:120], silence, music[120:], silence))
    path = decode(embeddings, recording(embeddings, true))
    assert np.mean(path.is_filler == (true < 0)) > 0.97
    assert path.confidence[path.is_filler].max() == 0.0
    assert np.all(np.isinf(path.margin_sec) == path.is_filler)
    heard = ~path.is_filler & (true >= 0)
    assert np.abs(path.stop - true)[heard].max() <= 1


def test_a_recording_of_the_middle_begins_and_ends_there() -> None:
    embeddings = score_embeddings(100)
    true = 30 + walk(40, 200)
    path = decode(embeddings, recording(embeddings, true))
    assert path.stop[0] == pytest.approx(30, abs=1)
    assert path.stop[-1] == pytest.approx(69, abs=1)


def test_notes_that_sound_alike_are_spread_evenly() -> None:
    notes = score_embeddings(3)
    embeddings = notes[[0, 1, 1, 1, 1, 2]]  # four times the same note
    true = np.repeat(np.arange(6), 20)
    path = decode(embeddings, recording(embeddings, true, noise=0.3))
    first = np.searchsorted(path.stop, np.arange(6))
    assert np.abs(first - 20 * np.arange(6)).max() <= 4


def test_another_piece_is_unreliable_and_the_right_one_is_not() -> None:
    embeddings, true = score_embeddings(100), walk(100, 400)
    other = score_embeddings(100, seed=9)
    reliabilities = [
        decode(embeddings, recording(other, walk(100, 400, seed), seed=seed)).reliability for seed in range(5)
    ]
    assert max(reliabilities) < 0.2
    assert decode(embeddings, recording(embeddings, true, noise=2.0)).reliability > 0.3


def test_the_course_that_was_played_is_the_most_likely() -> None:
    embeddings = score_embeddings(40)
    twice = np.concatenate((np.arange(40), np.arange(40)))
    frames = recording(embeddings, np.repeat(twice, 5))
    likelihoods = [
        RoughSearch(
            similarity_of(embeddings, frames, columns), FRAME_SEC, SCALE, DecodingOptions()
        ).likelihood
        for columns in (twice, np.arange(40), np.concatenate((twice, np.arange(40))))
    ]
    assert np.argmax(likelihoods) == 0


def test_a_single_stop_and_a_single_frame_can_be_decoded() -> None:
    embeddings = score_embeddings(1)
    path = decode(embeddings, embeddings[:, 0])
    assert path.stop.tolist() == [0]


def test_a_course_needs_stops_with_columns_in_order() -> None:
    with pytest.raises(InputError, match="without columns"):
        Course(np.array([0]), np.array([0, 0, 1]), np.array([0.0, 1.0, 2.0]))
    with pytest.raises(InputError, match="playing order"):
        Course(np.array([0, 1]), np.array([0, 1, 2]), np.array([0.0, 2.0, 1.0]))


def test_options_out_of_range_are_refused() -> None:
    with pytest.raises(InputError, match=r"max_speed 0\.5"):
        DecodingOptions(max_speed=0.5)


def test_a_frame_between_two_stops_is_as_sure_as_both_by_its_share_of_the_way() -> None:
    onset_sec, confidence = np.array([np.nan, 0.5, 2.5, np.nan]), np.array([0.0, 0.9, 0.5, 0.0])
    times = StopTimes(onset_sec, 4.0, confidence, np.zeros(4), np.zeros(4))
    found = _frame_confidence(times, np.array([1, 1, 2, 2]), FrameGrid(4, 1.0))  # middles at 0.5, 1.5, ...
    assert found == pytest.approx([0.9, 0.7, 0.5, 0.5])
