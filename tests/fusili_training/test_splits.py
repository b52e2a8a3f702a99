from __future__ import annotations

from collections import Counter

from fusili_training.splits import split_of, stable_fraction


def test_the_fraction_is_the_start_of_the_sha256() -> None:
    # sha256("abc") begins with ba7816bf8f01
    assert stable_fraction("abc") == 0xBA7816BF8F01 / 2**48


def test_pieces_are_shared_out_94_5_1() -> None:
    counts = Counter(split_of(f"piece-{number}") for number in range(20_000))
    assert abs(counts["train"] / 20_000 - 0.94) < 0.01
    assert abs(counts["valid"] / 20_000 - 0.05) < 0.01
    assert abs(counts["test"] / 20_000 - 0.01) < 0.005
