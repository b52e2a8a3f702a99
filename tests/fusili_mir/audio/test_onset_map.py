from __future__ import annotations

import numpy as np
import pytest

from fusili_mir.arrays import Float64
from fusili_mir.audio.onset_map import LOWEST_PITCH, N_PITCHES, OnsetMap, pitch_index

A, B = 48, 50  # indices of two pitches


def map_with(
    activations: dict[tuple[int, int], float], n_steps: int = 100, start_sec: float = 0.0
) -> OnsetMap:
    """Onsets at some (step, pitch)."""
    activation = np.zeros((n_steps, N_PITCHES), np.float16)
    for place, value in activations.items():
        activation[place] = value
    return OnsetMap(activation, start_sec=start_sec)


def moved(
    onsets: OnsetMap, second: float, reach_sec: float = 0.075, spread_sec: float = 0.03, pitch: int = A
) -> float:
    found = onsets.nearest(np.array([second]), np.array([pitch]), np.array([reach_sec]), spread_sec)
    assert found.shape == (1,)
    return float(found[0])


def test_pooling_keeps_the_strongest_onset_of_each_group_and_drops_an_unfinished_one() -> None:
    onsets = map_with({(0, A): 1.0, (1, A): 3.0, (1, B): 0.5, (4, A): 2.0, (6, A): 9.0}, n_steps=7)
    pooled = onsets.pooled(2)
    assert pooled.shape == (3, N_PITCHES)
    assert pooled.dtype == np.float32
    assert pooled[:, A].tolist() == [3.0, 0.0, 2.0]
    assert pooled[:, B].tolist() == [0.5, 0.0, 0.0]
    assert onsets.pooled(1).tolist() == onsets.activation.tolist()


def test_a_note_moves_to_the_onset_of_its_own_pitch_within_reach() -> None:
    onsets = map_with({(40, A): 1.0, (45, B): 2.0})
    assert moved(onsets, 0.43) == pytest.approx(0.40)
    assert moved(onsets, 0.43, pitch=B) == pytest.approx(0.45)
    assert moved(onsets, 0.43, pitch=B + 1) == 0.43


def test_a_note_without_an_onset_within_reach_stays() -> None:
    onsets = map_with({(40, A): 1.0})
    assert moved(onsets, 0.43, reach_sec=0.035) == pytest.approx(0.40)
    assert moved(onsets, 0.43, reach_sec=0.025) == 0.43
    assert moved(map_with({(40, A): 0.02}), 0.43) == 0.43  # too faint to be one


def test_each_note_has_a_reach_of_its_own() -> None:
    onsets = map_with({(40, A): 1.0})
    seconds = np.array([0.43, 0.43, 0.34])
    found = onsets.nearest(seconds, np.array([A, A, A]), np.array([0.035, 0.025, 0.065]), 0.03)
    assert found == pytest.approx([0.40, 0.43, 0.40])


@pytest.mark.parametrize(("spread_sec", "expected"), [(0.01, 0.41), (0.03, 0.41), (0.1, 0.45)])
def test_near_onsets_count_more_than_far_ones_by_the_spread(spread_sec: float, expected: float) -> None:
    # From 0.42 s: log(0.53) - 0.01 / spread against log(1.03) - 0.03 / spread, equal at a spread of 0.0301 s.
    onsets = map_with({(41, A): 0.5, (45, A): 1.0})
    assert moved(onsets, 0.42, spread_sec=spread_sec) == pytest.approx(expected)


def test_an_onset_is_located_between_steps_by_a_parabola() -> None:
    # Through (-1, 1), (0, 2), (1, 1.5): its top is at (1.5 - 1) / (2 * (2 * 2 - 1 - 1.5)) = 1 / 6.
    onsets = map_with({(39, A): 1.0, (40, A): 2.0, (41, A): 1.5})
    assert moved(onsets, 0.40) == pytest.approx(0.40 + 0.01 / 6)


@pytest.mark.parametrize("top", [40.0, 40.2, 39.6])
def test_the_top_of_a_true_parabola_is_found(top: float) -> None:
    onsets = map_with({(step, A): 6 - (step - top) ** 2 for step in (38, 39, 40, 41)})
    assert moved(onsets, 0.40) == pytest.approx(top / 100, abs=1e-5)


def test_an_excerpt_is_dated_by_its_beginning() -> None:
    assert moved(map_with({(40, A): 1.0}, start_sec=7.0), 7.43) == pytest.approx(7.40)


@pytest.mark.parametrize("second", [0.0, 0.99])
def test_notes_at_the_ends_of_a_recording_are_moved_too(second: float) -> None:
    onsets = map_with({(1, A): 1.0, (98, A): 1.0})
    assert moved(onsets, second) == pytest.approx(0.01 if second < 0.5 else 0.98)


def test_a_map_too_short_for_a_peak_and_no_notes_at_all_change_nothing() -> None:
    none: Float64 = np.zeros(0)
    assert moved(map_with({(0, A): 1.0}, n_steps=2), 0.005) == 0.005
    assert len(map_with({}).nearest(none, none.astype(np.int64), none, 0.03)) == 0


def test_the_keys_of_a_piano_are_all_pitches_and_those_beyond_go_to_the_nearest_key() -> None:
    assert (LOWEST_PITCH, N_PITCHES) == (21, 88)
    assert pitch_index([21, 22, 69, 108]).tolist() == [0, 1, 48, 87]
    assert pitch_index([0, 20, 109, 127]).tolist() == [0, 0, 87, 87]
    assert int(pitch_index(60)) == 39


def test_the_strongest_onset_of_any_pitch_is_found_in_each_range_of_steps() -> None:
    activation = np.maximum(np.random.default_rng(0).normal(size=(50, N_PITCHES)), 0).astype(np.float16)
    activation[3] = -0.0
    first, end = np.array([-4, 2, 3, 3, 10, 20, 45, 60]), np.array([1, 2, 4, 9, 12, 48, 52, 70])
    expected = [activation[max(a, 0) : b].max(initial=0) for a, b in zip(first, end, strict=True)]
    assert OnsetMap(activation).strongest_between(first, end).tolist() == expected
    assert len(OnsetMap(activation).strongest_between(first[:0], end[:0])) == 0
