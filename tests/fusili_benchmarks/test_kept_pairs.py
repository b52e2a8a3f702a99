from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from example_datasets import write_shards

from fusili_benchmarks.kept_pairs import KeptPairs
from fusili_mir.errors import InputError
from fusili_training.data.shard_folder import Pair
from fusili_training.truth import TRUTH_DTYPE


def pair(key: str, duration_sec: float, mutant_of: str | None = None) -> Pair:
    return Pair(
        key=key,
        mutant_of=mutant_of,
        image=np.full((4, 8), 255, np.uint8),
        waveform=np.zeros(round(16_000 * duration_sec), np.float32),
        truth=np.zeros(0, TRUTH_DTYPE),
        strip_height_px=4,
        sample_rate_hz=16_000,
    )


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shards whose index has no durations, with the pairs of a piece out of order."""
    folder = tmp_path_factory.mktemp("kept") / "shards"
    pairs = [
        pair("b.piano.0", 2.0),
        pair("a.piano.10", 1.0),
        pair("a.piano.9", 0.5),
        pair("a.piano.11", 2.5),
        pair("a.piano.9m", 0.5, mutant_of="a.piano.9"),
        pair("c.voice.0", 1.0),
        pair("d.piano.0", 3.0),
    ]
    write_shards(folder, pairs)
    return folder


def keys(source: KeptPairs) -> list[str]:
    return [pair.key for piece in source.pieces for pair in source.read_piece(piece)]


def test_originals_of_one_layout_that_are_short_enough_are_kept_in_reading_order(shards: Path) -> None:
    source = KeptPairs(shards, "test", "piano", 2.0)
    assert keys(source) == ["a.piano.9", "a.piano.10", "b.piano.0"]
    assert source.pieces == ["a.piano", "b.piano"]
    assert len(source) == 3


def test_pairs_that_are_too_long_are_counted(shards: Path) -> None:
    assert KeptPairs(shards, "test", "piano", 2.0).dropped == {"over 2 s": 2}


def test_without_limits_all_originals_are_kept(shards: Path) -> None:
    source = KeptPairs(shards, "test")
    assert len(source) == 6
    assert not source.dropped


def test_an_empty_choice_is_refused(shards: Path) -> None:
    with pytest.raises(InputError, match=r"shards \(test\): no pairs of at most 0.1 s"):
        KeptPairs(shards, "test", "piano", 0.1)
    with pytest.raises(InputError, match="none of the pairs for 'test' is of the layout 'whole'"):
        KeptPairs(shards, "test", "whole")
