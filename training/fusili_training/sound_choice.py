"""Which instrument plays which part, and the sound banks for it."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from fusili_training.baking import cached_soundbank
from fusili_training.render_recipe import AudioOptions
from fusili_training.soundbank import SoundBank
from fusili_training.soundfonts import find_soundfont
from fusili_training.sounding_score import SoundingScore

__all__ = ["bake_banks", "bank_folder", "draw_banks"]


def bank_folder() -> Path:
    """Return where sound banks are kept: ``FUSILI_SOUNDBANKS``, or a folder in the user's cache."""
    own = os.environ.get("FUSILI_SOUNDBANKS")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(own) if own else cache / "fusili-mir" / "soundbanks"


def bake_banks(options: AudioOptions) -> Iterable[str]:
    """Make sure that all banks of a recipe are there; yields the name of each when it is."""
    for soundfont in options.soundfonts:
        for program in sorted({*options.keyboard_programs, *options.other_programs}):
            yield _bank(soundfont, program, options).name


def draw_banks(score: SoundingScore, options: AudioOptions, rng: np.random.Generator) -> dict[int, SoundBank]:
    """Draw an instrument for each part of a score.

    Parameters
    ----------
    score : SoundingScore
    options : AudioOptions
    rng : np.random.Generator

    Returns
    -------
    dict from part to SoundBank
        Parts with notes on several staves are played by keyboards.
    """
    soundfont = str(rng.choice(options.soundfonts))
    banks = {}
    for part in range(len(score.part_ids)):
        n_staves = len(np.unique(score.notes["staff"][score.notes["part"] == part]))
        programs = options.keyboard_programs if n_staves > 1 else options.other_programs
        banks[part] = _bank(soundfont, int(rng.choice(programs)), options)
    return banks


def _bank(soundfont: str, program: int, options: AudioOptions) -> SoundBank:
    return _opened_bank(soundfont, program, options.sample_rate_hz, options.velocities, bank_folder())


@functools.lru_cache(maxsize=64)
def _opened_bank(
    soundfont: str, program: int, sample_rate_hz: int, velocities: tuple[int, ...], folder: Path
) -> SoundBank:
    return cached_soundbank(find_soundfont(soundfont), program, sample_rate_hz, folder, velocities)
