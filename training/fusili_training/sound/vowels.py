"""Vowels: the resonances of the vocal tract, by register.

The table is the one of the Csound manual (appendix "Formant Values"): frequency, level and width of five
formants. Levels include the slope of an ordinary glottal source, so harmonics of equal strength are to be
filtered with them. In tenors and basses formants three to five lie close together: the singer's formant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from fusili_mir.arrays import Float64

__all__ = ["PITCH_RANGES", "REGISTERS", "Register", "Vowel", "draw_vowel", "formant_gain", "tuned_to_pitch"]

Register: TypeAlias = Literal["soprano", "alto", "tenor", "bass"]

REGISTERS: tuple[Register, ...] = get_args(Register)

PITCH_RANGES: dict[Register, tuple[int, int]] = {
    "soprano": (59, 86),
    "alto": (52, 79),
    "tenor": (46, 73),
    "bass": (38, 67),
}
"""Lowest and highest MIDI pitch that is comfortable to sing."""

# Each row: frequencies in Hz, levels in dB, widths in Hz, of a, e, i, o, u.
_FORMANTS: dict[Register, list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]] = {
    "soprano": [
        ((800, 1150, 2900, 3900, 4950), (0, -6, -32, -20, -50), (80, 90, 120, 130, 140)),
        ((350, 2000, 2800, 3600, 4950), (0, -20, -15, -40, -56), (60, 100, 120, 150, 200)),
        ((270, 2140, 2950, 3900, 4950), (0, -12, -26, -26, -44), (60, 90, 100, 120, 120)),
        ((450, 800, 2830, 3800, 4950), (0, -11, -22, -22, -50), (70, 80, 100, 130, 135)),
        ((325, 700, 2700, 3800, 4950), (0, -16, -35, -40, -60), (50, 60, 170, 180, 200)),
    ],
    "alto": [
        ((800, 1150, 2800, 3500, 4950), (0, -4, -20, -36, -60), (80, 90, 120, 130, 140)),
        ((400, 1600, 2700, 3300, 4950), (0, -24, -30, -35, -60), (60, 80, 120, 150, 200)),
        ((350, 1700, 2700, 3700, 4950), (0, -20, -30, -36, -60), (50, 100, 120, 150, 200)),
        ((450, 800, 2830, 3500, 4950), (0, -9, -16, -28, -55), (70, 80, 100, 130, 135)),
        ((325, 700, 2530, 3500, 4950), (0, -12, -30, -40, -64), (50, 60, 170, 180, 200)),
    ],
    "tenor": [
        ((650, 1080, 2650, 2900, 3250), (0, -6, -7, -8, -22), (80, 90, 120, 130, 140)),
        ((400, 1700, 2600, 3200, 3580), (0, -14, -12, -14, -20), (70, 80, 100, 120, 120)),
        ((290, 1870, 2800, 3250, 3540), (0, -15, -18, -20, -30), (40, 90, 100, 120, 120)),
        ((400, 800, 2600, 2800, 3000), (0, -10, -12, -12, -26), (40, 80, 100, 120, 120)),
        ((350, 600, 2700, 2900, 3300), (0, -20, -17, -14, -26), (40, 60, 100, 120, 120)),
    ],
    "bass": [
        ((600, 1040, 2250, 2450, 2750), (0, -7, -9, -9, -20), (60, 70, 110, 120, 130)),
        ((400, 1620, 2400, 2800, 3100), (0, -12, -9, -12, -18), (40, 80, 100, 120, 120)),
        ((250, 1750, 2600, 3050, 3340), (0, -30, -16, -22, -28), (60, 90, 100, 120, 120)),
        ((400, 750, 2400, 2600, 2900), (0, -11, -21, -20, -40), (40, 80, 100, 120, 120)),
        ((350, 600, 2400, 2675, 2950), (0, -20, -32, -28, -36), (40, 80, 100, 120, 120)),
    ],
}
_ORDER = "iaeou"  # every two of them have vowels between them
_ROWS = {vowel: row for row, vowel in enumerate("aeiou")}
_FLOOR_DB = -45.0  # what a throat lets through between its resonances, below the strongest
_ABOVE_PITCH = 1.03
_DAMPED = 1.4  # wider than in the table, which is meant for impulses: an open glottis damps resonances


@dataclass(frozen=True, eq=False)
class Vowel:
    """Five formants: their frequencies, levels and widths, (5,) each."""

    hz: Float64
    db: Float64
    width_hz: Float64

    def scaled(self, factor: float) -> Vowel:
        """Return the vowel of a longer (factor below 1) or shorter vocal tract."""
        return Vowel(self.hz * factor, self.db, self.width_hz * factor)


def draw_vowel(register: Register, rng: np.random.Generator) -> Vowel:
    """Draw a vowel, often one between two of a, e, i, o and u."""
    first, second = rng.choice(len(_ORDER), size=2, replace=False)
    share = rng.uniform(0.0, 0.5)
    mixed = [
        (1 - share) * np.array(one, dtype=np.float64) + share * np.array(other, dtype=np.float64)
        for one, other in zip(
            _FORMANTS[register][_ROWS[_ORDER[first]]],
            _FORMANTS[register][_ROWS[_ORDER[second]]],
            strict=True,
        )
    ]
    return Vowel(mixed[0], mixed[1], _DAMPED * mixed[2])


def tuned_to_pitch(first_formant_hz: Float64, pitch_hz: Float64) -> Float64:
    """Raise the first formant where the pitch would be above it, as singers do by opening their mouths."""
    return np.maximum(first_formant_hz, _ABOVE_PITCH * pitch_hz)


def formant_gain(frequency_hz: Float64, hz: Float64, db: Float64, width_hz: Float64) -> Float64:
    """Return the gain of a vocal tract.

    Parameters
    ----------
    frequency_hz : np.ndarray [shape=(..., n)]
    hz, db, width_hz : np.ndarray [shape=(..., 5)]
        Formants; leading axes as in `frequency_hz`.

    Returns
    -------
    np.ndarray [shape=(..., n)]
        Factors of the amplitude: resonances add up in power, so there are no notches between them.
    """
    power = np.full(np.broadcast_shapes(frequency_hz.shape, (*hz.shape[:-1], 1)), 10 ** (_FLOOR_DB / 10))
    squared = np.square(frequency_hz)
    for formant in range(hz.shape[-1]):
        centre, width = hz[..., formant, None], width_hz[..., formant, None]
        # Resonators of second order, 1 at their peaks. The first one lets all low frequencies through: a voice
        # has its fundamental, too.
        across = squared * np.square(width)
        through = np.square(centre * width) if formant == 0 else across
        resonance = through / (np.square(np.square(centre) - squared) + across)
        power += 10 ** (db[..., formant, None] / 10) * resonance
    # Formants above the fifth are not modelled: the tract lets less through there.
    power *= 1 / (1 + np.square(np.square(frequency_hz / (1.3 * hz[..., -1:]))))
    return np.asarray(np.sqrt(power))
