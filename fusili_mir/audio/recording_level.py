"""The level of a recording: models are sensitive to it, so quiet recordings are amplified to a usual level."""

from __future__ import annotations

import numpy as np

from fusili_mir.arrays import Float32, Float64

__all__ = ["LevelMeter"]

_PIECE_SEC = 0.4
_LOUD_QUANTILE = 0.95
_LEAST_DB, _USUAL_DB = -34.0, -22.0  # relative to full scale, in the loud parts
_MOST_GAIN_DB = 60.0  # anything still quieter is noise


class LevelMeter:
    """Measures the level of a recording that streams past, block by block.

    Parameters
    ----------
    sample_rate_hz : int
        Sampling rate of the blocks.

    Examples
    --------
    >>> meter = LevelMeter(sample_rate_hz=16_000)
    >>> meter.see(np.full(16_000, 0.001, np.float32))
    >>> round(meter.loud_db), round(20 * np.log10(meter.gain))  # it is amplified to -22 dB
    (-60, 38)
    """

    def __init__(self, sample_rate_hz: int) -> None:
        self._piece = max(1, round(_PIECE_SEC * sample_rate_hz))
        self._rest = np.empty(0, np.float32)
        self._powers: list[Float64] = []

    def see(self, mix: Float32) -> None:
        """Measure a block [shape=(n,)]."""
        samples = np.concatenate((self._rest, mix))
        n_pieces = len(samples) // self._piece
        pieces = samples[: n_pieces * self._piece].reshape(n_pieces, self._piece)
        self._rest = samples[n_pieces * self._piece :]
        self._powers.append(np.square(pieces, dtype=np.float64).mean(axis=1))

    @property
    def loud_db(self) -> float:
        """The level of the loud parts in dB relative to full scale; -inf for silence."""
        powers = self._powers
        if len(self._rest) and not sum(map(len, powers)):
            powers = [np.square(self._rest, dtype=np.float64).mean(keepdims=True)]
        power = np.concatenate([np.zeros(0), *powers])
        loud = float(np.quantile(power, _LOUD_QUANTILE)) if len(power) else 0.0
        return 10 * float(np.log10(loud)) if loud > 0 else -np.inf

    @property
    def usual_gain(self) -> float:
        """The factor that brings the loud parts to the usual level, quiet or not."""
        level_db = self.loud_db
        return float(10 ** ((_USUAL_DB - level_db) / 20)) if np.isfinite(level_db) else 1.0

    @property
    def gain(self) -> float:
        """Factor that brings the samples to a usual level; 1 unless they are quiet."""
        level_db = self.loud_db
        if not np.isfinite(level_db) or level_db >= _LEAST_DB:
            return 1.0
        return float(10 ** (min(_USUAL_DB - level_db, _MOST_GAIN_DB) / 20))
