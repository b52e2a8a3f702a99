"""Synthesising performed notes: the samples of the sound banks and the voices of singers, added up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from fusili_mir.arrays import Float32
from fusili_mir.errors import InputError
from fusili_training.pitches import HIGHEST_PITCH, LOWEST_PITCH
from fusili_training.sound.notes import PerformedArray
from fusili_training.sound.singing import Singer
from fusili_training.sound.soundbank import SoundBank

__all__ = ["Instrument", "synthesise"]

Instrument: TypeAlias = SoundBank | Singer
"""What plays or sings a part."""

_RELEASE_DB = 60.0  # a released note ends when it has fallen by this much
_LOUDEST = 0.98


def synthesise(
    notes: PerformedArray, banks: Mapping[int, Instrument], duration_sec: float, start_sec: float = 0.0
) -> Float32:
    """Synthesise a clip of a performance.

    Parameters
    ----------
    notes : np.ndarray [shape=(n,), dtype=PERFORMED_DTYPE]
        The notes; those that begin before `start_sec` are heard from there on.
    banks : mapping from part to SoundBank or Singer
        Instruments with the same sample rate. The pedal prolongs notes only if the notes of a bank decay.
    duration_sec : float
    start_sec : float
        Where the clip begins in the performance.

    Returns
    -------
    np.ndarray [shape=(samples,), dtype=float32]
        Mono, within [-1, 1]; a louder sum is scaled down as a whole.
    """
    sample_rate_hz = _common_rate(notes, banks)
    clip = np.zeros(round(duration_sec * sample_rate_hz), dtype=np.float32)
    longest_sec = np.maximum(notes["duration_sec"], notes["sounding_sec"]) + _longest_release_sec(banks)
    heard = (notes["onset_sec"] < start_sec + duration_sec) & (notes["onset_sec"] + longest_sec > start_sec)
    for part, singer in banks.items():
        if isinstance(singer, Singer):
            clip += singer.sing(notes[notes["part"] == part], len(clip) / sample_rate_hz, start_sec)
    for note in notes[heard]:
        bank = banks[int(note["part"])]
        if isinstance(bank, Singer):
            continue
        heard_sec = float(note["duration_sec"] if bank.sustained else note["sounding_sec"])
        begin = round((float(note["onset_sec"]) - start_sec) * sample_rate_hz)
        sound = _play(bank, int(note["pitch"]), int(note["velocity"]), round(heard_sec * sample_rate_hz))
        first, last = max(begin, 0), min(begin + len(sound), len(clip))
        if first < last:
            clip[first:last] += sound[first - begin : last - begin]
    peak = float(np.abs(clip).max(initial=0.0))
    if peak > _LOUDEST:
        clip *= np.float32(_LOUDEST / peak)
    return clip


def _common_rate(notes: PerformedArray, banks: Mapping[int, Instrument]) -> int:
    rates = {bank.sample_rate_hz for bank in banks.values()}
    if len(rates) != 1:
        raise InputError(
            f"sound banks with the sample rates {sorted(rates) or '(no bank)'}; expected one sample rate for all"
        )
    missing = set(np.unique(notes["part"]).tolist()) - set(banks)
    if missing:
        raise InputError(f"no sound bank for parts {sorted(missing)}; banks are given for {sorted(banks)}")
    outside = notes[(notes["pitch"] < LOWEST_PITCH) | (notes["pitch"] > HIGHEST_PITCH)]
    if len(outside):
        raise InputError(
            f"note {outside['id'][0]!r} has MIDI pitch {outside['pitch'][0]}; "
            f"expected {LOWEST_PITCH} to {HIGHEST_PITCH}, the range of a sound bank"
        )
    return rates.pop()


def _longest_release_sec(banks: Mapping[int, Instrument]) -> float:
    slowest = [bank.release_db_per_sec.min() for bank in banks.values() if isinstance(bank, SoundBank)]
    return _RELEASE_DB / float(min(slowest)) if slowest else 0.0


def _play(bank: SoundBank, pitch: int, velocity: int, held: int) -> Float32:
    """Return one note that is held for some number of samples, with its release."""
    layer = bank.layer(velocity)
    fall_db = float(bank.release_db_per_sec[pitch - LOWEST_PITCH]) / bank.sample_rate_hz  # per sample
    sample = bank.sample(layer, pitch)
    wanted = held + int(_RELEASE_DB / fall_db)
    if wanted > len(sample) and bank.sustained:
        loops = -(-(wanted - len(sample)) // bank.loop_length)
        sample = np.concatenate([sample, np.tile(sample[len(sample) - bank.loop_length :], loops)])
    # The level of a soundfont is proportional to the square of the velocity.
    gain = bank.gain * (velocity / bank.velocities[layer]) ** 2
    sound = sample[:wanted].astype(np.float32) * np.float32(gain)
    fade = len(sound) - held
    if fade > 0:
        slope = np.float32(-fall_db * np.log(10.0) / 20.0)
        sound[held:] *= np.exp(slope * np.arange(fade, dtype=np.float32))
    return sound
