from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from fusili_mir.errors import InputError
from fusili_training.data.shard_folder import Pair
from fusili_training.evaluation.chosen_pairs import ChosenPairs
from fusili_training.truth import TRUTH_DTYPE


class FourPieces:
    """Pieces a to d of three segments each."""

    name = "four"
    pieces: Sequence[str] = ("a", "b", "c", "d")
    has_truth = True

    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()

    def read_piece(self, piece: str) -> Iterator[Pair]:
        self.dropped["torn"] += 1
        for number in range(3):
            yield Pair(
                key=f"{piece}.whole.{number}",
                mutant_of=None,
                image=np.zeros((1, 1), np.uint8),
                waveform=np.zeros(1, np.float32),
                truth=np.zeros(0, TRUTH_DTYPE),
                strip_height_px=1,
                sample_rate_hz=16_000,
            )


def keys(chosen: ChosenPairs) -> list[str]:
    return [pair.key for piece in chosen.pieces for pair in chosen.read_piece(piece)]


def test_as_many_are_chosen_as_were_asked_for_in_reading_order() -> None:
    for number in range(1, 13):
        found = keys(ChosenPairs(FourPieces(), number))
        assert len(found) == number
        assert found == sorted(found)


def test_a_larger_choice_includes_a_smaller_one() -> None:
    assert set(keys(ChosenPairs(FourPieces(), 4))) < set(keys(ChosenPairs(FourPieces(), 9)))


def test_pieces_without_a_chosen_segment_are_not_listed() -> None:
    (key,) = keys(one := ChosenPairs(FourPieces(), 1))
    assert one.pieces == [key[0]]


def test_dropped_pairs_are_counted_once_however_often_the_source_is_read() -> None:
    chosen = ChosenPairs(FourPieces(), 9)
    keys(chosen)
    assert chosen.dropped == {"torn": 4}


@pytest.mark.parametrize("number", [0, 13])
def test_more_segments_than_there_are_or_none_are_refused(number: int) -> None:
    with pytest.raises(InputError, match=f"{number} segments were asked for; it has 12"):
        ChosenPairs(FourPieces(), number)
