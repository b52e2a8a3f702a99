"""Checks of a recording while it streams past."""

from __future__ import annotations

import math
import warnings

import numpy as np

from fusili_mir.arrays import Float32
from fusili_mir.errors import FusiliWarning, InputError
from fusili_mir.limits import check_limit

__all__ = ["SHORTEST_SEC", "RecordingChecks", "RecordingWarning"]

SHORTEST_SEC = 0.1
"""Least duration of what counts as music."""

_MAX_SAMPLE = 16.0  # floats may exceed full scale a little; integers stored as floats exceed it by far
_SILENCE = 1e-4  # from the lowest to the highest sample: -86 dB relative to full scale
_FULL_SCALE = 0.999
_MAX_CLIPPED_SHARE = 1e-3


class RecordingWarning(FusiliWarning):
    """A recording that is usable but may give poorer results."""


class RecordingChecks:
    """Checks every block of a recording and, at the end, the whole.

    Parameters
    ----------
    name : str
        Name of the recording, for messages.
    sample_rate_hz : int
    """

    def __init__(self, name: str, sample_rate_hz: int) -> None:
        self._name = name
        self._sample_rate_hz = sample_rate_hz
        self._n_samples = 0
        self._n_values = 0  # samples of all channels
        self._n_clipped = 0
        self._lowest, self._highest = np.inf, -np.inf  # samples of the mix
        self._peak = 0.0  # largest magnitude in any channel

    def see(self, block: Float32, mix: Float32) -> None:
        """Check a block [shape=(n, channels)] and its mix [shape=(n,)]."""
        magnitude = np.abs(block)
        peak = float(magnitude.max())  # not a number if any sample is none
        if not math.isfinite(peak):
            first = self._n_samples + int(np.isfinite(block).all(axis=1).argmin())
            raise InputError(
                f"{self._name}: a sample that is not a number at {first / self._sample_rate_hz:.3f} s; "
                "export the recording again"
            )
        self._peak = max(self._peak, peak)
        if self._peak > _MAX_SAMPLE:
            raise InputError(
                f"{self._name}: samples reach {self._peak:g}, expected -1 to 1; "
                "integer samples stored as floats? divide them by their full scale"
            )
        if peak >= _FULL_SCALE:
            flat = (magnitude[1:] >= _FULL_SCALE) & (np.abs(np.diff(block, axis=0)) < 1e-4)
            self._n_clipped += int(flat.sum())
        self._n_samples += len(block)
        self._n_values += block.size
        self._lowest, self._highest = (
            min(self._lowest, float(mix.min())),
            max(self._highest, float(mix.max())),
        )
        hours = self._n_samples / self._sample_rate_hz / 3600
        check_limit("hours", hours, self._name, "cut it into single pieces")

    def finish(self) -> None:
        """Check the recording as a whole; warn with a `RecordingWarning` if it is clipped."""
        duration_sec = self._n_samples / self._sample_rate_hz
        if self._n_samples == 0:
            raise InputError(f"{self._name}: it contains no sound (0 samples)")
        if duration_sec < SHORTEST_SEC:
            raise InputError(
                f"{self._name}: {self._n_samples} samples, {1000 * duration_sec:.2g} ms; "
                f"expected at least {1000 * SHORTEST_SEC:g} ms of music"
            )
        if self._highest - self._lowest < _SILENCE:
            if self._peak > 100 * _SILENCE and max(self._highest, -self._lowest) < _SILENCE:
                raise InputError(
                    f"{self._name}: its channels cancel each other out when they are mixed; "
                    "save one of them as a mono file"
                )
            raise InputError(f"{self._name}: it is silent from start to end; expected music")
        share = self._n_clipped / self._n_values
        if share > _MAX_CLIPPED_SHARE:
            warnings.warn(
                f"{self._name}: {100 * share:.2g} % of the samples are clipped at full scale; "
                "a recording at a lower level would align better",
                RecordingWarning,
                stacklevel=2,
            )
