"""A recording that has been read once: mono samples at the model's sampling rate and at a usual level.

The length and the level of a recording, and whether it is usable at all, are known only at its end. So it is
read, checked and resampled first, and its samples are set aside: in memory if they are few, otherwise in a
temporary file. Encoding reads them from there.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from types import TracebackType

import numpy as np

from fusili_mir.arrays import Float32
from fusili_mir.audio.excerpt import start_of
from fusili_mir.audio.recording import RecordingLike, open_recording, read_recording
from fusili_mir.audio.recording_level import LevelMeter
from fusili_mir.errors import InputError
from fusili_mir.progress import progress_bar

__all__ = ["HeardRecording"]

_SAMPLE_BYTES = np.dtype(np.float32).itemsize
_BLOCK_SAMPLES = 2**16  # meters hold a hundred times as much, in overlapping windows
_SILENCE = 5e-5  # half of what `recording_checks` takes for a sound: dither of 16 bits
_IN_MEMORY_BYTES = 2**26  # 17 minutes at 16 kHz; longer recordings go to a temporary file


class HeardRecording:
    """A recording, read once; a context manager that removes the temporary file on exit.

    Parameters
    ----------
    recording : str, Path, (samples, rate), file object or Recording
        Anything that `open_recording` opens.
    sample_rate_hz : int
        Sampling rate to which it is resampled.
    progress : bool
        Whether to show progress on standard error.

    Attributes
    ----------
    recording : Recording
        The recording that was read.
    name : str
        Name used in messages.
    start_sec : float
        Second of the recording at which its samples start; not 0 for an excerpt.
    gain : float
        Factor by which its samples have been multiplied; 1 unless the recording is quiet.
    usual_gain : float
        Further factor that brings the loud parts to the usual level.
    """

    def __init__(self, recording: RecordingLike, sample_rate_hz: int, progress: bool = False) -> None:
        recording = open_recording(recording)
        level = LevelMeter(recording.sample_rate_hz)
        self.recording = recording
        self.name, self.start_sec = recording.name, start_of(recording)
        self.sample_rate_hz = sample_rate_hz
        self._n_samples = 0
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)  # noqa: SIM115
        try:
            for block in read_recording(recording, sample_rate_hz, progress, level):
                self._set_aside(block)
            self._end_file()
        except BaseException as error:
            self._file.close()
            if isinstance(error, OSError) and not isinstance(error, InputError):
                raise InputError(
                    f"{recording.name}: its samples cannot be stored in {tempfile.gettempdir()} "
                    f"({error.strerror}); free some space there, or set TMPDIR to another folder"
                ) from error
            raise
        self.gain = level.gain
        self.usual_gain = level.usual_gain / self.gain

    def _set_aside(self, block: Float32) -> None:
        """Write a block to the file; silence is a hole in it, which takes no room on most disks."""
        self._n_samples += len(block)
        if block.any():
            self._file.write(block.tobytes())
            return
        self._file.seek(block.nbytes, os.SEEK_CUR)
        if self._file.tell() > _IN_MEMORY_BYTES:
            self._file.rollover()  # before a hole is filled in memory

    def _end_file(self) -> None:
        """Let the file reach up to the last sample, if it ends with a hole."""
        self._file.seek(0, os.SEEK_END)
        n_bytes = self._n_samples * _SAMPLE_BYTES
        if self._file.tell() < n_bytes:
            self._file.seek(n_bytes - 1)
            self._file.write(b"\0")

    def __len__(self) -> int:
        return self._n_samples

    def __repr__(self) -> str:
        return f"HeardRecording({self.name!r}, {self.duration_sec:.1f} s, {self.sample_rate_hz} Hz)"

    @property
    def duration_sec(self) -> float:
        """Length of the recording."""
        return self._n_samples / self.sample_rate_hz

    def blocks(self, progress: bool = False) -> Iterator[Float32]:
        """Yield its samples in order, in blocks [shape=(n,)]; with progress shown if asked."""
        self._file.seek(0)
        n_bytes = _BLOCK_SAMPLES * _SAMPLE_BYTES
        starts = range(0, self._n_samples, _BLOCK_SAMPLES)
        for _ in progress_bar(starts, "encoding the recording", shown=progress):
            yield _gated(np.float32(self.gain) * np.frombuffer(self._file.read(n_bytes), np.float32))

    def read(self, first: int, last: int) -> Float32:
        """Return the samples ``first <= sample < last`` [shape=(n,)]."""
        self._file.seek(first * _SAMPLE_BYTES)
        n_bytes = max(0, last - first) * _SAMPLE_BYTES
        return np.float32(self.gain) * np.frombuffer(self._file.read(n_bytes), np.float32)

    def __enter__(self) -> HeardRecording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def _gated(block: Float32) -> Float32:
    """Return seconds of dither as seconds of zeros, which cost nothing further on."""
    return block if np.abs(block).max(initial=0.0) > _SILENCE else np.zeros_like(block)
