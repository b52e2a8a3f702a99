from __future__ import annotations

import hashlib

import numpy as np

from fusili_training.random_streams import random_stream


def test_a_stream_is_named_by_its_seed_and_purpose() -> None:
    seed = int.from_bytes(hashlib.sha256(b"7/piece/3").digest()[:16], "big")
    assert random_stream(7, "piece", 3).uniform() == np.random.default_rng(seed).uniform()


def test_other_names_give_other_numbers() -> None:
    drawn = {
        random_stream(*names).uniform()  # type: ignore[arg-type]
        for names in [(0, "a"), (0, "b"), (1, "a"), (0, "a", 0), (0, "a", 1)]
    }
    assert len(drawn) == 5
