"""Encoded pairs on the disk: the tokens of both towers, so that what pools them can be fitted without encoding.

A file holds the pairs of one shard, in half precision, and the note heads of their truth. Encoding goes on where
it was stopped.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fusili_mir.arrays import Float32, Int64
from fusili_mir.audio.heard_recording import HeardRecording
from fusili_mir.audio.recording import AudioSamples, RecordingWarning
from fusili_mir.whole_files import whole_file
from fusili_training.data.shard_folder import Pair, PairEntry, ShardFolder
from fusili_training.evaluation.retrieval_task import notes_in_order
from fusili_training.model.model import FusiliModel

__all__ = ["TokenPairs", "keep_tokens", "load_tokens"]

_BATCH = 8


@dataclass(frozen=True, eq=False)
class TokenPairs:
    """Encoded pairs; the rows of all pairs stand one after the other.

    Attributes
    ----------
    columns, frames : np.ndarray [shape=(n_columns, width), (n_frames, width)], float16
        Tokens of the towers, before the local heads; without padding.
    heads : np.ndarray [shape=(n_heads, 3)]
        Of each note head: the column of its middle, and the frames in which it begins and ends to sound.
    column_ends, frame_ends, head_ends : np.ndarray of int [shape=(n,)]
        Where the rows of each pair end.
    pieces, notes : np.ndarray of str [shape=(n,)]
        The piece of each pair; a checksum of its notes, which is the same for strophes and repeats.
    """

    columns: npt.NDArray[Any]
    frames: npt.NDArray[Any]
    heads: Float32
    column_ends: Int64
    frame_ends: Int64
    head_ends: Int64
    pieces: npt.NDArray[Any]
    notes: npt.NDArray[Any]

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def groups(self) -> Int64:
        """Numbers that are equal for pairs with the same notes."""
        return np.asarray(np.unique(self.notes, return_inverse=True)[1], np.int64)

    @classmethod
    def join(cls, parts: Sequence[TokenPairs]) -> TokenPairs:
        """Put the pairs of several files one after the other."""
        rows = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("columns", "frames", "heads", "pieces", "notes")
        }
        ends = {}
        for rows_name, name in (
            ("columns", "column_ends"),
            ("frames", "frame_ends"),
            ("heads", "head_ends"),
        ):
            before = np.cumsum([0, *(len(getattr(part, rows_name)) for part in parts[:-1])])
            ends[name] = np.concatenate(
                [start + getattr(part, name) for start, part in zip(before, parts, strict=True)]
            )
        return cls(**rows, **ends)


def keep_tokens(model: FusiliModel, data: ShardFolder, split: str, kept: Path) -> None:
    """Encode the pairs of some shards into a folder; shards that it has already are passed over."""
    kept.mkdir(parents=True, exist_ok=True)
    shards: dict[str, list[PairEntry]] = {}
    for entry in data.entries:
        if entry.mutant_of is None:
            shards.setdefault(entry.shard, []).append(entry)
    for number, (shard, entries) in enumerate(shards.items(), 1):
        path = kept / f"{Path(data.url).name}-{Path(shard).stem}.npz"
        if path.exists():
            continue
        encoded = _encode(model, [data.read(entry) for entry in entries], [e.piece for e in entries])
        with whole_file(path) as file:
            np.savez(file, **vars(encoded))
        print(f"{split}: {shard}, {len(encoded)} pairs ({number} of {len(shards)})", flush=True)


def load_tokens(folder: Path) -> TokenPairs:
    """Load what `keep_tokens` kept."""
    parts = []
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as arrays:
            parts.append(TokenPairs(**{name: arrays[name] for name in arrays.files}))
    return TokenPairs.join(parts)


def _encode(model: FusiliModel, pairs: list[Pair], pieces: list[str]) -> TokenPairs:
    images = [_image(pair) for pair in pairs]
    waveforms = [_waveform(pair, model.audio.geometry.frame_samples) for pair in pairs]
    columns = _tokens(model.image, images, 1.0)
    frames = _tokens(model.audio, waveforms, 0.0)
    patch_px = model.image.geometry.patch_width_px
    frame_sec = model.audio.geometry.frame_samples / model.audio.geometry.sample_rate_hz
    heads = [
        np.stack(
            [
                (pair.truth["x0"] + pair.truth["x1"]) / 2 / patch_px,
                pair.truth["onset_sec"] / frame_sec,
                pair.truth["offset_sec"] / frame_sec,
            ],
            axis=1,
        )
        for pair in pairs
    ]
    notes = [hashlib.sha256(repr(notes_in_order(pair.truth)).encode()).hexdigest()[:16] for pair in pairs]
    return TokenPairs(
        np.concatenate(columns),
        np.concatenate(frames),
        np.concatenate(heads).astype(np.float32),
        _ends(columns),
        _ends(frames),
        _ends(heads),
        np.array(pieces),
        np.array(notes),
    )


def _ends(rows: Sequence[npt.NDArray[Any]]) -> Int64:
    return np.cumsum([len(each) for each in rows], dtype=np.int64)


def _image(pair: Pair) -> Tensor:
    """Return an image [shape=(S, height, width)]."""
    strips = pair.image.reshape(-1, pair.strip_height_px, pair.image.shape[1])
    return torch.from_numpy(strips / np.float32(255))


def _waveform(pair: Pair, frame_samples: int) -> Tensor:
    """Return the sound as the runtime hears it, in whole frames [shape=(n_samples,)]."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecordingWarning)  # clips may be silent or short
        samples = AudioSamples(pair.waveform, pair.sample_rate_hz, pair.key)
        with HeardRecording(samples, pair.sample_rate_hz) as heard:
            waveform = np.concatenate(list(heard.blocks()))
    return torch.from_numpy(np.pad(waveform, (0, -len(waveform) % frame_samples)))


@torch.no_grad()
def _tokens(tower: torch.nn.Module, inputs: list[Tensor], blank: float) -> list[npt.NDArray[Any]]:
    """Return the tokens of each input [shape=(L, width)], float16; inputs of about one length go together."""
    found: dict[int, npt.NDArray[Any]] = {}
    for batch in _batches(inputs):
        shape = [max(sizes) for sizes in zip(*(inputs[number].shape for number in batch), strict=True)]
        if len(shape) == 3:
            shape[2] += -shape[2] % 4
        stacked = torch.full([len(batch), *shape], blank)
        for row, number in enumerate(batch):
            part = stacked[row]
            for axis, size in enumerate(inputs[number].shape):
                part = part.narrow(axis, 0, size)
            part.copy_(inputs[number])
        tokens = tower(stacked)
        for row, number in enumerate(batch):
            found[number] = tokens.local[row][tokens.mask[row]].to(torch.float16).numpy()
    return [found[number] for number in range(len(inputs))]


def _batches(inputs: list[Tensor]) -> Iterator[list[int]]:
    order = sorted(
        range(len(inputs)), key=lambda number: (*inputs[number].shape[:-1], inputs[number].shape[-1])
    )
    for first in range(0, len(order), _BATCH):
        yield order[first : first + _BATCH]
