"""Choosing an instrument or a singer for each part, and opening its sound bank."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from fusili_training.rendering.render_recipe import AudioOptions
from fusili_training.sound.baking import bake_sample_folder, cached_soundbank
from fusili_training.sound.singing import draw_singer
from fusili_training.sound.soundbank import SoundBank, load_soundbank, save_soundbank, start_at_attack
from fusili_training.sound.soundfonts import Soundfont, find_soundfont
from fusili_training.sound.sounding_score import SoundingScore
from fusili_training.sound.synthesis import Instrument

__all__ = ["bake_banks", "bank_folder", "draw_banks", "open_bank"]


def bank_folder() -> Path:
    """Return the folder of the sound banks: ``FUSILI_SOUNDBANKS``, or a folder in the user's cache."""
    own = os.environ.get("FUSILI_SOUNDBANKS")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(own) if own else cache / "fusili-mir" / "soundbanks"


def bake_banks(options: AudioOptions) -> Iterable[SoundBank]:
    """Make sure that all banks of a recipe exist; yield each bank when it does."""
    for soundfont in options.soundfonts:
        for program in sorted({*options.keyboard_programs, *options.other_programs}):
            yield open_bank(soundfont, program, options)
    for name, _, _ in options.solo_samples if options.sampled_solo else ():
        yield open_bank(name, 0, options)


def draw_banks(
    score: SoundingScore, options: AudioOptions, rng: np.random.Generator
) -> dict[int, Instrument]:
    """Draw an instrument for each part of a score.

    Parameters
    ----------
    score : SoundingScore
    options : AudioOptions
    rng : np.random.Generator

    Returns
    -------
    dict from part to SoundBank or Singer
        Parts with notes on several staves get a keyboard. Parts with words on one staff are sung in a share
        `options.singing` of all scores, and other parts on one staff have sampled instruments in a share
        `options.sampled_solo`.
    """
    soundfont = str(rng.choice(options.soundfonts))
    banks: dict[int, Instrument] = {}
    single = set()
    for part in range(len(score.part_ids)):
        n_staves = len(np.unique(score.notes["staff"][score.notes["part"] == part]))
        if n_staves == 1:
            single.add(part)
        programs = options.keyboard_programs if n_staves > 1 else options.other_programs
        banks[part] = open_bank(soundfont, int(rng.choice(programs)), options)
    if options.singing and rng.uniform() < options.singing:
        for part in sorted(single & score.sung_parts):
            pitches = score.notes["pitch"][score.notes["part"] == part]
            banks[part] = draw_singer(pitches, options.sample_rate_hz, rng)
            single.remove(part)
    if options.sampled_solo and rng.uniform() < options.sampled_solo:
        for part in sorted(single):
            pitches = score.notes["pitch"][score.notes["part"] == part]
            fitting = [
                name
                for name, lowest, highest in options.solo_samples
                if len(pitches) and lowest <= pitches.min() and pitches.max() <= highest
            ]
            if fitting:
                banks[part] = open_bank(str(rng.choice(fitting)), 0, options)
    return banks


def open_bank(soundfont: str, program: int, options: AudioOptions) -> SoundBank:
    """Return the bank of one program of a soundfont, or of a folder of samples, baking it the first time."""
    return _opened_bank(soundfont, program, options.sample_rate_hz, options.velocities, bank_folder())


@functools.lru_cache(maxsize=64)
def _opened_bank(
    soundfont: str, program: int, sample_rate_hz: int, velocities: tuple[int, ...], folder: Path
) -> SoundBank:
    font = find_soundfont(soundfont)
    if font.is_sample_folder:
        return _cached_sample_folder(font, sample_rate_hz, folder)
    return cached_soundbank(font, program, sample_rate_hz, folder, velocities)


def _cached_sample_folder(samples: Soundfont, sample_rate_hz: int, folder: Path) -> SoundBank:
    """Return the bank of a folder of single-note recordings, baking it the first time."""
    recordings = sorted(path for path in samples.path.rglob("*") if path.is_file())
    listing = [(path.relative_to(samples.path).as_posix(), path.stat().st_size) for path in recordings]
    digest = hashlib.sha256(repr(listing).encode()).hexdigest()[:8]
    place = folder / f"{samples.name}-samples-{sample_rate_hz}hz-{digest}"
    if not place.exists():
        bank = bake_sample_folder(samples.path, sample_rate_hz, samples.name, samples.licence)
        save_soundbank(start_at_attack(bank), place)
    return load_soundbank(place)
