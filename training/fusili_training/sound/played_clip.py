"""Clips kept as the notes that are played in them: playing them gives the samples that a FLAC file would keep.

The sound banks lie in a folder beside the shards. A clip is an ``.npz`` file: its notes, where it begins and how
long it lasts, and the names of the banks of its parts. All about a singer is in his or her name.
"""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from fusili_mir.arrays import Float32
from fusili_mir.errors import InputError
from fusili_mir.limits import check_limit
from fusili_training.sound.notes import PERFORMED_DTYPE, PerformedArray
from fusili_training.sound.singing import is_singer, read_singer
from fusili_training.sound.soundbank import load_soundbank
from fusili_training.sound.synthesis import Instrument, synthesise

__all__ = ["BANKS", "bank_name", "pack_clip", "play_clip", "to_16_bit"]

BANKS = "soundbanks"
"""Name of the folder of sound banks, in a folder of shards."""

_STORED = np.dtype([(name, PERFORMED_DTYPE[name]) for name in PERFORMED_DTYPE.names or () if name != "id"])
_LONGEST_SEC = 3600.0  # of a clip, and of a note
_FULL_SCALE = np.float32(2**15)


def bank_name(bank: Instrument) -> str:
    """Return the name of the folder of a bank, or that of a singer."""
    return re.sub(r"[^\w-]+", "-", bank.name)


def pack_clip(
    notes: PerformedArray, banks: Mapping[int, Instrument], duration_sec: float, start_sec: float
) -> bytes:
    """Return what `play_clip` needs to play a clip.

    Parameters
    ----------
    notes, banks, duration_sec, start_sec
        As in `synthesise`.
    """
    stored = np.zeros(len(notes), _STORED)
    for name in _STORED.names or ():
        stored[name] = notes[name]
    parts = sorted(set(notes["part"].tolist()))
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        notes=stored,
        times=np.array([duration_sec, start_sec]),
        parts=np.array(parts, np.int64),
        banks=np.array([bank_name(banks[part]) for part in parts], dtype=np.str_),
    )
    return buffer.getvalue()


def play_clip(packed: bytes, folder: str | Path) -> tuple[Float32, int]:
    """Play a clip.

    Parameters
    ----------
    packed : bytes
        From `pack_clip`.
    folder : str or Path
        Folder of the sound banks.

    Returns
    -------
    np.ndarray [shape=(samples,)], float32
        The samples, as a file of 16 bits would keep them.
    int
        Their rate.
    """
    with np.load(io.BytesIO(packed), allow_pickle=False) as content:
        stored, times, parts, names = (content[name] for name in ("notes", "times", "parts", "banks"))
    if stored.dtype != _STORED or times.shape != (2,) or parts.shape != names.shape or not len(parts):
        raise InputError("the notes of a clip have another form; render it again")
    lengths = np.concatenate([stored["duration_sec"], stored["sounding_sec"], times[:1]])
    if not (np.isfinite(times).all() and ((lengths >= 0) & (lengths <= _LONGEST_SEC)).all()):
        raise InputError(f"a clip or a note that lasts more than {_LONGEST_SEC:g} s; render it again")
    check_limit("notes", len(stored), "a clip")
    notes = np.zeros(len(stored), PERFORMED_DTYPE)
    for name in _STORED.names or ():
        notes[name] = stored[name]
    banks = {
        int(part): _opened(str(folder), str(name))
        for part, name in zip(parts.tolist(), names.tolist(), strict=True)
    }
    rate_hz = next(iter(banks.values())).sample_rate_hz
    check_limit("clip_samples", round(float(times[0]) * rate_hz), "a clip")
    return to_16_bit(synthesise(notes, banks, float(times[0]), float(times[1]))), rate_hz


def to_16_bit(samples: Float32) -> Float32:
    """Return samples as they come back from a file of 16 bits."""
    steps = np.clip(np.rint(samples * _FULL_SCALE), -_FULL_SCALE, _FULL_SCALE - 1)
    return np.asarray(steps / _FULL_SCALE, np.float32)


@functools.lru_cache(maxsize=64)
def _opened(folder: str, name: str) -> Instrument:
    if is_singer(name):
        return read_singer(name)
    if not re.fullmatch(r"[\w-]+", name):
        raise InputError(f"a sound bank named {name!r}; expected a folder of {folder}")
    return load_soundbank(Path(folder) / name)
