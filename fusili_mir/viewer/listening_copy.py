"""A recording as browsers play it, and its waveform.

A compressed file in a format that browsers know stays as it is. Everything else, such as WAV files, excerpts and
samples in memory, becomes FLAC: it loses nothing that can be heard, and its times are exact.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import soundfile
import soxr

from fusili_mir.arrays import Float32
from fusili_mir.audio.audio_samples import Recording
from fusili_mir.audio.excerpt import Excerpt, start_of
from fusili_mir.errors import InputError
from fusili_mir.viewer.embedded import Embedded

__all__ = ["SOUND_TYPES", "ListeningCopy", "listening_copy"]

_PLAYED = {
    ".mp3": "audio/mpeg",
    ".ogg": "audio/ogg",
    ".oga": "audio/ogg",
    ".opus": "audio/ogg",
    ".flac": "audio/flac",
    ".m4a": "audio/mp4",
    ".aac": "audio/aac",
    ".webm": "audio/webm",
}
SOUND_TYPES = frozenset(_PLAYED.values())
"""Media types of the sounds of a page."""

_MOST_RATE_HZ = 48_000
_MOST_FILE_BYTES = 256 * 2**20  # of a file that stays as it is: it is read into memory
_PEAK_SEC = 0.01
_MOST_PEAKS = 40_000


@dataclass(frozen=True)
class ListeningCopy:
    """A recording for a page.

    Attributes
    ----------
    sound : Embedded
        A file that browsers play.
    start_sec : float
        Second of the recording at which the file starts; not 0 for an excerpt.
    duration_sec : float
    peaks : str
        The waveform, in base64: one byte for each of equally long stretches, 255 for the loudest.
    """

    sound: Embedded
    start_sec: float
    duration_sec: float
    peaks: str = field(repr=False)


def listening_copy(recording: Recording) -> ListeningCopy:
    """Make a copy of a recording for a page; it is read once more."""
    own = _own_file(recording)
    waveform = _Waveform(recording.sample_rate_hz)
    if own is not None:
        for block in recording.blocks():
            waveform.see(block)
        sound = Embedded(own.read_bytes(), _PLAYED[own.suffix.lower()])
    else:
        sound = Embedded(_as_flac(recording, waveform), "audio/flac")
    return ListeningCopy(sound, start_of(recording), waveform.duration_sec, waveform.peaks())


def _own_file(recording: Recording) -> Path | None:
    """Return the file of a recording if a page can hold it as it is."""
    if isinstance(recording, Excerpt):
        return None
    filename = getattr(recording, "filename", None)
    try:
        if filename is None or Path(filename).suffix.lower() not in _PLAYED:
            return None
        return Path(filename) if Path(filename).stat().st_size <= _MOST_FILE_BYTES else None
    except OSError:
        return None


def _as_flac(recording: Recording, waveform: _Waveform) -> bytes:
    stream = io.BytesIO()
    rate_hz = min(recording.sample_rate_hz, _MOST_RATE_HZ)
    writer: soundfile.SoundFile | None = None
    for block in _at_rate(recording, rate_hz, waveform):
        if writer is None:
            writer = soundfile.SoundFile(
                stream, "w", rate_hz, block.shape[1], format="FLAC", subtype="PCM_16"
            )
        writer.write(np.clip(block, -1.0, 1.0))
    if writer is None:
        raise InputError(f"{recording.name}: it is empty; expected a recording")
    writer.close()
    return stream.getvalue()


def _at_rate(recording: Recording, rate_hz: int, waveform: _Waveform) -> Iterator[Float32]:
    """Read a recording in stereo at most, at a given rate."""
    resampler: soxr.ResampleStream | None = None
    for block in recording.blocks():
        waveform.see(block)
        heard = np.nan_to_num(block if block.shape[1] <= 2 else block.mean(axis=1, keepdims=True))
        if recording.sample_rate_hz == rate_hz:
            yield heard
            continue
        if resampler is None:
            resampler = soxr.ResampleStream(recording.sample_rate_hz, rate_hz, heard.shape[1])
        yield np.reshape(resampler.resample_chunk(heard), (-1, heard.shape[1]))
    if resampler is not None:
        rest = resampler.resample_chunk(np.empty((0, heard.shape[1]), np.float32), last=True)
        yield np.reshape(rest, (-1, heard.shape[1]))


class _Waveform:
    """The loudest sample in each hundredth of a second."""

    def __init__(self, rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self._size = max(1, round(_PEAK_SEC * rate_hz))
        self._peaks: list[Float32] = []
        self._rest = np.empty(0, np.float32)
        self._n_samples = 0

    def see(self, block: Float32) -> None:
        """See the next samples [shape=(n, channels)]."""
        loud = np.concatenate((self._rest, np.abs(np.nan_to_num(block)).max(axis=1)))
        n_whole = len(loud) // self._size
        self._peaks.append(loud[: n_whole * self._size].reshape(n_whole, self._size).max(axis=1))
        self._rest = loud[n_whole * self._size :]
        self._n_samples += len(block)

    @property
    def duration_sec(self) -> float:
        """Length of what was seen."""
        return self._n_samples / self._rate_hz

    def peaks(self) -> str:
        """Return the peaks as `ListeningCopy.peaks`."""
        peaks = np.concatenate([*self._peaks, [self._rest.max(initial=0.0)]])
        size = -(-len(peaks) // _MOST_PEAKS)
        peaks = np.pad(peaks, (0, -len(peaks) % size)).reshape(-1, size).max(axis=1)
        scaled = 255 * peaks / max(float(peaks.max()), 1e-9)
        return base64.b64encode(np.round(scaled).astype(np.uint8).tobytes()).decode("ascii")
