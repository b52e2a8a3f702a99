"""What a run validates on: shuffled originals, and MSMD for the local criterion."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from example_datasets import MELODIES, write_engraved_msmd, write_shards
from example_models import TINY_CLIP_CLAP

from fusili_mir.errors import InputError
from fusili_training.data.shard_folder import Pair
from fusili_training.loop.distributed import ProcessRanks
from fusili_training.loop.msmd_batches import MsmdBatches
from fusili_training.loop.recipe import DataOptions, Recipe
from fusili_training.loop.sources import TrainingData
from fusili_training.model.model import FusiliModel, ModelOptions
from fusili_training.truth import TRUTH_DTYPE

CPU = torch.device("cpu")
PAPER = ModelOptions("clip-clap", TINY_CLIP_CLAP)


def write_twins(folder: Path, n_pieces: int = 4) -> Path:
    """Four pieces of two segments, each with a mutant."""
    image, silence = np.zeros((128, 64), np.uint8), np.zeros(160, np.float32)
    pairs = []
    for piece in range(n_pieces):
        for segment in range(2):
            key = f"p{piece}.whole.{segment}"
            for name, original in ((key, None), (f"{key}.mutant", key)):
                pairs.append(Pair(name, original, image, silence, np.zeros(0, TRUTH_DTYPE), 128, 16_000))
    write_shards(folder, pairs, "train", "valid")
    return folder


def validation_keys(folder: Path, validation: Literal["as in training", "originals"]) -> list[list[str]]:
    data = DataOptions(str(folder), 8, "same", "positive", validation=validation, workers=0)
    batches = TrainingData(Recipe("x", data=data)).validation_batches(ProcessRanks(0, 1, CPU))
    assert batches is not None
    return [list(batch.keys) for batch in batches.epoch(0)]


def test_the_papers_rows_validate_on_shuffled_originals(tmp_path: Path) -> None:
    (batch,) = validation_keys(write_twins(tmp_path / "pairs"), "originals")
    assert sorted(batch) == [f"p{piece}.whole.{segment}" for piece in range(4) for segment in range(2)]
    pieces = [key.split(".")[0] for key in batch]
    assert any(a != b for a, b in zip(pieces[::2], pieces[1::2], strict=True))  # not piece by piece


def test_other_recipes_validate_as_they_train(tmp_path: Path) -> None:
    (batch,) = validation_keys(write_twins(tmp_path / "pairs"), "as in training")
    assert sum(key.endswith("mutant") for key in batch) == 4


@pytest.fixture(scope="module")
def msmd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "msmd"
    for piece, pitches in MELODIES.items():
        write_engraved_msmd(folder, piece, pitches)
    (folder / "split.yaml").write_text("train:\n- Tune\nvalid:\n- Other\n", encoding="utf-8")
    return folder


def local_keys(msmd: Path, ranks: ProcessRanks, split_file: str | None = None) -> list[str]:
    batches = MsmdBatches(str(msmd), split_file, FusiliModel(PAPER), ranks, batch_size=4)
    keys: list[str] = []
    for batch in batches:
        assert batch.images.shape[1:] == (1, 224, 224)
        assert batch.waveforms.shape[1] == 20 * 48_000
        assert all(len(truth) for truth in batch.truths)
        keys += batch.keys
    return keys


def test_the_valid_split_of_msmd_gives_the_local_top1(msmd: Path) -> None:
    keys = local_keys(msmd, ProcessRanks(0, 1, CPU), str(msmd / "split.yaml"))
    assert keys
    assert {key.split(".")[0] for key in keys} == {"Other"}


def test_ranks_share_the_pieces_of_msmd(msmd: Path) -> None:
    whole = local_keys(msmd, ProcessRanks(0, 1, CPU))
    parts = [local_keys(msmd, ProcessRanks(rank, 2, CPU)) for rank in range(2)]
    assert sorted(parts[0] + parts[1]) == sorted(whole)
    assert all(parts)


def test_msmd_that_is_not_there_is_an_error_before_training(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"data\.msmd is .*, which is no folder"):
        local_keys(tmp_path / "nothing", ProcessRanks(0, 1, CPU))
