"""Recordings: files and arrays, read block by block, mixed down and resampled.

Nothing here holds a whole recording: a two-hour file needs only the memory of one block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import soundfile
import soxr

from fusili_mir.arrays import Float32
from fusili_mir.audio.recording_checks import RecordingChecks, RecordingWarning
from fusili_mir.audio.recording_level import LevelMeter
from fusili_mir.errors import InputError
from fusili_mir.progress import progress_bar

__all__ = ["AudioFile", "AudioSamples", "Recording", "RecordingWarning", "as_recording", "read_recording"]

_BLOCK_VALUES = 2**18  # samples of all channels together
_MIN_RATE_HZ, _MAX_RATE_HZ = 2_000, 800_000


class Recording(Protocol):
    """Anything that yields blocks of samples."""

    @property
    def name(self) -> str:
        """Name used in messages."""
        ...

    @property
    def sample_rate_hz(self) -> int:
        """Sampling rate of its blocks."""
        ...

    def blocks(self, progress: bool = False) -> Iterator[Float32]:
        """Yield blocks [shape=(n, channels)] with full scale 1; with a progress bar on a terminal if asked."""
        ...


@dataclass(frozen=True)
class AudioFile:
    """A file in any format that libsndfile reads: WAV, FLAC, MP3, OGG, AIFF, ..."""

    filename: Path

    @property
    def name(self) -> str:
        """The file's name."""
        return str(self.filename)

    @property
    def sample_rate_hz(self) -> int:
        """Sampling rate of the file."""
        with _open(self.filename) as sound:
            return int(sound.samplerate)

    def blocks(self, progress: bool = False) -> Iterator[Float32]:
        """Read the file from start to end."""
        with _open(self.filename) as sound:
            n_block = max(1, _BLOCK_VALUES // sound.channels)
            # The length in the header serves only the bar: damaged files and some MP3s are shorter or longer.
            for _ in progress_bar(range(0, sound.frames, n_block), "listening", shown=progress):
                block = _read(self.filename, sound, n_block)
                if not len(block):
                    return
                yield block
            while len(block := _read(self.filename, sound, n_block)):
                yield block


@dataclass(frozen=True)
class AudioSamples:
    """Sound in memory.

    Attributes
    ----------
    samples : np.ndarray [shape=(n,) or (n, channels)]
        Floats with full scale 1, or integers with the full scale of their type.
    sample_rate_hz : int
    name : str
        Name used in messages.

    Examples
    --------
    >>> recording = AudioSamples(np.array([0, 16384, -32768], np.int16), sample_rate_hz=16_000)
    >>> next(recording.blocks()).tolist()  # one channel, full scale 1
    [[0.0], [0.5], [-1.0]]
    """

    samples: npt.NDArray[Any]
    sample_rate_hz: int
    name: str = "the recording"

    def __post_init__(self) -> None:
        shape = self.samples.shape
        if self.samples.dtype.kind not in "fiu":
            raise InputError(
                f"{self.name}: samples of type {self.samples.dtype}, expected floats or integers"
            )
        if self.samples.ndim not in (1, 2) or 0 in shape[1:]:
            raise InputError(f"{self.name}: samples of shape {shape}, expected (n,) or (n, channels)")
        if self.samples.ndim == 2 and 0 < shape[0] < shape[1]:
            raise InputError(
                f"{self.name}: samples of shape {shape}, expected (n, channels); transpose the array"
            )

    def blocks(self, progress: bool = False) -> Iterator[Float32]:
        """Yield the samples, one block at a time."""
        samples = self.samples if self.samples.ndim == 2 else self.samples[:, None]
        n_block = max(1, _BLOCK_VALUES // samples.shape[1])
        for start in progress_bar(range(0, len(samples), n_block), "listening", shown=progress):
            yield _as_float(samples[start : start + n_block])


def as_recording(recording: str | Path | Recording) -> Recording:
    """Turn a file name into an `AudioFile`; return a recording unchanged."""
    return AudioFile(Path(recording)) if isinstance(recording, str | Path) else recording


def read_recording(
    recording: str | Path | Recording,
    sample_rate_hz: int,
    progress: bool = False,
    level: LevelMeter | None = None,
) -> Iterator[Float32]:
    """Read a recording as mono blocks at a given sampling rate.

    Parameters
    ----------
    recording : str, Path or Recording
        A file, or `AudioSamples`.
    sample_rate_hz : int
        Sampling rate of the blocks.
    progress : bool
        Whether to show a progress bar on a terminal.
    level : LevelMeter, optional
        Meter that measures the recording on the way, at the recording's own sampling rate.

    Yields
    ------
    np.ndarray [shape=(n,)], float32
        Mean of the channels. Concatenated, the blocks do not depend on their sizes. Faults of the recording as a
        whole, such as silence, are known, and raised, only at its end.
    """
    recording = as_recording(recording)
    rate_hz = recording.sample_rate_hz
    if not _MIN_RATE_HZ <= rate_hz <= _MAX_RATE_HZ:
        raise InputError(
            f"{recording.name}: a sampling rate of {rate_hz} Hz, expected {_MIN_RATE_HZ} to {_MAX_RATE_HZ}"
        )
    checks = RecordingChecks(recording.name, rate_hz)
    resampler = None if rate_hz == sample_rate_hz else soxr.ResampleStream(rate_hz, sample_rate_hz, 1)
    for block in recording.blocks(progress):
        with np.errstate(invalid="ignore"):  # infinities of both signs, which the checks report
            mix = block.mean(axis=1, dtype=np.float32)
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


class _ForwardFile(soundfile.SoundFile):  # type: ignore[misc]  # soundfile has no types
    """A file that is only read from start to end.

    soundfile seeks after every read of a seekable file, and libsndfile cannot seek exactly in MP3: each block
    would begin with a click.
    """

    def seekable(self) -> bool:
        return False


def _open(filename: Path) -> _ForwardFile:
    if not filename.is_file():
        found = "a folder" if filename.is_dir() else "not found"
        raise InputError(f"{filename}: {found}; expected a sound file")
    if filename.stat().st_size == 0:
        raise InputError(f"{filename}: the file is empty; expected a sound file")
    try:
        return _ForwardFile(filename)
    except (soundfile.LibsndfileError, TypeError, OSError) as error:
        # a file without a header, such as .raw, is a TypeError: its sampling rate would have to be given
        raise InputError(
            f"{filename}: not a sound file that can be read; expected WAV, FLAC, MP3, OGG, AIFF or another "
            "format that libsndfile reads"
        ) from error


def _read(filename: Path, sound: _ForwardFile, n_block: int) -> Float32:
    try:
        block: Float32 = sound.read(n_block, dtype="float32", always_2d=True)
    except (soundfile.LibsndfileError, OSError) as error:
        second = sound.tell() / sound.samplerate
        raise InputError(
            f"{filename}: damaged after {second:.1f} s ({error}); expected a complete file"
        ) from error
    return block


def _as_float(samples: npt.NDArray[Any]) -> Float32:
    """Convert samples to floats with full scale 1."""
    if samples.dtype.kind == "f":
        return samples.astype(np.float32)
    limits = np.iinfo(samples.dtype)
    half_range = (int(limits.max) - int(limits.min) + 1) / 2
    return ((samples - (limits.min + half_range)) / half_range).astype(np.float32)
