"""Shifts: how pages and recordings may differ from those that a model was trained on.

The base has clean pages, expressive timing, and an instrument that training never hears. Every other shift
changes one thing about it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import get_args

from fusili_mir.pages.engraving import EngravingOptions, MusicFont

__all__ = ["BASE", "SHIFTS", "PageShift", "Shift", "SoundShift"]


@dataclass(frozen=True)
class PageShift:
    """How pages look.

    Attributes
    ----------
    font : MusicFont
    degraded : float
        How strongly they are degraded, 0 to 1, as in `Degradation.draw`.
    printed : bool
        Whether they have the defects of old prints, as `DefectLimits` has them, apart from curl.
    """

    font: MusicFont = EngravingOptions.font
    degraded: float = 0.0
    printed: bool = False


@dataclass(frozen=True)
class SoundShift:
    """How a recording sounds.

    Attributes
    ----------
    trained_timbre : bool
        Whether the instruments are those of training.
    metronomic : bool
        Whether notes begin exactly where the score's tempo puts them.
    detune_cents : float
        Change of pitch and speed, as of a machine that runs too fast or too slow.
    snr_db : float, optional
        Signal-to-noise ratio of added pink noise; None: no noise.
    room_sec : float
        Reverberation time (decay by 60 dB); 0: no reverberation.
    sung : bool
        Whether parts with words are sung, see `fusili_training.sound.singing`.
    """

    trained_timbre: bool = False
    metronomic: bool = False
    detune_cents: float = 0.0
    snr_db: float | None = None
    room_sec: float = 0.0
    sung: bool = False


@dataclass(frozen=True)
class Shift:
    """A named way of making pages and recordings.

    `with_score` says whether to measure it with the symbolic score, too. That takes several times as long, and
    page shifts have no effect on it: the pages of a symbolic score are our own.
    """

    name: str
    page: PageShift = field(default_factory=PageShift)
    sound: SoundShift = field(default_factory=SoundShift)
    with_score: bool = False


BASE = Shift("unseen timbre, expressive", with_score=True)

SHIFTS: tuple[Shift, ...] = (
    BASE,
    Shift("timbres of training", sound=SoundShift(trained_timbre=True), with_score=True),
    Shift("metronomic", sound=SoundShift(metronomic=True)),
    Shift("-50 cents", sound=SoundShift(detune_cents=-50)),
    Shift("-25 cents", sound=SoundShift(detune_cents=-25)),
    Shift("+25 cents", sound=SoundShift(detune_cents=25)),
    Shift("+50 cents", sound=SoundShift(detune_cents=50), with_score=True),
    Shift("noise at 15 dB", sound=SoundShift(snr_db=15)),
    Shift("noise at 5 dB", sound=SoundShift(snr_db=5), with_score=True),
    Shift("room of 1.2 s", sound=SoundShift(room_sec=1.2), with_score=True),
    Shift("voices sung", sound=SoundShift(sung=True), with_score=True),
    *(
        Shift(f"font {font}", page=PageShift(font=font))
        for font in get_args(MusicFont)
        if font != BASE.page.font
    ),
    Shift("pages degraded by 0.5", page=PageShift(degraded=0.5)),
    Shift("pages degraded by 1", page=PageShift(degraded=1.0)),
    Shift("old prints", page=PageShift(printed=True)),
)
"""The base comes first."""
