"""What is heard before and after a segment, as in a recording of the whole piece.

A model whose frames have much context would otherwise learn that a recording begins where a system begins.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fusili_mir.arrays import Float32
from fusili_training.data.shard_folder import Pair

__all__ = ["with_neighbours"]

_LONGEST_SEC = 4.0
_FADE_SEC = 0.02


def with_neighbours(
    pair: Pair, before: Float32 | None, after: Float32 | None, rng: np.random.Generator
) -> Pair:
    """Add the end of one clip before a pair's own, and the beginning of another after it.

    Parameters
    ----------
    pair : Pair
    before, after : np.ndarray [shape=(samples,)], float32, or None
        Clips at the sample rate of the pair's; None: nothing is added there.
    rng : np.random.Generator
        Decides how much is added, up to 4 s on either side.

    Returns
    -------
    Pair
        Its truth says when the notes of the segment sound now; those of the others are not in it.
    """
    longest = round(_LONGEST_SEC * pair.sample_rate_hz)
    n_before, n_after = rng.integers(1, longest, size=2, endpoint=True)
    fade = round(_FADE_SEC * pair.sample_rate_hz)
    sound, shift = pair.waveform, 0
    if before is not None:
        sound, shift = _joined(before[-n_before:], sound, fade)
    if after is not None:
        sound, _ = _joined(sound, after[:n_after], fade)
    truth = pair.truth.copy()
    truth["onset_sec"] += shift / pair.sample_rate_hz
    truth["offset_sec"] += shift / pair.sample_rate_hz
    return replace(pair, waveform=sound, truth=truth)


def _joined(first: Float32, second: Float32, fade: int) -> tuple[Float32, int]:
    """Return two sounds, one faded into the other, and the sample at which the second begins."""
    n_shared = min(fade, len(first), len(second))
    rising = (np.arange(n_shared, dtype=np.float32) + 0.5) / max(1, n_shared)
    start = len(first) - n_shared
    shared = first[start:] * (1 - rising) + second[:n_shared] * rising
    return np.concatenate([first[:start], shared, second[n_shared:]]), start
