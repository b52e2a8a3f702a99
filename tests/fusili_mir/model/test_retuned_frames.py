"""What was heard of a recording that was read at another pitch."""

import numpy as np
import pytest

from fusili_mir.arrays import Float32
from fusili_mir.audio.onset_map import N_PITCHES, OnsetMap
from fusili_mir.audio.pitch_curve import PitchCurve, Retuning
from fusili_mir.audio.sound_envelope import SoundEnvelope
from fusili_mir.model.retuned_frames import retuned_envelope, retuned_frames, retuned_onsets

RATE_HZ = 16_000
FRAME_SEC = 0.04
DRIFT = PitchCurve(np.array([0.0, 60.0]), np.array([-50.0, 50.0]))


def clock(n_frames: int) -> Float32:
    """Unit vectors that turn evenly, by a thousandth of a circle per frame."""
    angle = 2 * np.pi * np.arange(n_frames) / 1000
    return np.asarray(np.stack([np.cos(angle), np.sin(angle)], axis=1), dtype=np.float32)


def test_steady_frames_are_stretched() -> None:
    retuning = Retuning(PitchCurve.constant(-1200.0), 60 * RATE_HZ, RATE_HZ, start_sec=5.0)
    read = clock(750)  # half a minute
    frames, grid = retuned_frames(read, FRAME_SEC, retuning)
    np.testing.assert_array_equal(frames, read)
    assert (grid.frame_sec, grid.start_sec, grid.end_sec) == (2 * FRAME_SEC, 5.0, 65.0)
    assert grid.centre(749) == pytest.approx(5.0 + 749.5 * 2 * FRAME_SEC)


def test_drifting_frames_are_put_where_they_sound() -> None:
    retuning = Retuning(DRIFT, 60 * RATE_HZ, RATE_HZ)
    n_frames = round(float(retuning.to_read_sec(60.0)) / FRAME_SEC)
    frames, grid = retuned_frames(clock(n_frames), FRAME_SEC, retuning)
    assert len(frames) == len(grid) == n_frames
    np.testing.assert_allclose(np.linalg.norm(frames, axis=1), 1.0, atol=1e-5)
    # A frame that is read at u seconds points to (u / 0.04 - 0.5) thousandths of a circle.
    turned = np.unwrap(np.arctan2(frames[:, 1], frames[:, 0])) / (2 * np.pi) * 1000
    expected = retuning.to_read_sec(grid.centre(np.arange(n_frames))) / FRAME_SEC - 0.5
    np.testing.assert_allclose(turned[1:-1], expected[1:-1], atol=0.01)
    assert np.abs(expected - np.arange(n_frames)).max() > 5  # several frames from where they were read


def test_a_single_frame_stays_one() -> None:
    frames, grid = retuned_frames(clock(1), FRAME_SEC, Retuning(DRIFT, 30 * RATE_HZ, RATE_HZ))
    np.testing.assert_allclose(frames, clock(1))
    assert len(grid) == 1


@pytest.mark.parametrize("curve", [PitchCurve.constant(-300.0), DRIFT])
def test_onsets_are_at_the_seconds_at_which_they_sound(curve: PitchCurve) -> None:
    retuning = Retuning(curve, 60 * RATE_HZ, RATE_HZ, start_sec=0.0)
    own_sec = np.array([3.0, 17.2, 31.4, 44.4, 58.1])
    steps = np.rint(retuning.to_read_sec(own_sec) / 0.01).astype(np.int64)
    rise = np.zeros(round(float(retuning.to_read_sec(60.0)) / 0.01), np.float32)
    rise[steps] = 1.0
    envelope = retuned_envelope(SoundEnvelope(rise, rise), retuning)
    np.testing.assert_allclose(envelope.nearest_onset(own_sec + 0.02, 0.07), own_sec, atol=0.008)
    activation = np.zeros((len(rise), N_PITCHES), np.float16)
    activation[steps, 40] = 1.0
    onsets = retuned_onsets(OnsetMap(activation), retuning)
    reach_sec, pitches = np.full(len(steps), 0.07), np.full(len(steps), 40)
    found = onsets.nearest(own_sec + 0.02, pitches, reach_sec, spread_sec=0.02)
    np.testing.assert_allclose(found, own_sec, atol=0.008)
