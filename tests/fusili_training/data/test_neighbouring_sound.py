from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fusili_mir.errors import InputError
from fusili_training.data.augmentation import Augmentation
from fusili_training.data.batch_plan import BatchOptions
from fusili_training.data.loader import PairLoader
from fusili_training.data.neighbouring_sound import with_neighbours
from fusili_training.data.shard_folder import Pair, ShardFolder
from fusili_training.truth import TRUTH_DTYPE

RATE = 1000


def _pair() -> Pair:
    """A clip of two seconds at 1, with one note from 0.5 to 1.5 s."""
    truth = np.zeros(1, TRUTH_DTYPE)
    truth["onset_sec"], truth["offset_sec"] = 0.5, 1.5
    return Pair(
        "a.whole.1", None, np.full((128, 64), 255, np.uint8), np.ones(2000, np.float32), truth, 128, RATE
    )


def test_notes_are_heard_when_they_were_in_the_clip_itself() -> None:
    pair = _pair()
    marked = pair.waveform.copy()
    marked[500] = 9  # the attack
    for seed in range(20):
        rng = np.random.default_rng(seed)
        joined = with_neighbours(
            Pair("a", None, pair.image, marked, pair.truth, 128, RATE),
            np.full(5000, 2, np.float32),
            np.full(5000, 3, np.float32),
            rng,
        )
        attack = int(np.argmax(joined.waveform))
        assert joined.truth["onset_sec"][0] == pytest.approx(attack / RATE)
        assert joined.truth["offset_sec"][0] == pytest.approx(attack / RATE + 1)
        n_before, n_after = attack - 500, len(joined.waveform) - attack - 1500
        assert 0 <= n_before <= 4000
        assert 0 <= n_after <= 4000
        assert (joined.waveform[: max(0, n_before)] == 2).all()
    assert pair.truth["onset_sec"][0] == 0.5  # the pair itself is unchanged


def test_the_end_of_what_comes_before_and_the_beginning_of_what_comes_after_are_heard() -> None:
    before, after = np.arange(5000, dtype=np.float32), 10_000 + np.arange(5000, dtype=np.float32)
    joined = with_neighbours(_pair(), before, after, np.random.default_rng(1)).waveform
    first = int(joined[0])
    assert np.array_equal(joined[: 5000 - first - 20], before[first:-20])
    last = int(joined[-1]) - 10_000
    assert np.array_equal(joined[-(last + 1 - 20) :], after[20 : last + 1])


def test_a_piece_of_one_system_stays_as_it_is() -> None:
    pair = _pair()
    joined = with_neighbours(pair, None, None, np.random.default_rng(0))
    assert np.array_equal(joined.waveform, pair.waveform)
    assert joined.truth["onset_sec"][0] == 0.5


def test_neighbours_are_originals_of_the_same_rendering(rendered: Path) -> None:
    folder = ShardFolder(rendered)
    for place, entry in enumerate(folder.entries):
        number = int(entry.key.split(".")[2])
        before, after = folder.neighbours(place)
        if before is not None:
            assert before.rendering == entry.rendering
            assert int(before.key.split(".")[2]) < number
        if after is not None:
            assert after.rendering == entry.rendering
            assert int(after.key.split(".")[2]) > number
        assert all(each is None or each.mutant_of is None for each in (before, after))


def test_a_loader_lets_about_so_many_recordings_go_on(rendered: Path) -> None:
    folder = ShardFolder(rendered)
    augmentation = Augmentation(image_probability=0, audio_probability=0, neighbour_probability=1.0)
    loader = PairLoader(folder, BatchOptions(batch_size=2, seed=1), augmentation)
    entries = {entry.key: place for place, entry in enumerate(folder.entries)}
    longer = []
    for batch in loader.epoch(0):
        for key, waveform, truth in zip(batch.keys, batch.waveforms, batch.truths, strict=True):
            place = entries[key]
            own = folder.read(folder.entries[place])
            n_heard = int(np.flatnonzero(waveform.numpy())[-1]) + 1
            before, after = folder.neighbours(place)
            longer.append(n_heard > len(own.waveform))
            assert longer[-1] or (before is None and after is None)
            assert (truth["onset_sec"] >= own.truth["onset_sec"]).all()
    assert any(longer)


def test_the_share_is_checked() -> None:
    with pytest.raises(InputError, match="neighbour_probability is -1; expected 0 to 1"):
        Augmentation(neighbour_probability=-1)
