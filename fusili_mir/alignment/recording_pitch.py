"""At which pitch a recording sounds, compared with its score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fusili_mir.audio.pitch_curve import PitchCurve
from fusili_mir.audio.spectral_peaks import A4_HZ

__all__ = ["RecordingPitch"]

_AS_WRITTEN_CENTS = 5.0  # less is not worth mentioning
_NEARLY_A_SEMITONE = 75  # cents from which people would rather say: a semitone less 25
_HARMLESS_CENTS = (10.0, 0.01)  # that are found, or given: less does the model no harm


@dataclass(frozen=True)
class RecordingPitch:
    """The pitch of a recording relative to the sounding pitch of its score.

    Attributes
    ----------
    curve : PitchCurve
        Cents above the score over time. 0 if nothing was found, or looked for.
    source : "found", "given", "unknown" or "off"
        Whether the pitch was found in the recording, was given, could not be found (too little sound, or sound
        that the score does not explain in any key), or was not looked for.
    written_cents : float
        How far the score sounds above its pages: -200 for a clarinet in B flat, whose C sounds as B flat.
    """

    curve: PitchCurve
    source: str = "off"
    written_cents: float = 0.0

    @classmethod
    def as_written(cls, source: str = "off", written_cents: float = 0.0) -> RecordingPitch:
        """Return the pitch of a recording that is taken to sound like its score."""
        return cls(PitchCurve.constant(0.0), source, written_cents)

    @property
    def cents(self) -> float:
        """Distance from the score in cents, positive if the recording sounds higher; the median if it drifts."""
        return float(np.median(self.curve.cents))

    @property
    def drift_cents(self) -> float:
        """Rise of the pitch from the first to the last second; negative if it falls."""
        return float(self.curve.cents[-1] - self.curve.cents[0])

    @property
    def a4_hz(self) -> float:
        """Frequency at which the A of the score sounds that is 440 Hz at modern pitch."""
        return float(A4_HZ * 2 ** (self.cents / 1200))

    @property
    def above_pages(self) -> PitchCurve | None:
        """Cents above what is written on the pages; None if that is too little to matter."""
        curve = self.curve.raised(self.written_cents)
        if curve.is_constant and abs(float(curve.cents[0])) < _HARMLESS_CENTS[self.source == "given"]:
            return None
        return curve

    @property
    def text(self) -> str:
        """One line for people.

        >>> RecordingPitch(PitchCurve.constant(-212.0), "found").text
        'sounds 2 semitones and 12 cents below the score (A = 389.3 Hz)'
        """
        if self.source == "unknown":
            return "pitch not found, and taken to be that of the score"
        semitones, cents = divmod(round(abs(self.cents)), 100)
        if cents >= _NEARLY_A_SEMITONE:
            semitones, cents = semitones + 1, cents - 100
        amounts = _amounts(semitones)
        amounts += [_count(abs(cents), "cent")] if cents else []
        if abs(self.cents) < _AS_WRITTEN_CENTS:
            where = "sounds at the pitch of the score"
        else:
            *most, last = amounts
            joined = (" less " if cents < 0 else " and ").join([", ".join(most), last] if most else [last])
            where = f"sounds {joined} {'above' if self.cents > 0 else 'below'} the score"
        if self.written_cents:
            written = " and ".join(_amounts(round(abs(self.written_cents) / 100)))
            side = "above" if self.written_cents > 0 else "below"
            where += f", which sounds {written} {side} what is written"
        drift = abs(self.drift_cents)
        if not self.curve.is_constant:
            where += f", {'rising' if self.drift_cents > 0 else 'falling'} by {_count(round(drift), 'cent')}"
        return f"{where} (A = {self.a4_hz:.1f} Hz)"

    def to_json(self) -> dict[str, Any]:
        """Return it as values that JSON can represent; the curve only if it drifts."""
        return {
            "cents": round(self.cents, 1),
            "a4_hz": round(self.a4_hz, 2),
            "source": self.source,
            "text": self.text,
            "curve": None
            if self.curve.is_constant
            else {
                "seconds": self.curve.seconds.round(3).tolist(),
                "cents": self.curve.cents.round(2).tolist(),
            },
        }


def _amounts(semitones: int) -> list[str]:
    """Return octaves and semitones, those that are not 0."""
    counts = zip(divmod(semitones, 12), ("octave", "semitone"), strict=True)
    return [_count(number, noun) for number, noun in counts if number]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
