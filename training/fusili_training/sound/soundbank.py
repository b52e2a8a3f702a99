"""A sound bank: every key of one instrument, recorded once and kept on disk, to be mixed into clips.

A bank is a folder with ``bank.json`` (a description, and where each sample starts) and ``samples.npy`` (all
samples in one int16 array). The samples are memory-mapped, so worker processes share one copy.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fusili_mir.arrays import Float64, Int64
from fusili_mir.boundary import reason
from fusili_mir.errors import InputError, OutputError
from fusili_mir.staging import staged_folder
from fusili_mir.untrusted_json import read_json
from fusili_training.pitches import LOWEST_PITCH, N_PITCHES

__all__ = [
    "SoundBank",
    "load_soundbank",
    "save_soundbank",
    "start_at_attack",
]


_FORMAT = "fusili-mir sound bank 1"
_META, _SAMPLES = "bank.json", "samples.npy"
_ATTACK_DB = -30.0  # below the peak: softer sound is mechanical noise of the instrument
_BEFORE_ATTACK_SEC = 0.001


@dataclass(frozen=True, eq=False)
class SoundBank:
    """The recorded notes of one instrument at a few velocities.

    Parameters
    ----------
    name, licence : str
        Source of the samples, and their licence.
    sample_rate_hz : int
    velocities : tuple of int
        MIDI velocity of each layer, strictly increasing.
    samples : np.ndarray [shape=(total,), dtype=int16]
        All samples, one after another; each starts with its attack.
    start, length : np.ndarray [shape=(layers, 88)]
        Where the sample of each layer and pitch (21..108) lies in `samples`.
    release_db_per_sec : np.ndarray [shape=(88,)]
        Decay of a released note.
    loop_length : int
        A held note continues by repeating its last `loop_length` samples; 0 for an instrument whose notes decay.
    gain : float
        Factor from int16 to a level that is similar for all banks.
    """

    name: str
    licence: str
    sample_rate_hz: int
    velocities: tuple[int, ...]
    samples: npt.NDArray[np.int16]
    start: Int64
    length: Int64
    release_db_per_sec: Float64
    loop_length: int
    gain: float

    @property
    def sustained(self) -> bool:
        """Whether a note sounds for as long as it is held, as on a violin or an organ."""
        return self.loop_length > 0

    def __post_init__(self) -> None:
        layers = len(self.velocities)
        if layers == 0 or list(self.velocities) != sorted(set(self.velocities)):
            raise InputError(
                f"sound bank {self.name!r} has the velocities {self.velocities}; expected increasing numbers"
            )
        if not self.start.shape == self.length.shape == (layers, N_PITCHES):
            raise InputError(
                f"sound bank {self.name!r} has starts {self.start.shape} and lengths {self.length.shape}; "
                f"expected {(layers, N_PITCHES)} for both"
            )
        inside = (self.start >= 0) & (self.length > 0) & (self.start + self.length <= len(self.samples))
        if not inside.all():
            raise InputError(
                f"sound bank {self.name!r} points outside its {len(self.samples)} samples; bake it again"
            )
        if self.release_db_per_sec.shape != (N_PITCHES,) or not (self.release_db_per_sec > 0).all():
            raise InputError(
                f"sound bank {self.name!r} lacks a release rate; expected one above 0 dB/s for each of "
                f"{N_PITCHES} pitches"
            )
        if not 0 <= self.loop_length <= self.length.min():
            raise InputError(
                f"sound bank {self.name!r} loops {self.loop_length} samples; expected 0 to {self.length.min()}, "
                "the length of its shortest note"
            )

    def layer(self, velocity: int) -> int:
        """Return the layer with the nearest velocity."""
        return int(np.argmin(np.abs(np.array(self.velocities) - velocity)))

    def sample(self, layer: int, pitch: int) -> npt.NDArray[np.int16]:
        """Return the sample of one key, (samples,), without copying it."""
        key = pitch - LOWEST_PITCH
        start = self.start[layer, key]
        return self.samples[start : start + self.length[layer, key]]


def start_at_attack(bank: SoundBank) -> SoundBank:
    """Cut the noise before the tone, such as that of the key.

    Recordings of single notes start with up to 30 ms of it, which would delay everything synthesised from them.
    Soundfonts start with the tone.
    """
    start, length = bank.start.copy(), bank.length.copy()
    lead = round(_BEFORE_ATTACK_SEC * bank.sample_rate_hz)
    for place in np.ndindex(*start.shape):
        sound = np.abs(bank.samples[start[place] : start[place] + length[place]].astype(np.int32))
        attack = int(np.argmax(sound >= sound.max() * 10 ** (_ATTACK_DB / 20)))
        cut = min(max(attack - lead, 0), int(length[place]) - max(bank.loop_length, 1))
        start[place] += cut
        length[place] -= cut
    return replace(bank, start=start, length=length)


def save_soundbank(bank: SoundBank, folder: str | os.PathLike[str]) -> None:
    """Write a bank as a folder that appears only when it is complete; an existing folder is left unchanged."""
    goal = Path(folder)
    meta = {
        "format": _FORMAT,
        "name": bank.name,
        "licence": bank.licence,
        "sample_rate_hz": bank.sample_rate_hz,
        "velocities": list(bank.velocities),
        "start": bank.start.tolist(),
        "length": bank.length.tolist(),
        "release_db_per_sec": bank.release_db_per_sec.tolist(),
        "loop_length": bank.loop_length,
        "gain": bank.gain,
    }
    if goal.exists():
        return
    try:
        with staged_folder(goal, alone=False) as draft:
            (draft / _META).write_text(json.dumps(meta, sort_keys=True), encoding="utf-8")
            np.save(draft / _SAMPLES, np.ascontiguousarray(bank.samples), allow_pickle=False)
    except OutputError as error:
        if not goal.is_dir():  # otherwise another process has just written the same bank
            raise OutputError(f"cannot write sound bank {error}") from error


def load_soundbank(folder: str | os.PathLike[str]) -> SoundBank:
    """Open a bank written by `save_soundbank`; its samples stay on disk until they are used."""
    path = Path(folder)
    try:
        meta = read_json(path / _META, "bake it again", "table_bytes")
        if meta.get("format") != _FORMAT:
            raise InputError(
                f"{path} has the format {meta.get('format')!r}; expected {_FORMAT!r}: bake it again"
            )
        samples = np.load(path / _SAMPLES, mmap_mode="r", allow_pickle=False)
        if samples.dtype != np.int16 or samples.ndim != 1:
            raise InputError(
                f"{path / _SAMPLES} holds {samples.dtype} of shape {samples.shape}; expected one row of int16"
            )
        return SoundBank(
            name=str(meta["name"]),
            licence=str(meta["licence"]),
            sample_rate_hz=int(meta["sample_rate_hz"]),
            velocities=tuple(int(velocity) for velocity in meta["velocities"]),
            samples=samples,
            start=np.array(meta["start"], dtype=np.int64),
            length=np.array(meta["length"], dtype=np.int64),
            release_db_per_sec=np.array(meta["release_db_per_sec"], dtype=np.float64),
            loop_length=int(meta["loop_length"]),
            gain=float(meta["gain"]),
        )
    except InputError:
        raise
    except Exception as error:  # whatever is wrong with it, it is to be baked again
        raise InputError(f"{path}: the sound bank cannot be read ({reason(error)}); bake it again") from error
