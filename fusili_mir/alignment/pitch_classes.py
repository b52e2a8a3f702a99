"""Which pitch classes each system of a score sounds with, and how well a recording agrees with that.

With a symbolic score they are counted; on images they are the scale of the key signature. Either distinguishes
D major from D flat major at once, but hardly D major from A major or B minor: that is what the model is good at.
"""

from __future__ import annotations

from functools import cache, cached_property

import numpy as np
import partitura as pt

from fusili_mir.arrays import Float64, Int64
from fusili_mir.audio.spectral_peaks import SpectralPeaks
from fusili_mir.pages.key_signatures import read_key_signatures
from fusili_mir.pages.pages import Pages

__all__ = ["PitchClasses", "agreement", "agreement_by_key"]

_MAJOR = np.array([0, 2, 4, 5, 7, 9, 11])
_FIFTH = 7  # semitones


class PitchClasses:
    """The pitch classes of the systems of a score.

    Parameters
    ----------
    pages : Pages
    """

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._of_system = cache(self._from_signature if pages.score is None else self._from_notes)

    def of_systems(self, systems: Int64) -> Float64:
        """Return weights of the pitch classes from C to B, of each system [shape=(n, 12)].

        Weights have mean 0 and standard deviation 1 in each system, or are all 0 if nothing is known.
        """
        return np.array([self._of_system(int(system)) for system in systems]).reshape(-1, 12)

    @cached_property
    def of_passages(self) -> Float64:
        """Weights of what some seconds may sound: each system, and each two in a row [shape=(n_passages, 12)]."""
        weights = self.of_systems(np.arange(len(self._pages.systems)))
        return np.concatenate((weights, (weights[1:] + weights[:-1]) / 2))

    def _from_signature(self, system: int) -> Float64:
        fifths = int(read_key_signatures(self._pages, np.array([system]))[0])
        weights = np.zeros(12)
        weights[(_MAJOR + _FIFTH * fifths) % 12] = 1.0
        return _standardised(weights)

    def _from_notes(self, system: int) -> Float64:
        notes = self._pages.notes[self._pages.notes["system"] == system]
        weights = np.zeros(12)
        for head in np.unique(notes["notated_id"]).tolist():
            pitch, quarters = self._sounding.get(head, (0, 0.0))
            weights[pitch % 12] += quarters
        return _standardised(weights)

    @cached_property
    def _sounding(self) -> dict[str, tuple[int, float]]:
        """Sounding pitch (MIDI) and length in quarters of each head."""
        heads: dict[str, tuple[int, float]] = {}
        for part in self._pages.score.parts if self._pages.score is not None else ():
            notes = list(part.iter_all(pt.score.Note, include_subclasses=True))
            divisions = np.atleast_1d(part.quarter_duration_map([note.start.t for note in notes])).tolist()
            for note, per_quarter in zip(notes, divisions, strict=True):
                pitch = note.midi_pitch + self._pages.transpositions.get(note.id, 0)
                heads[note.id] = (pitch, note.duration / per_quarter)
        return heads


def agreement(peaks: SpectralPeaks, weights: Float64, cents: float) -> Float64:
    """Compare what is heard with pitch classes.

    Parameters
    ----------
    peaks : SpectralPeaks
    weights : np.ndarray [shape=(n, 12)]
        Weights of the pitch classes that are expected with each peak, from C to B.
    cents : float
        How far the recording sounds above the score.

    Returns
    -------
    np.ndarray [shape=(n,)]
        Weight of the pitch class that each peak belongs to.

    Examples
    --------
    >>> peaks = SpectralPeaks(np.zeros(2), np.array([0.0, 100.0]), np.ones(2), step_sec=0.25)  # A, B flat
    >>> weights = np.tile(np.arange(12.0), (2, 1))
    >>> agreement(peaks, weights, 0.0).tolist(), agreement(peaks, weights, 100.0).tolist()
    ([9.0, 10.0], [8.0, 9.0])
    """
    return np.asarray(weights[np.arange(len(peaks)), _pitches(peaks, cents) % 12])


def agreement_by_key(peaks: SpectralPeaks, passages: Float64, cents: float) -> Float64:
    """Compare all that is heard with the passage that agrees best, in each key.

    Parameters
    ----------
    peaks : SpectralPeaks
    passages : np.ndarray [shape=(n_passages, 12)]
        Weights of the pitch classes of passages, from C to B.
    cents : float
        How far the recording sounds above the score in key 0.

    Returns
    -------
    np.ndarray [shape=(12,)]
        Agreement with the score if the recording sounds so many semitones higher, or octaves of them.

    Examples
    --------
    >>> peaks = SpectralPeaks(np.zeros(2), np.array([0.0, 100.0]), np.array([3.0, 1.0]), 0.25)  # A, B flat
    >>> passages = np.eye(12)[[0, 9]]  # of C alone, of A alone
    >>> agreement_by_key(peaks, passages, 0.0).tolist()
    [0.75, 0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.75, 0.25, 0.0]
    """
    heard = np.bincount(_pitches(peaks, cents) % 12, peaks.magnitude, 12)
    shares = heard / max(float(heard.sum()), 1e-9)
    by_key = np.array([np.roll(shares, -key) for key in range(12)])
    return np.asarray((passages @ by_key.T).max(axis=0, initial=-np.inf))


def _pitches(peaks: SpectralPeaks, cents: float) -> Int64:
    """Return the semitones of peaks above a C of the score."""
    return np.asarray(np.rint((peaks.cents - cents) / 100) + 9, dtype=np.int64)


def _standardised(weights: Float64) -> Float64:
    spread = float(weights.std())
    return (weights - weights.mean()) / spread if spread > 0 else np.zeros(12)
