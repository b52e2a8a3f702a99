from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from fusili_mir.errors import InputError
from fusili_training.data.augmentation import Augmentation
from fusili_training.data.batch import Batch
from fusili_training.data.batch_plan import BatchOptions
from fusili_training.data.loader import PairLoader, worker_deaths_told
from fusili_training.data.shard_folder import ShardFolder

OPTIONS = BatchOptions(batch_size=4, mutations="negative", seed=3)


@pytest.fixture(scope="module")
def folder(rendered: Path) -> ShardFolder:
    return ShardFolder(rendered)


def _same(ours: Batch, theirs: Batch) -> bool:
    return (
        ours.keys == theirs.keys
        and torch.equal(ours.images, theirs.images)
        and torch.equal(ours.waveforms, theirs.waveforms)
        and all(np.array_equal(a, b) for a, b in zip(ours.truths, theirs.truths, strict=True))
    )


def test_a_batch_is_padded_with_paper_and_silence(folder: ShardFolder) -> None:
    by_key = {entry.key: entry for entry in folder.entries}
    batches = list(PairLoader(folder, OPTIONS).epoch(0))
    assert len({batch.images.shape for batch in batches}) > 1  # otherwise nothing was padded
    for batch in batches:
        assert batch.images.dtype == batch.waveforms.dtype == torch.float32
        assert batch.images.shape[2] == 128
        assert batch.images.shape[3] % 32 == 0
        assert batch.is_original.tolist() == [True, False] * 2
        for item, key in enumerate(batch.keys):
            pair = folder.read(by_key[key])
            strips = pair.image.reshape(-1, 128, pair.image.shape[1]) / 255
            n_strips, _, width = strips.shape
            image = batch.images[item].numpy()
            assert np.abs(image[:n_strips, :, :width] - strips).max() < 1e-6
            assert image[n_strips:].min(initial=1) == image[:, :, width:].min(initial=1) == 1
            assert np.array_equal(batch.waveforms[item, : len(pair.waveform)].numpy(), pair.waveform)
            assert not batch.waveforms[item, len(pair.waveform) :].any()


@pytest.mark.parametrize("world_size", [1, 2])
def test_ranks_and_workers_never_share_a_pair(folder: ShardFolder, world_size: int) -> None:
    loaders = [
        PairLoader(folder, OPTIONS, rank=r, world_size=world_size, workers=2) for r in range(world_size)
    ]
    assert len({len(loader) for loader in loaders}) == 1
    keys = [key for loader in loaders for batch in loader.epoch(0) for key in batch.keys]
    assert len(set(keys)) == len(keys) == 4 * len(loaders[0])
    alone = [key for batch in PairLoader(folder, OPTIONS).epoch(0) for key in batch.keys]
    assert set(keys) == set(alone)


def test_the_number_of_workers_changes_nothing(folder: ShardFolder) -> None:
    augmentation = Augmentation(image_probability=1, audio_probability=1)
    here = PairLoader(folder, OPTIONS, augmentation).epoch(2)
    there = PairLoader(folder, OPTIONS, augmentation, workers=2).epoch(2)
    assert all(_same(ours, theirs) for ours, theirs in zip(here, there, strict=True))


def test_a_loader_goes_on_from_a_state_with_the_same_batches(folder: ShardFolder) -> None:
    augmentation = Augmentation(image_probability=1, audio_probability=1)
    loader = PairLoader(folder, OPTIONS, augmentation)
    assert len(loader) >= 3
    list(loader)  # epoch 0
    running = iter(loader)
    next(running)
    state = loader.state_dict()
    assert state == {"seed": 3, "epoch": 1, "batches": 1}
    expected = list(running)
    again = PairLoader(folder, OPTIONS, augmentation)
    again.load_state_dict(state)
    rest = list(again)
    assert len(rest) == len(loader) - 1
    assert all(_same(ours, theirs) for ours, theirs in zip(rest, expected, strict=True))
    assert again.state_dict() == loader.state_dict() == {"seed": 3, "epoch": 2, "batches": 0}


def test_a_state_of_another_seed_is_refused(folder: ShardFolder) -> None:
    with pytest.raises(InputError, match="seed 9"):
        PairLoader(folder, OPTIONS).load_state_dict({"seed": 9, "epoch": 0, "batches": 0})


def test_a_batch_that_ranks_cannot_share_is_refused(folder: ShardFolder) -> None:
    with pytest.raises(InputError, match="multiple of 6"):
        PairLoader(folder, OPTIONS, world_size=3)


def _spoilt(rendered: Path, folder: Path) -> PairLoader:
    """Return a loader with workers of shards whose second half is lost."""
    shutil.copytree(rendered, folder)
    for shard in folder.glob("*.tar"):
        shard.write_bytes(shard.read_bytes()[: shard.stat().st_size // 2].ljust(shard.stat().st_size, b"\0"))
    return PairLoader(ShardFolder(folder), OPTIONS, workers=1)


def test_what_is_wrong_with_a_pair_is_said_as_without_workers(rendered: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as told:
        list(_spoilt(rendered, tmp_path / "shards").epoch(0))
    assert str(told.value).startswith(str(tmp_path / "shards"))
    assert str(told.value).endswith("is the shard complete?")
    assert "Traceback" not in str(told.value)


@worker_deaths_told()
def _train_while_a_worker_dies(loader: PairLoader) -> None:
    others = multiprocessing.active_children()
    batches = loader.epoch(0)
    next(batches)
    (worker,) = (child for child in multiprocessing.active_children() if child not in others)
    os.kill(worker.pid or 0, signal.SIGKILL)
    for _ in range(1000):  # torch tells it wherever this process is
        time.sleep(0.01)


@pytest.mark.skipif(sys.platform == "win32", reason="torch does not notice it there")
def test_a_worker_that_dies_is_one_line(folder: ShardFolder) -> None:
    with pytest.raises(InputError, match=r"a process that reads pairs died .*use fewer data\.workers"):
        _train_while_a_worker_dies(PairLoader(folder, OPTIONS, workers=1))


def test_workers_may_be_started_as_on_systems_that_do_not_fork(
    folder: ShardFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [batch.keys for batch in PairLoader(folder, OPTIONS).epoch(1)]
    monkeypatch.setattr(sys, "platform", "darwin")
    assert [batch.keys for batch in PairLoader(folder, OPTIONS, workers=1).epoch(1)] == expected
