"""Frames of a recording that was read at another pitch."""

import numpy as np
import pytest

from fusili_mir.arrays import Float32
from fusili_mir.audio.pitch_curve import PitchCurve, Retuning
from fusili_mir.model.retuned_frames import retuned_frames

RATE_HZ = 16_000
FRAME_SEC = 0.04


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
    curve = PitchCurve(np.array([0.0, 60.0]), np.array([-50.0, 50.0]))
    retuning = Retuning(curve, 60 * RATE_HZ, RATE_HZ)
    read_sec = float(retuning.to_read_sec(60.0))
    n_frames = round(read_sec / FRAME_SEC)
    frames, grid = retuned_frames(clock(n_frames), FRAME_SEC, retuning)
    assert len(frames) == len(grid) == n_frames
    np.testing.assert_allclose(np.linalg.norm(frames, axis=1), 1.0, atol=1e-5)
    # A frame that is read at u seconds points to (u / 0.04 - 0.5) thousandths of a circle.
    turned = np.unwrap(np.arctan2(frames[:, 1], frames[:, 0])) / (2 * np.pi) * 1000
    expected = retuning.to_read_sec(grid.centre(np.arange(n_frames))) / FRAME_SEC - 0.5
    np.testing.assert_allclose(turned[1:-1], expected[1:-1], atol=0.01)
    assert (
        np.abs(expected - np.arange(n_frames)).max() > 5
    )  # and that is several frames from where they were read


def test_a_single_frame_stays_one() -> None:
    curve = PitchCurve(np.array([0.0, 10.0]), np.array([0.0, 20.0]))
    frames, grid = retuned_frames(clock(1), FRAME_SEC, Retuning(curve, 3 * 2**15, RATE_HZ))
    np.testing.assert_array_equal(frames, clock(1))
    assert len(grid) == 1
