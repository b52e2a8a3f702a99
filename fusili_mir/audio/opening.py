"""Opening what a user brings as a recording: a file, standard input, samples with their rate, a file object.

What it is, is found out when it is opened; nothing is decoded yet.
"""

from __future__ import annotations

import logging
import math
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np

from fusili_mir.arrays import Float32
from fusili_mir.audio.audio_file import AudioFile, check_readable
from fusili_mir.audio.audio_samples import AudioSamples, Recording
from fusili_mir.audio.excerpt import Excerpt
from fusili_mir.audio.ffmpeg_file import FfmpegFile
from fusili_mir.audio.midi_recording import is_midi_file, open_midi_recording
from fusili_mir.boundary import described, reason
from fusili_mir.brought_files import is_picture, refuse_project
from fusili_mir.errors import InputError
from fusili_mir.scores.score_formats import is_score_file

__all__ = ["STANDARD_INPUT", "RecordingLike", "open_recording"]

RecordingLike: TypeAlias = str | os.PathLike[str] | IO[bytes] | tuple[Any, Any] | Recording
"""Anything that `open_recording` opens."""

STANDARD_INPUT = "-"
"""Name of a recording that is read from standard input."""

_EXPECTED = "expected a file, (samples, rate), an open binary file or AudioSamples"
_MOST_CHANNELS = 64

_log = logging.getLogger("fusili_mir")


def open_recording(
    recording: RecordingLike, start_sec: float | None = None, end_sec: float | None = None
) -> Recording:
    """Open a recording, whatever it is given as.

    Parameters
    ----------
    recording : str, Path, (samples, rate), file object or Recording
        A file that libsndfile reads or, with the extra ``audio``, that the ffmpeg libraries read, even a video;
        a MIDI file, which is synthesised; ``"-"`` for standard input; samples with their rate, as librosa,
        soundfile, torchaudio and SciPy return them, of shape (n,), (n, channels) or (channels, n); an open
        binary file, read from its beginning if possible; `AudioSamples` or another `Recording`.
    start_sec, end_sec : float, optional
        Stretch of the recording to use. Times remain those of the whole recording.

    Returns
    -------
    Recording

    Raises
    ------
    InputError
        If it is not a recording.
    MissingExtraError
        If what is needed to read it is not installed.

    Examples
    --------
    >>> y, sr = np.zeros((2, 22050), np.float32), 22050  # stereo, as from librosa.load(..., mono=False)
    >>> open_recording((y, sr), start_sec=0.5).sample_rate_hz
    22050
    """
    opened = _open(recording)
    if opened is not recording and _log.isEnabledFor(logging.INFO):
        _log.info("recording: %s, %d Hz, read by %s", opened.name, opened.sample_rate_hz, _kind(opened))
    if start_sec is None and end_sec is None:
        return opened
    start, end = _seconds(start_sec, "start_sec"), _seconds(end_sec, "end_sec")
    return Excerpt(opened, start or 0.0, end)


def _open(given: Any) -> Recording:
    if isinstance(given, str | os.PathLike):
        return _open_path(given)
    if isinstance(given, tuple | list):
        return _open_pair(given)
    if hasattr(given, "blocks") and hasattr(given, "sample_rate_hz") and hasattr(given, "name"):
        opened: Recording = given
        return opened
    if hasattr(given, "read"):
        return _open_stream(given, str(getattr(given, "name", "the recording")))
    if hasattr(given, "__array__") and not np.isscalar(given):
        raise InputError(
            f"the recording: an array of shape {np.shape(given)} without its sampling rate; give "
            "(samples, rate), such as (y, sr) from librosa.load"
        )
    if isinstance(given, bytes | bytearray | memoryview):
        raise InputError("the recording: bytes; give a file name, or wrap the content in io.BytesIO")
    raise InputError(f"the recording is {described(given)}; {_EXPECTED}")


def _open_path(given: str | os.PathLike[str]) -> Recording:
    text = os.fspath(given)
    if not isinstance(text, str):
        raise InputError(f"the recording is {described(text)}; {_EXPECTED}")
    if text == STANDARD_INPUT:
        return _open_standard_input()
    filename = Path(text)
    if _is_stream(filename):  # a named pipe, or <(...) of a shell
        with filename.open("rb") as stream:
            return _open_stream(stream, text)
    return _open_file(filename)


def _open_standard_input() -> Recording:
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None or sys.stdin.isatty():
        raise InputError(
            "-: standard input is a terminal; expected a recording, as in `cat recording.wav | fusili-mir ... -`"
        )
    return _open_stream(stream, "standard input")


def _is_stream(filename: Path) -> bool:
    try:
        return filename.is_fifo() or filename.is_socket()
    except (OSError, ValueError):
        return False


