"""Sound files and videos that the ffmpeg libraries read, through PyAV: M4A, MP4, WebM, MKV, WMA, ...

Of a file with several audio streams the first is read. Times are those that a player shows: where the sound of a
video begins late, or is interrupted, silence is put in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from fusili_mir.arrays import Float32
from fusili_mir.audio import audio_samples
from fusili_mir.audio.audio_file import check_readable
from fusili_mir.audio.audio_samples import blocks_with_bar
from fusili_mir.boundary import reason
from fusili_mir.errors import FusiliError, InputError, MissingExtraError

if TYPE_CHECKING:
    import av

__all__ = ["FfmpegFile", "pyav_version"]

_LEAST_GAP_SEC = 0.05  # time stamps of some formats are in milliseconds, and those of streams jitter
_MOST_GAP_SEC = 10.0  # a longer gap in the middle is a clock that was set anew
_EXPECTED = "expected WAV, FLAC, MP3, OGG, M4A, MP4, WebM or another format that ffmpeg reads"
_NO_PROTOCOLS = {"protocol_whitelist": "none"}  # playlists must not open other files or addresses


def pyav_version() -> str | None:
    """Return the version of PyAV; None if it is not installed."""
    try:
        return str(_pyav("").__version__)
    except MissingExtraError:
        return None


@dataclass(frozen=True)
class FfmpegFile:
    """A file in any format that the ffmpeg libraries read; needs the extra ``audio``.

    Attributes
    ----------
    filename : Path
    label : str, optional
        Name used in messages, if it is not that of the file.
    """

    filename: Path
    label: str | None = None

    @property
    def name(self) -> str:
        """Name used in messages."""
        return self.label or str(self.filename)

    @property
    def sample_rate_hz(self) -> int:
        """Sampling rate of the first audio stream."""
        with self._open() as (_, stream):
            return int(stream.codec_context.sample_rate)

    def blocks(self, progress: bool = False) -> Iterator[Float32]:
        """Read the first audio stream from start to end."""
        with self._open() as (container, stream):
            rate_hz = int(stream.codec_context.sample_rate)
            n_block = max(1, audio_samples.BLOCK_VALUES // max(1, stream.codec_context.channels))
            expected_sec = (container.duration or 0) / 1_000_000  # serves only the bar
            n_expected = -(-int(max(expected_sec, 0.0) * rate_hz) // n_block)
            pieces = _pieces(self.name, container, stream, rate_hz)
            yield from blocks_with_bar(_joined(pieces, n_block), n_expected, progress)

    @contextmanager
    def _open(self) -> Iterator[tuple[av.container.InputContainer, av.AudioStream]]:
        check_readable(self.filename, self.name)
        pyav = _pyav(self.name)
        try:
            with (
                self.filename.open("rb") as file,
                pyav.open(_ForgivingFile(file), options=_NO_PROTOCOLS) as container,
            ):
                streams = [stream for stream in container.streams.audio if stream.codec_context is not None]
                if not streams:
                    raise InputError(
                        f"{self.name}: not a sound file that can be read (it has no audio stream); {_EXPECTED}"
                    )
                if not streams[0].codec_context.sample_rate:
                    raise InputError(f"{self.name}: a damaged sound file; its sampling rate is missing")
                yield container, streams[0]
        except FusiliError:
            raise
        except Exception as error:  # the errors of ffmpeg's libraries have no base in common with Python's
            raise InputError(
                f"{self.name}: not a sound file that can be read ({reason(error)}); {_EXPECTED}"
            ) from error


class _ForgivingFile:
    """A file in which one may seek wherever a damaged header says: PyAV would print a traceback."""

    def __init__(self, file: IO[bytes]) -> None:
        self.name, self.read, self.tell, self._seek = file.name, file.read, file.tell, file.seek

    def seek(self, offset: int, whence: int = 0) -> int:
        try:
            return self._seek(offset, whence)
        except (OSError, ValueError):
            return -1  # as C says that it failed


def _pyav(name: str) -> ModuleType:
    try:
        import av
    except ImportError as error:
        raise MissingExtraError(
            f"{name}: not a sound file that libsndfile reads; M4A, MP4, WebM, video and others need the extra "
            "audio: pip install 'fusili-mir[audio]'"
        ) from error
    return av


def _damaged(pyav: ModuleType) -> tuple[type[Exception], ...]:
    return pyav.FFmpegError, OSError, ValueError, IndexError


def _pieces(name: str, container: Any, stream: Any, rate_hz: int) -> Iterator[Float32]:
    """Yield the sound of each packet [shape=(n, channels)], and silence where the time stamps leave a gap."""
    n_samples = 0  # since the start of the file
    n_channels = 0
    start_sec = (container.start_time or 0) / 1_000_000
    for frame, sound in _decoded(name, container, stream, rate_hz):
        if n_channels and sound.shape[1] != n_channels:  # mono passages of a broadcast, say
            sound = np.repeat(sound.mean(axis=1, dtype=np.float32, keepdims=True), n_channels, axis=1)
        is_first, n_channels = n_channels == 0, sound.shape[1]
        gap_sec = 0.0 if frame is None or frame.time is None else frame.time - start_sec - n_samples / rate_hz
        if gap_sec > _LEAST_GAP_SEC and (is_first or gap_sec <= _MOST_GAP_SEC):
            n_missing = round(gap_sec * rate_hz)
            for begin in range(0, n_missing, rate_hz):
                yield np.zeros((min(rate_hz, n_missing - begin), n_channels), np.float32)
            n_samples += n_missing
        n_samples += len(sound)
        yield sound


def _decoded(name: str, container: Any, stream: Any, rate_hz: int) -> Iterator[tuple[Any, Float32]]:
    """Decode a stream to floats at one sampling rate; with each piece comes the frame that it begins with."""
    from av import AudioResampler

    resampler, kind = None, None
    n_samples = 0
    try:
        for frame in container.decode(stream):
            if (frame.format.name, frame.layout.name, frame.sample_rate) != kind:
                if resampler is not None:
                    for rest in resampler.resample(None):
                        yield None, _samples(rest)
                kind = (frame.format.name, frame.layout.name, frame.sample_rate)
                resampler = AudioResampler(format="fltp", layout=frame.layout, rate=rate_hz)
            assert resampler is not None  # noqa: S101
            for number, piece in enumerate(resampler.resample(frame)):
                n_samples += piece.samples
                yield (frame if number == 0 else None), _samples(piece)
        if resampler is not None:
            for rest in resampler.resample(None):
                yield None, _samples(rest)
    except _damaged(_pyav(name)) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{name}: damaged after {n_samples / rate_hz:.1f} s ({reason(error)}); expected a complete file"
        ) from error


def _samples(frame: Any) -> Float32:
    return np.asarray(frame.to_ndarray().T, np.float32)


def _joined(pieces: Iterable[Float32], n_block: int) -> Iterator[Float32]:
    """Join pieces to blocks of at least `n_block` samples; the last one may be shorter."""
    waiting: list[Float32] = []
    n_waiting = 0
    for piece in pieces:
        waiting.append(piece)
        n_waiting += len(piece)
        if n_waiting >= n_block:
            yield np.concatenate(waiting)
            waiting, n_waiting = [], 0
    if n_waiting:
        yield np.concatenate(waiting)
