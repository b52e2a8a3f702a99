"""Recordings: files, streams and arrays, read block by block, mixed down and resampled.

Nothing here holds a whole recording: a two-hour file needs only the memory of one block.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import soxr

from fusili_mir.arrays import Float32
from fusili_mir.audio.audio_file import AudioFile
from fusili_mir.audio.audio_samples import AudioSamples, Recording
from fusili_mir.audio.opening import RecordingLike, open_recording
from fusili_mir.audio.recording_checks import RecordingChecks, RecordingWarning
from fusili_mir.audio.recording_level import LevelMeter
from fusili_mir.errors import InputError
from fusili_mir.limits import limit

__all__ = [
    "AudioFile",
    "AudioSamples",
    "Recording",
    "RecordingLike",
    "RecordingWarning",
    "open_recording",
    "read_recording",
]

_MIN_RATE_HZ = 2_000


def read_recording(
    recording: RecordingLike,
    sample_rate_hz: int,
    progress: bool = False,
    level: LevelMeter | None = None,
) -> Iterator[Float32]:
    """Read a recording as mono blocks at a given sampling rate.

    Parameters
    ----------
    recording : str, Path, (samples, rate), file object or Recording
        Anything that `open_recording` opens.
    sample_rate_hz : int
        Sampling rate of the blocks.
    progress : bool
        Whether to show progress on standard error.
    level : LevelMeter, optional
        Meter that measures the recording on the way, at the recording's own sampling rate.

    Yields
    ------
    np.ndarray [shape=(n,)], float32
        Mean of the channels. Concatenated, the blocks do not depend on their sizes. Faults of the recording as a
        whole, such as silence, are known, and raised, only at its end.
    """
    recording = open_recording(recording)
    rate_hz = recording.sample_rate_hz
    most_hz = int(limit("sample_rate_hz"))
    if not _MIN_RATE_HZ <= rate_hz <= most_hz:
        raise InputError(
            f"{recording.name}: a sampling rate of {rate_hz} Hz, expected {_MIN_RATE_HZ} to {most_hz}"
        )
    checks = RecordingChecks(recording.name, rate_hz)
    resampler = None if rate_hz == sample_rate_hz else soxr.ResampleStream(rate_hz, sample_rate_hz, 1)
    for block in recording.blocks(progress):
        with np.errstate(invalid="ignore"):  # infinities of both signs, which the checks report
            mix = _mixed(block)
        checks.see(block, mix)
        if level is not None:
            level.see(mix)
        resampled = mix if resampler is None else resampler.resample_chunk(mix)
        if len(resampled):
            yield resampled
    checks.finish()
    if resampler is not None:
        rest = resampler.resample_chunk(np.empty(0, np.float32), last=True)
        if len(rest):
            yield rest


def _mixed(block: Float32) -> Float32:
    """Return the mean of the channels [shape=(n,)]."""
    if block.shape[1] == 2:  # many times as fast as a mean over rows of two
        return np.asarray((block[:, 0] + block[:, 1]) / np.float32(2), dtype=np.float32)
    return np.asarray(block.mean(axis=1, dtype=np.float32))
