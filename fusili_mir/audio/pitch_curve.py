"""The pitch of a recording over time, and reading the recording as if it had another pitch.

Resampling changes pitch and speed together and leaves no artefacts. A recording that sounds some cents above the
score is slowed down by as much, so it sounds at the pitch of the score. Its times are known at every sample: the
recording is resampled in pieces of equal length, each with a ratio of whole numbers of samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import soxr

from fusili_mir.arrays import Float32, Float64, Int64
from fusili_mir.errors import InputError

__all__ = ["PitchCurve", "Retuning"]

_PIECE_SAMPLES = 2**15
_MOST_CENTS = 2400.0


@dataclass(frozen=True)
class PitchCurve:
    """How far a recording sounds above its score.

    Attributes
    ----------
    seconds : np.ndarray [shape=(n,)]
        Times within the recording. Strictly increasing.
    cents : np.ndarray [shape=(n,)]
        Pitch at these times, linear between them, and constant before the first and after the last.
    """

    seconds: Float64
    cents: Float64

    def __post_init__(self) -> None:
        if (
            not len(self.seconds)
            or self.seconds.shape != self.cents.shape
            or np.any(np.diff(self.seconds) <= 0)
        ):
            raise InputError(
                f"a curve of {len(self.cents)} pitches at {len(self.seconds)} times; expected as many, in order"
            )
        if not np.all(np.abs(self.cents) <= _MOST_CENTS):
            raise InputError(
                f"a pitch {np.abs(self.cents).max():g} cents away; expected at most {_MOST_CENTS:g}"
            )

    @classmethod
    def constant(cls, cents: float) -> PitchCurve:
        """Return a curve that does not move."""
        return cls(np.zeros(1), np.array([cents], dtype=np.float64))

    @property
    def is_constant(self) -> bool:
        """Whether the pitch stays the same."""
        return float(np.ptp(self.cents)) == 0.0

    def at(self, seconds: npt.ArrayLike) -> Float64:
        """Return the cents at some times.

        >>> PitchCurve(np.array([0.0, 10.0]), np.array([-20.0, 20.0])).at([-5.0, 7.5]).tolist()
        [-20.0, 10.0]
        """
        return np.asarray(np.interp(np.asarray(seconds, np.float64), self.seconds, self.cents))

    def raised(self, cents: float) -> PitchCurve:
        """Return the curve, higher by some cents."""
        return PitchCurve(self.seconds, self.cents + cents)


class Retuning:
    """Reads a recording as if it were at the pitch of its score.

    Parameters
    ----------
    curve : PitchCurve
        Pitch of the recording relative to the score.
    n_samples : int
        Length of the recording.
    sample_rate_hz : int
        Sampling rate of the recording, and of what is read.
    start_sec : float
        Second of the recording at which its samples start.

    Attributes
    ----------
    start_sec, duration_sec : float
        Start and length of the recording, in its own seconds.
    """

    def __init__(
        self, curve: PitchCurve, n_samples: int, sample_rate_hz: int, start_sec: float = 0.0
    ) -> None:
        n_pieces = max(1, -(-n_samples // _PIECE_SAMPLES))
        middles_sec = start_sec + (np.arange(n_pieces) + 0.5) * _PIECE_SAMPLES / sample_rate_hz
        lengths = np.rint(_PIECE_SAMPLES * 2 ** (curve.at(middles_sec) / 1200)).astype(np.int64)
        self._sizes: Int64 = lengths  # samples that each piece becomes
        self._rate_hz = sample_rate_hz
        self.start_sec, self.duration_sec = start_sec, n_samples / sample_rate_hz
        self._edges_sec = start_sec + np.arange(n_pieces + 1) * (_PIECE_SAMPLES / sample_rate_hz)
        self._read_sec = np.append(0, np.cumsum(lengths)) / sample_rate_hz

    @property
    def is_steady(self) -> bool:
        """Whether the same number of seconds is read for each second of the recording."""
        return bool(np.all(self._sizes == self._sizes[0]))

    @property
    def mean_ratio(self) -> float:
        """Seconds that are read for each second of the recording, on average."""
        if self.is_steady:
            return float(self._sizes[0]) / _PIECE_SAMPLES
        return float(self.to_read_sec(self.end_sec)) / self.duration_sec

    @property
    def end_sec(self) -> float:
        """End of the recording."""
        return self.start_sec + self.duration_sec

    @property
    def n_read(self) -> int:
        """Number of samples that are read."""
        return round(float(self.to_read_sec(self.end_sec)) * self._rate_hz)

    def to_read_sec(self, seconds: npt.ArrayLike) -> Float64:
        """Return how many seconds have been read at a second of the recording."""
        return np.asarray(np.interp(np.asarray(seconds, np.float64), self._edges_sec, self._read_sec))

    def read(self, blocks: Iterable[Float32]) -> Iterator[Float32]:
        """Read blocks [shape=(n,)] of the recording, resampled."""
        before = np.zeros(_PIECE_SAMPLES, np.float32)
        here: Float32 | None = None
        left = self.n_read
        sizes = iter(self._sizes.tolist())
        for after in self._pieces(blocks):
            if here is not None:
                # The pieces around give the filter of the resampler what it needs at the edges.
                read = _resampled(np.concatenate((before, here, after)), next(sizes))[:left]
                left -= len(read)
                yield read
                before = here
            here = after

    def _pieces(self, blocks: Iterable[Float32]) -> Iterator[Float32]:
        """Cut the recording into pieces of equal length, filled up with silence, and add a silent one."""
        rest = np.empty(0, np.float32)
        for block in blocks:
            rest = np.concatenate((rest, block))
            while len(rest) >= _PIECE_SAMPLES:
                yield rest[:_PIECE_SAMPLES]
                rest = rest[_PIECE_SAMPLES:]
        if len(rest):
            yield np.pad(rest, (0, _PIECE_SAMPLES - len(rest)))
        yield np.zeros(_PIECE_SAMPLES, np.float32)


def _resampled(three_pieces: Float32, size: int) -> Float32:
    """Resample three pieces, each to `size` samples, and return the middle one."""
    if size == _PIECE_SAMPLES:
        return three_pieces[size : 2 * size]
    return np.asarray(soxr.resample(three_pieces, _PIECE_SAMPLES, size)[size : 2 * size], dtype=np.float32)
