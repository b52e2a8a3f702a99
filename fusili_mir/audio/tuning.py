"""The tuning of a recording: how far its pitches lie from those of an instrument with A at 440 Hz.

Peaks of the spectrum are counted modulo a semitone. In music their pitches crowd around one place, the tuning;
what lies between (vibrato, the fifth and seventh partials, noise) is spread or weak. Over time the place may
move, as on a tape that runs unevenly: then a curve is found that moves slowly and stays where the pitches are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fusili_mir.arrays import Float64, Int64
from fusili_mir.audio.pitch_curve import PitchCurve
from fusili_mir.audio.spectral_peaks import SpectralPeaks

__all__ = ["Tuning", "estimate_tuning", "follow_tuning"]

_SEMITONE = 100  # cents, and bins of a histogram
_KERNEL_CENTS = 8.0
_REACH_CENTS = 20.0  # peaks that are further away from the tuning do not count as in tune
_KERNEL_AREA = _KERNEL_CENTS * np.sqrt(2 * np.pi)
_CLEAR = 1.5  # least `Tuning.clarity` of music
_SEGMENT_SEC = 5.0
_FASTEST_CENTS = 2  # per segment: 24 cents a minute
_STEP_COST = 0.15  # of moving by a cent, relative to what an average segment gains by being in tune
_SMOOTHED_SEC = 30.0
_LEAST_DRIFT_CENTS = 20.0  # from lowest to highest: the model is not harmed by half of it
_LEAST_DRIFT_SEC = 60.0


@dataclass(frozen=True)
class Tuning:
    """The tuning of a stretch of sound.

    Attributes
    ----------
    cents : float
        Distance of its pitches from those of an instrument with A at 440 Hz, -50 to 50.
    clarity : float
        How much more often pitches lie there than on average; 1 in noise.
    """

    cents: float
    clarity: float

    @property
    def is_clear(self) -> bool:
        """Whether there is a tuning at all."""
        return self.clarity >= _CLEAR


def estimate_tuning(peaks: SpectralPeaks) -> Tuning:
    """Find the tuning of a stretch of sound.

    Parameters
    ----------
    peaks : SpectralPeaks

    Returns
    -------
    Tuning
        Clarity is 1 if there are no peaks.

    Examples
    --------
    >>> cents = np.array([0.0, 200.0, 400.0, 700.0]) + 1200 * np.log2(415 / 440)
    >>> peaks = SpectralPeaks(np.zeros(4), cents, np.ones(4), step_sec=0.25)
    >>> round(estimate_tuning(peaks).cents, 2)  # 415 Hz are 101.27 cents below 440 Hz
    -1.27
    """
    if not len(peaks) or not peaks.magnitude.any():
        return Tuning(0.0, 1.0)
    density = _smooth(_histogram(peaks.cents, peaks.magnitude))
    cents = float(density.argmax())
    for _ in range(8):  # to the mean of the pitches around it
        away = _nearest(peaks.cents - cents)
        weight = np.where(np.abs(away) < _REACH_CENTS, peaks.magnitude, 0.0)
        cents += float((weight * away).sum() / max(weight.sum(), 1e-30))
    return Tuning(float(_nearest(np.array(cents))), float(density.max() / density.mean()))


def follow_tuning(peaks: SpectralPeaks) -> PitchCurve | None:
    """Find how the tuning of a recording drifts.

    Parameters
    ----------
    peaks : SpectralPeaks
        Peaks of a whole recording.

    Returns
    -------
    PitchCurve or None
        Cents above an instrument with A at 440 Hz at each time, modulo 100; None for a recording that does not
        drift, or whose tuning is not clear.
    """
    if not len(peaks) or peaks.seconds[-1] - peaks.seconds[0] < _LEAST_DRIFT_SEC:
        return None
    segment = ((peaks.seconds - peaks.seconds[0]) / _SEGMENT_SEC).astype(np.int64)
    n_segments = int(segment[-1]) + 1
    histograms = np.zeros((n_segments, _SEMITONE))
    np.add.at(histograms, (segment, np.rint(peaks.cents).astype(np.int64) % _SEMITONE), peaks.magnitude)
    loud = histograms.sum(axis=1, keepdims=True)
    share = np.divide(histograms, loud, out=np.full_like(histograms, 1 / _SEMITONE), where=loud > 0)
    steady = _steady_curve(_smooth(share) / _KERNEL_AREA - 1 / _SEMITONE)
    away = _nearest(peaks.cents - steady[segment])
    weight = np.where(np.abs(away) < _REACH_CENTS, peaks.magnitude / loud[segment, 0], 0.0)
    in_tune = np.bincount(segment, weight, n_segments).astype(np.float64)
    cents = steady + np.bincount(segment, weight * away, n_segments) / np.maximum(in_tune, 1e-30)
    smooth = _smooth_curve(cents, in_tune, round(_SMOOTHED_SEC / _SEGMENT_SEC))
    seconds = peaks.seconds[0] + (np.arange(n_segments) + 0.5) * _SEGMENT_SEC
    curve = PitchCurve(seconds, smooth)
    followed = replace(peaks, cents=peaks.cents - curve.at(peaks.seconds))
    if np.ptp(smooth) < _LEAST_DRIFT_CENTS or not estimate_tuning(followed).is_clear:
        return None
    return curve


def _steady_curve(gain: Float64) -> Float64:
    """Return the curve through gains [shape=(n_segments, 100)] that collects most and moves little, unwrapped."""
    cost = _STEP_COST * float(gain.max(axis=1).mean())
    steps = np.arange(-_FASTEST_CENTS, _FASTEST_CENTS + 1)
    best = gain[0]
    came: list[Int64] = []
    for here in gain[1:]:
        arriving = np.stack([np.roll(best, step) - cost * abs(step) for step in steps])
        choice = arriving.argmax(axis=0)
        came.append(choice)
        best = arriving[choice, np.arange(_SEMITONE)] + here
    place = int(best.argmax())
    moves = []
    for choice in reversed(came):
        move = int(steps[choice[place]])
        moves.append(move)
        place = (place - move) % _SEMITONE
    start = float(_nearest(np.array(float(place))))
    return start + np.append(0.0, np.cumsum(moves[::-1]))


def _smooth_curve(cents: Float64, weight: Float64, reach: int) -> Float64:
    """Replace each point by a straight line through those around it, so that slopes continue to the ends."""
    places = np.arange(len(cents), dtype=np.float64)
    smooth = cents.copy()
    for place in range(len(cents)):
        away = places - place
        near = (weight + 1e-6) * np.maximum(1 - np.square(away / (reach + 1)), 0.0)
        moments = [float((near * away**power).sum()) for power in range(3)]
        values = [float((near * away**power * cents).sum()) for power in range(2)]
        spread = moments[0] * moments[2] - moments[1] ** 2
        if spread > 0:
            smooth[place] = (moments[2] * values[0] - moments[1] * values[1]) / spread
    return smooth


def _histogram(cents: Float64, weight: Float64) -> Float64:
    counts = np.bincount(np.rint(cents).astype(np.int64) % _SEMITONE, weights=weight, minlength=_SEMITONE)
    return counts.astype(np.float64)


def _smooth(histograms: Float64) -> Float64:
    """Smooth histograms [shape=(..., 100)] of a circle."""
    away = _nearest(np.arange(float(_SEMITONE)))
    kernel = np.exp(-0.5 * np.square(away / _KERNEL_CENTS))
    smooth = np.fft.irfft(np.fft.rfft(histograms, axis=-1) * np.fft.rfft(kernel), _SEMITONE, axis=-1)
    return np.asarray(np.maximum(smooth, 0.0), dtype=np.float64)


def _nearest(cents: Float64) -> Float64:
    """Return the shortest way around the circle of a semitone, -50 to 50."""
    return np.asarray((cents + _SEMITONE / 2) % _SEMITONE - _SEMITONE / 2, dtype=np.float64)
