"""The level of a recording: models hear it, and quiet recordings are raised to what they are used to."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fusili_mir.arrays import Float64
from fusili_mir.audio.recording import Recording, as_recording

__all__ = ["level_gain", "loud_level_db"]

_PIECE_SEC = 0.4
_LOUD_QUANTILE = 0.95
_LEAST_DB, _USUAL_DB = -34.0, -22.0  # of full scale, in the loud parts
_MOST_GAIN_DB = 60.0  # what is still quieter is noise


def loud_level_db(recording: Recording) -> float:
    """Return the level of the loud parts of a recording in dB of full scale; -inf if there is no sound in it.

    Samples that are no numbers are left out: whoever reads the recording says so.
    """
    piece = max(1, round(_PIECE_SEC * recording.sample_rate_hz))
    rest = np.empty(0, np.float32)
    powers: list[Float64] = []
    for block in recording.blocks():
        with np.errstate(invalid="ignore"):
            mix = block.mean(axis=1, dtype=np.float32)
        samples = np.concatenate((rest, np.nan_to_num(mix, nan=0.0, posinf=0.0, neginf=0.0)))
        n_pieces = len(samples) // piece
        pieces, rest = samples[: n_pieces * piece].reshape(n_pieces, piece), samples[n_pieces * piece :]
        powers.append(np.square(pieces, dtype=np.float64).mean(axis=1))
    if len(rest) and not sum(map(len, powers)):
        powers.append(np.square(rest, dtype=np.float64).mean(keepdims=True))
    power = np.concatenate([np.zeros(0), *powers])
    loud = float(np.quantile(power, _LOUD_QUANTILE)) if len(power) else 0.0
    return 10 * float(np.log10(loud)) if loud > 0 else -np.inf


def level_gain(recording: str | Path | Recording) -> float:
    """Return what to multiply the samples of a recording by: 1 but for quiet ones."""
    level_db = loud_level_db(as_recording(recording))
    if not np.isfinite(level_db) or level_db >= _LEAST_DB:
        return 1.0
    return float(10 ** (min(_USUAL_DB - level_db, _MOST_GAIN_DB) / 20))
