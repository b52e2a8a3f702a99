"""What is heard before and after a segment, as in a recording of the whole piece.

A model whose frames have much context would otherwise learn that a recording begins where a system begins. Before
the first system and after the last one there may be applause, or somebody speaks.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fusili_mir.arrays import Float32
from fusili_mir.errors import InputError
from fusili_training.data.shard_folder import HeardClip, Pair
from fusili_training.sound.audience import audience
from fusili_training.truth import first_struck_sec

__all__ = ["with_neighbours"]

_LONGEST_SEC = 4.0
_AUDIENCE_DB = (-25.0, 3.0)  # relative to the music
_QUIET_SEC = 0.6  # longest pause between the music and the audience
_LOUDEST = 0.98  # single claps are cut off above
_FADE_SAMPLES = 320


def with_neighbours(
    pair: Pair,
    before: HeardClip | None,
    after: HeardClip | None,
    rng: np.random.Generator,
    has_audience: tuple[bool, bool] = (False, False),
) -> Pair:
    """Let a pair's recording begin in the clip before it and end in the clip after it.

    Clips of neighbouring segments overlap by their leads. From where a later clip begins, it has all notes, so it
    is heard from there on.

    Parameters
    ----------
    pair : Pair
    before, after : HeardClip or None
        Clips of the same performance; None: nothing of the music is added there.
    rng : np.random.Generator
        Decides how much is added, up to 4 s on either side.
    has_audience : (bool, bool)
        Whether an audience is heard before and after, where there is no clip.

    Returns
    -------
    Pair
        Its truth says when the notes of the segment sound now; those of the others are not in it. `own_sec` goes
        from the first note of the segment to that of the next one, or to the end of its own clip.
    """
    own = HeardClip(pair.waveform, pair.sample_rate_hz, pair.start_sec)
    longest = round(_LONGEST_SEC * pair.sample_rate_hz)
    hall = rng.spawn(1)[0]
    n_before, n_after = rng.integers(1, longest, size=2, endpoint=True)
    rate_hz = pair.sample_rate_hz
    sound, n_added, n_heard = pair.waveform, 0, len(pair.waveform)
    if after is not None:
        n_own = _samples_between(own, after, pair.key)
        sound = _joined(sound, after.waveform, n_own)[: n_own + n_after]
        n_heard = min(n_own, len(pair.waveform)) + round(after.first_sec * rate_hz)
    elif has_audience[1]:
        sound = np.concatenate([sound, *_audience(pair, int(n_after), hall)])
    if before is not None:
        n_own = min(_samples_between(before, own, pair.key), len(before.waveform))
        n_added = min(int(n_before), n_own)
        sound = _joined(before.waveform, sound, n_own)[n_own - n_added :]
    elif has_audience[0]:
        quiet, heard = _audience(pair, int(n_before), hall)
        n_added = len(quiet) + len(heard)
        sound = np.concatenate([heard, quiet, sound])
    truth = pair.truth.copy()
    truth["onset_sec"] += n_added / rate_hz
    truth["offset_sec"] += n_added / rate_hz
    own_sec = (
        n_added / rate_hz if before is None else first_struck_sec(truth),
        (n_added + n_heard) / rate_hz,
    )
    return replace(pair, waveform=sound, truth=truth, start_sec=None, own_sec=own_sec)


def _audience(pair: Pair, n_samples: int, rng: np.random.Generator) -> tuple[Float32, Float32]:
    """Return a pause and an audience, together [shape=(n_samples,)]."""
    n_quiet = min(n_samples, int(rng.uniform(0.0, _QUIET_SEC) * pair.sample_rate_hz))
    music = float(np.sqrt(np.mean(np.square(pair.waveform, dtype=np.float64)))) if len(pair.waveform) else 0.0
    level = np.float32(music * 10 ** (rng.uniform(*_AUDIENCE_DB) / 20))
    heard = level * audience(n_samples - n_quiet, pair.sample_rate_hz, rng)
    fade = min(_FADE_SAMPLES, len(heard) // 2)
    for edge in (heard[:fade], heard[len(heard) - fade :][::-1]):
        edge *= np.linspace(0.0, 1.0, fade, dtype=np.float32)
    loudest = max(float(np.abs(pair.waveform).max(initial=0.0)), _LOUDEST)
    return np.zeros(n_quiet, np.float32), heard.clip(-loudest, loudest)


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