def _open_file(filename: Path, label: str | None = None) -> Recording:
    """Find out what kind of file it is: MIDI, one that libsndfile reads, or one for the ffmpeg libraries."""
    check_readable(filename, label or str(filename))
    if is_midi_file(filename):
        return open_midi_recording(filename, label)
    sound: Recording = AudioFile(filename, label)
    try:
        _ = sound.sample_rate_hz
    except InputError as error:
        refuse_project(label or filename)
        if is_picture(filename) or is_score_file(filename):
            found = "an image or a PDF" if is_picture(filename) else "a score"
            name = label or str(filename)
            raise InputError(f"{name}: {found}, not a recording; expected a sound file") from error
        sound = FfmpegFile(filename, label)
        _ = sound.sample_rate_hz
    return sound


def _open_stream(stream: Any, name: str) -> Recording:
    """Copy a stream into a temporary file: recordings are opened more than once, and some need to be searched."""
    copied = _TemporaryCopy()
    try:
        if hasattr(stream, "seekable") and stream.seekable():
            stream.seek(0)
        with copied.filename.open("wb") as file:
            shutil.copyfileobj(stream, file)
    except TypeError as error:
        raise InputError(f"{name}: opened as text; open it in binary mode, 'rb'") from error
    except (OSError, ValueError) as error:  # a closed file is a ValueError
        raise InputError(f"{name}: cannot be copied to {tempfile.gettempdir()} ({reason(error)})") from error
    if copied.filename.stat().st_size == 0:
        raise InputError(f"{name}: it is empty; expected a sound file")
    return _CopiedRecording(_open_file(copied.filename, name), copied)


def _open_pair(given: tuple[Any, ...] | list[Any]) -> Recording:
    """Open samples with their rate; SciPy returns the rate first."""
    if len(given) != 2:
        raise InputError(
            f"the recording: a {type(given).__name__} of {len(given)}, expected two: (samples, rate)"
        )
    samples, rate = given
    if _is_number(samples) and not _is_number(rate):
        samples, rate = rate, samples
    if not _is_number(rate) or _is_number(samples) or isinstance(samples, str | bytes):
        raise InputError(
            f"the recording is ({described(given[0])}, {described(given[1])}); expected (samples, rate), such as "
            "(y, sr) from librosa.load"
        )
    rate_hz = float(rate)
    if not (math.isfinite(rate_hz) and rate_hz == round(rate_hz) and rate_hz > 0):
        raise InputError(f"the recording: a sampling rate of {rate_hz:g} Hz, expected a whole number above 0")
    try:
        array = np.asarray(samples)
    except (ValueError, TypeError, RuntimeError) as error:
        raise InputError(
            f"the recording: samples that are not an array ({described(samples)}); {_EXPECTED}"
        ) from error
    if array.ndim == 2 and array.shape[0] < array.shape[1]:
        array = array.T  # (channels, n), as librosa and torchaudio have it
    if array.ndim == 2 and array.shape[1] > _MOST_CHANNELS:
        raise InputError(
            f"the recording: samples of shape {np.shape(samples)}, expected (n,), (n, channels) or "
            f"(channels, n) with at most {_MOST_CHANNELS} channels"
        )
    return AudioSamples(array, int(rate_hz))


@dataclass(frozen=True, eq=False)
class _TemporaryCopy:
    """A temporary file that is removed when nobody needs it any longer."""

    filename: Path = field(default_factory=lambda: _new_temporary_file())

    def __post_init__(self) -> None:
        weakref.finalize(self, _remove, self.filename)


def _new_temporary_file() -> Path:
    try:
        handle, name = tempfile.mkstemp(prefix="fusili-mir-")
    except OSError as error:
        raise InputError(
            f"no temporary file can be created in {tempfile.gettempdir()} ({error.strerror}); set TMPDIR to "
            "another folder"
        ) from error
    os.close(handle)
    return Path(name)


def _remove(filename: Path) -> None:
    filename.unlink(missing_ok=True)


@dataclass(frozen=True, eq=False)
class _CopiedRecording:
    """A recording in a temporary file, which it keeps."""

    recording: Recording
    copied: _TemporaryCopy = field(repr=False)

    @property
    def name(self) -> str:
        return self.recording.name

    @property
    def sample_rate_hz(self) -> int:
        return self.recording.sample_rate_hz

    def blocks(self, progress: bool = False) -> Iterator[Float32]:
        yield from self.recording.blocks(progress)


def _seconds(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if not _is_number(value) or math.isnan(float(value)):
        raise InputError(f"{name} is {described(value)}; expected a number of seconds")
    return float(value)


def _is_number(value: Any) -> bool:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _kind(recording: Recording) -> str:
    while isinstance(recording, _CopiedRecording):
        recording = recording.recording
    return type(recording).__name__
