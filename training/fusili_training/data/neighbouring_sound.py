"""What is heard before and after a segment, as in a recording of the whole piece.

A model whose frames have much context would otherwise learn that a recording begins where a system begins.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fusili_mir.arrays import Float32
from fusili_mir.errors import InputError
from fusili_training.data.shard_folder import HeardClip, Pair

__all__ = ["with_neighbours"]

_LONGEST_SEC = 4.0
_FADE_SAMPLES = 320


def with_neighbours(
    pair: Pair, before: HeardClip | None, after: HeardClip | None, rng: np.random.Generator
) -> Pair:
    """Let a pair's recording begin in the clip before it and end in the clip after it.

    Clips of neighbouring segments overlap by their leads. From where a later clip begins, it has all notes, so it
    is heard from there on.

    Parameters
    ----------
    pair : Pair
    before, after : HeardClip or None
        Clips of the same performance; None: nothing is added there.
    rng : np.random.Generator
        Decides how much is added, up to 4 s on either side.

    Returns
    -------
    Pair
        Its truth says when the notes of the segment sound now; those of the others are not in it.
    """
    own = HeardClip(pair.waveform, pair.sample_rate_hz, pair.start_sec)
    longest = round(_LONGEST_SEC * pair.sample_rate_hz)
    n_before, n_after = rng.integers(1, longest, size=2, endpoint=True)
    sound, n_added = pair.waveform, 0
    if after is not None:
        n_own = _samples_between(own, after, pair.key)
        sound = _joined(sound, after.waveform, n_own)[: n_own + n_after]
    if before is not None:
        n_own = _samples_between(before, own, pair.key)
        n_added = min(int(n_before), n_own)
        sound = _joined(before.waveform, sound, n_own)[n_own - n_added :]
    truth = pair.truth.copy()
    truth["onset_sec"] += n_added / pair.sample_rate_hz
    truth["offset_sec"] += n_added / pair.sample_rate_hz
    return replace(pair, waveform=sound, truth=truth, start_sec=None)


def _samples_between(first: HeardClip, second: HeardClip, key: str) -> int:
    """Return how many samples after the first clip the second begins."""
    if first.start_sec is None or second.start_sec is None:
        raise InputError(
            f"the pair {key} does not say when it begins in its piece; to train with neighbouring sound, render"
            " it again, or set augmentation.neighbour_probability to 0"
        )
    if first.sample_rate_hz != second.sample_rate_hz:
        raise InputError(
            f"the pair {key} and its neighbour have {first.sample_rate_hz} and {second.sample_rate_hz} Hz;"
            " expected the same sample rate"
        )
    return max(0, round((second.start_sec - first.start_sec) * first.sample_rate_hz))


def _joined(first: Float32, second: Float32, start: int) -> Float32:
    """Return a sound that turns into another at a sample, with a short fade where both are heard."""
    start = min(start, len(first))  # a gap between them is left out
    n_shared = min(_FADE_SAMPLES, len(first) - start, len(second))
    rising = (np.arange(n_shared, dtype=np.float32) + 0.5) / max(1, n_shared)
    shared = first[start : start + n_shared] * (1 - rising) + second[:n_shared] * rising
    return np.concatenate([first[:start], shared, second[n_shared:]])
