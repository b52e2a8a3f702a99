"""The law by which stops are timed: how onsets sound, and how long stops last.

`benchmarks/fit_decoder.py law` fits those of its parameters that stand in its table TRIED, one after the other;
the others were set by hand. `--scan NAME` shows what other values of one do. Each says here how it enters the
likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusili_mir.arrays import Float32
from fusili_mir.decoding.certainty import Certainty
from fusili_mir.errors import InputError

__all__ = ["TimingLaw"]

_SLOW_GROWTH = 2.0  # beyond `rare_nats` a cost grows with its square root, as steeply as before at first


@dataclass(frozen=True)
class TimingLaw:
    """Parameters of the semi-Markov decoder.

    Attributes
    ----------
    onset_weight : float
        Nats per e-fold of onset activation, for a stop of one note; it grows with the square root of the notes.
    onset_strength : float
        Activation of a pitch at which an onset is as likely as not.
    read_onset_weight, read_onset_strength : float
        The same where pitches are read from an image, and are less certain. Where they are heard less clearly
        than that, an onset is refined to that of anything.
    faintest_strength, most_onset_nats, least_onset_nats : float
        Added to activations before the logarithm; bounds of the log-ratio, before the weight.
    arrival_weight : float
        Share of these log-ratios, where they speak for an onset, that the path from frame to stop gains; more
        than 1, because its frames count in full.
    envelope_weight : float
        Nats per nat of the envelope, where pitches are read from an image.
    sound_weight : float
        Share of the likelihoods of frames that counts: neighbouring frames say much the same.
    duration_spread : float
        Standard deviation of the logarithm of (duration in the recording / duration at the local tempo).
    place_spread : float
        The same for (duration in the recording / distance on the page at the local tempo).
    jitter_sec : float
        Standard deviation of onsets in time, which matters for short durations.
    rare_nats : float
        Where the quadratic cost of a duration turns into a slowly growing one: pauses, fermatas, sudden changes.
    grace_sec, grace_spread : float
        Usual duration of a grace note, and the spread of its logarithm.
    bias_sec : float
        How late onsets are heard.
    refine_sec : float
        How far from the middle of its cell the onset of a stop is looked for; 0: it is not.
    chord_sec : float
        How far the notes of a chord may be from their stop; 0: they begin together.
    certainty, read_certainty : Certainty, optional
        How sure results are, with known pitches and where pitches are read; if None, the posteriors
        of the model are taken at their word.
    """

    onset_weight: float = 3.5
    onset_strength: float = 0.3
    read_onset_weight: float = 1.4
    read_onset_strength: float = 0.2
    faintest_strength: float = 0.03
    most_onset_nats: float = 1.6
    least_onset_nats: float = -2.0
    arrival_weight: float = 6.0
    envelope_weight: float = 3.0
    sound_weight: float = 0.15
    duration_spread: float = 0.4
    place_spread: float = 0.28
    jitter_sec: float = 0.025
    rare_nats: float = 6.0
    grace_sec: float = 0.09
    grace_spread: float = 0.7
    bias_sec: float = 0.0015
    refine_sec: float = 0.05
    chord_sec: float = 0.08
    certainty: Certainty | None = None
    read_certainty: Certainty | None = None

    def __post_init__(self) -> None:
        positive = ["onset_strength", "read_onset_strength", "faintest_strength"]
        positive += ["duration_spread", "jitter_sec", "grace_sec"]
        wrong = [name for name in positive if not getattr(self, name) > 0]
        if wrong:
            raise InputError(f"{wrong[0]} is {getattr(self, wrong[0])}, expected more than 0")

    def onset_nats(self, strength: Float32, n_notes: float | Float32, are_read: bool = False) -> Float32:
        """Return the log-likelihood ratio of an onset of notes with such mean activations [shape=(..., n)]."""
        usual = self.read_onset_strength if are_read else self.onset_strength
        weight = self.read_onset_weight if are_read else self.onset_weight
        ratio = np.log((strength + self.faintest_strength) / usual)
        bounded = np.clip(ratio, self.least_onset_nats, self.most_onset_nats)
        return np.asarray(weight * np.sqrt(n_notes) * bounded, dtype=np.float32)

    def expected_sec(self, lasting: float, sec_per_unit: float) -> float:
        """Return how long a stop lasts that lasts so long in the score; grace notes last nothing there."""
        return self.grace_sec if lasting < 1e-6 else lasting * sec_per_unit

    def duration_cost(
        self, seconds: Float32, expected_sec: float, is_grace: bool, is_spaced: bool
    ) -> Float32:
        """Return what durations cost [shape=(n,)], in nats: nothing if they are as expected.

        A grace note has a law of its own, and so have distances on a page (`is_spaced`).
        """
        spread = self.place_spread if is_spaced else self.duration_spread
        variance = (self.grace_spread if is_grace else spread) ** 2 + (self.jitter_sec / expected_sec) ** 2
        cost = np.log(seconds / expected_sec) ** 2 / (2 * variance)
        beyond = np.maximum(cost - self.rare_nats, 0.0)
        slow = self.rare_nats + _SLOW_GROWTH * (np.sqrt(beyond + 1) - 1)
        return np.where(cost < self.rare_nats, cost, slow).astype(np.float32)
