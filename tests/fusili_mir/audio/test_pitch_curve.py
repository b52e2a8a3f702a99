"""Pitch over time, and reading a recording at another pitch."""

import numpy as np
import pytest

from fusili_mir.arrays import Float32, Float64
from fusili_mir.audio.pitch_curve import PitchCurve, Retuning
from fusili_mir.errors import InputError

RATE_HZ = 16_000


def sine(hz: float, seconds: Float64) -> Float32:
    return np.asarray(np.sin(2 * np.pi * hz * seconds), dtype=np.float32)


def read_all(retuning: Retuning, sound: Float32, n_blocks: int = 3) -> Float32:
    return np.concatenate(list(retuning.read(np.array_split(sound, n_blocks))))


@pytest.mark.parametrize("cents", [-700.0, -212.0, 12.0, 100.0, 700.0, 1200.0])
def test_a_recording_above_the_score_is_slowed_down_until_it_is_level(cents: float) -> None:
    n_samples = 5 * RATE_HZ + 17
    sound = sine(440 * 2 ** (cents / 1200), np.arange(n_samples) / RATE_HZ)
    retuning = Retuning(PitchCurve.constant(cents), n_samples, RATE_HZ)
    read = read_all(retuning, sound)
    assert len(read) == pytest.approx(n_samples * 2 ** (cents / 1200), abs=3)
    assert retuning.mean_ratio == pytest.approx(2 ** (cents / 1200), rel=1.6e-5)  # a fortieth of a cent
    level_hz = 440 * 2 ** (cents / 1200) / retuning.mean_ratio
    expected = sine(level_hz, np.arange(len(read)) / RATE_HZ)
    np.testing.assert_allclose(read[500:-500], expected[500:-500], atol=1e-4)


def test_an_octave_doubles_the_length_exactly() -> None:
    retuning = Retuning(PitchCurve.constant(1200.0), 3 * RATE_HZ, RATE_HZ)
    assert (retuning.mean_ratio, retuning.is_steady) == (2.0, True)
    assert retuning.to_read_sec([0.0, 1.5]).tolist() == [0.0, 3.0]
    assert len(read_all(retuning, np.zeros(3 * RATE_HZ, np.float32))) == 6 * RATE_HZ


def test_every_sample_of_a_drifting_recording_is_read_at_its_own_time() -> None:
    n_samples = 30 * RATE_HZ
    curve = PitchCurve(np.array([2.0, 28.0]), np.array([-40.0, 40.0]))
    retuning = Retuning(curve, n_samples, RATE_HZ)
    assert not retuning.is_steady
    read = read_all(retuning, sine(1000.0, np.arange(n_samples) / RATE_HZ))
    edges_sec = np.append(np.arange(0.0, 30.0, 2**15 / RATE_HZ), 30.0)  # between them, time runs evenly
    own_sec = np.interp(np.arange(len(read)) / RATE_HZ, retuning.to_read_sec(edges_sec), edges_sec)
    np.testing.assert_allclose(read[500:-500], sine(1000.0, own_sec)[500:-500], atol=1e-4)


def test_blocks_do_not_matter_and_neither_does_an_exact_number_of_pieces() -> None:
    for n_samples in (2**15, 2**16, 2**16 + 1, 100):
        sound = np.random.default_rng(0).standard_normal(n_samples).astype(np.float32)
        retuning = Retuning(PitchCurve.constant(-100.0), n_samples, RATE_HZ)
        np.testing.assert_array_equal(read_all(retuning, sound, 1), read_all(retuning, sound, 5))
        assert len(read_all(retuning, sound)) == round(n_samples * retuning.mean_ratio)


def test_no_shift_changes_nothing() -> None:
    sound = np.random.default_rng(0).standard_normal(70_000).astype(np.float32)
    retuning = Retuning(PitchCurve.constant(0.0), len(sound), RATE_HZ)
    np.testing.assert_array_equal(read_all(retuning, sound), sound)


def test_an_excerpt_keeps_the_seconds_of_the_recording() -> None:
    curve = PitchCurve(np.array([0.0, 100.0]), np.array([0.0, 100.0]))
    late = Retuning(curve, 10 * RATE_HZ, RATE_HZ, start_sec=90.0)
    assert late.to_read_sec(90.0) == 0.0
    assert float(late.to_read_sec(100.0)) == pytest.approx(10 * 2 ** (95 / 1200), rel=1e-4)


@pytest.mark.parametrize(
    ("seconds", "cents"), [([], []), ([0.0, 0.0], [1.0, 2.0]), ([0.0], [1.0, 2.0]), ([0.0], [5000.0])]
)
def test_curves_that_cannot_be_are_refused(seconds: list[float], cents: list[float]) -> None:
    with pytest.raises(InputError, match="expected"):
        PitchCurve(np.array(seconds), np.array(cents))
