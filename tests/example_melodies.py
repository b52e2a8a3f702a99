"""Small pairs whose image determines their sound: melodies as note heads on a staff strip, and as sine tones."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch
from PIL import Image

from fusili_mir.arrays import Float32
from fusili_training.data.batch import Batch
from fusili_training.rendering.pair_segments import Sample
from fusili_training.rendering.render_recipe import RenderRecipe
from fusili_training.rendering.shards import shard_name, sidecar_of, write_json, write_shard
from fusili_training.truth import TRUTH_DTYPE, TruthArray, truth_to_json

SAMPLE_RATE_HZ = 16_000
STRIP_PX, SPACE_PX = 128, 8
NOTE_PX, NOTE_SEC = 24, 0.24  # between notes
SCALE = (60, 62, 64, 65, 67, 69, 71, 72, 74, 76)  # MIDI pitches, C4 to E5: one step of the staff each

TINY_MODEL = {
    "width": 32,
    "embedding_dim": 16,
    "stem_channels": (4, 8, 8),
    "image_dilations": (1,),
    "system_dilations": (1,),
    "audio_dilations": (1, 2),
}


@dataclass(frozen=True)
class Melody:
    """A pair and its truth."""

    key: str
    image: Float32  # (1, STRIP_PX, width), 0 is ink
    waveform: Float32
    truth: TruthArray


def melody(key: str, steps: Sequence[int]) -> Melody:
    """Write and play the given steps of the scale."""
    image = np.ones((1, STRIP_PX, NOTE_PX * len(steps)), dtype=np.float32)
    middle = STRIP_PX // 2
    for line in range(-2, 3):
        image[0, middle + line * SPACE_PX] = 0
    truth = np.zeros(len(steps), dtype=TRUTH_DTYPE)
    tones = []
    seconds = np.arange(int(NOTE_SEC * SAMPLE_RATE_HZ)) / SAMPLE_RATE_HZ
    for place, step in enumerate(steps):
        x, y = NOTE_PX * place + 8, middle + (6 - step) * SPACE_PX // 2
        image[0, y - 3 : y + 4, x - 4 : x + 5] = 0
        hertz = 440 * 2 ** ((SCALE[step] - 69) / 12)
        tones.append(0.3 * np.sin(2 * np.pi * hertz * seconds) * np.exp(-4 * seconds))
        box = (x - 4, y - 3, x + 4, y + 4)
        truth[place] = (
            f"n{place}",
            SCALE[step],
            0,
            0,
            *box,
            place * NOTE_SEC,
            (place + 1) * NOTE_SEC,
            True,
        )
    return Melody(key, image, np.concatenate(tones).astype(np.float32), truth)


def random_melodies(n_melodies: int, n_notes: int = 6, seed: int = 0) -> list[Melody]:
    """Return distinct melodies."""
    rng = np.random.default_rng(seed)
    found: dict[tuple[int, ...], None] = {}
    while len(found) < n_melodies:
        found[tuple(int(step) for step in rng.integers(0, len(SCALE), n_notes))] = None
    return [melody(f"melody-{number}", steps) for number, steps in enumerate(found)]


def batch_of(melodies: Sequence[Melody], is_original: Sequence[bool] | None = None) -> Batch:
    """Collate melodies of the same length."""
    return Batch(
        images=torch.from_numpy(np.stack([each.image for each in melodies])),
        waveforms=torch.from_numpy(np.stack([each.waveform for each in melodies])),
        is_original=torch.tensor(is_original if is_original is not None else [True] * len(melodies)),
        keys=tuple(each.key for each in melodies),
        truths=tuple(each.truth for each in melodies),
    )


@dataclass(frozen=True)
class MelodySource:
    """Batches of melodies, in another order in each epoch; rank r of R has the r-th part of each batch."""

    melodies: Sequence[Melody]
    batch_size: int
    rank: int = 0
    n_ranks: int = 1

    def __len__(self) -> int:
        return len(self.melodies) // self.batch_size

    def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
        order = np.random.default_rng([7, number]).permutation(len(self.melodies))
        share = self.batch_size // self.n_ranks
        for index in range(skip, len(self)):
            first = index * self.batch_size + self.rank * share
            yield batch_of([self.melodies[i] for i in order[first : first + share]])


def save_melodies(folder: Path, splits: Mapping[str, Sequence[Melody]]) -> None:
    """Write melodies as a rendered corpus, four per piece, one shard per split."""
    folder.mkdir()
    listed: dict[str, dict[str, Any]] = {}
    for split, melodies in splits.items():
        shard = folder / shard_name(split, 0)
        samples = [
            _sample(each, f"{split}-{number // 4}.whole.{number % 4}", split)
            for number, each in enumerate(melodies)
        ]
        write_json(sidecar_of(shard), write_shard(shard, samples))
        listed[split] = {"shards": [{"name": shard.name}]}
    write_json(folder / "manifest.json", {"format": 1, "recipe": RenderRecipe().to_dict(), "splits": listed})


def _sample(each: Melody, key: str, split: str) -> Sample:
    image, audio = io.BytesIO(), io.BytesIO()
    Image.fromarray((255 * each.image[0]).astype(np.uint8)).save(image, format="PNG")
    soundfile.write(audio, each.waveform, SAMPLE_RATE_HZ, format="FLAC")
    described = {
        "split": split,
        "strip_height_px": STRIP_PX,
        "sample_rate_hz": SAMPLE_RATE_HZ,
        "notes": truth_to_json(each.truth),
    }
    members = {"png": image.getvalue(), "flac": audio.getvalue(), "json": json.dumps(described).encode()}
    return Sample(key, None, members)
