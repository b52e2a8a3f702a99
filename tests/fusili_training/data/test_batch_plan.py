from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusili_mir.errors import InputError
from fusili_training.data.batch_plan import BatchOptions, plan_batches
from fusili_training.data.shard_folder import PairEntry


def _entries(n_pieces: int, n_segments: int, mutants: bool = False) -> list[PairEntry]:
    entries = []
    for piece in range(n_pieces):
        for number in range(n_segments):
            key = f"p{piece}.whole.{number}"
            entries.append(PairEntry(key, None, "s.tar", 0, 0))
            if mutants:
                entries.append(PairEntry(f"{key}.mutant", key, "s.tar", 0, 0))
    return entries


@given(
    st.integers(1, 9),
    st.integers(1, 12),
    st.sampled_from(["random", "same", "few"]),
    st.sampled_from(["none", "negative", "positive"]),
    st.sampled_from([2, 4, 6]),
    st.integers(0, 3),
)
def test_no_pair_is_planned_twice_and_all_batches_are_full(
    n_pieces: int, n_segments: int, pieces: str, mutations: str, batch_size: int, epoch: int
) -> None:
    entries = _entries(n_pieces, n_segments, mutants=True)
    options = BatchOptions(batch_size, pieces, mutations)  # type: ignore[arg-type]
    n_used = n_pieces * n_segments if mutations == "none" else 2 * max(1, n_pieces * n_segments // 2)
    if n_used < batch_size:
        with pytest.raises(InputError, match="do not fill one batch"):
            plan_batches(entries, options, epoch)
        return
    batches = plan_batches(entries, options, epoch)
    places = [place for batch in batches for place in batch]
    assert len(set(places)) == len(places)
    assert {len(batch) for batch in batches} == {batch_size}
    assert len(batches) == n_used // batch_size
    assert plan_batches(entries, options, epoch) == batches


def test_epochs_and_seeds_give_other_orders() -> None:
    entries = _entries(10, 10)
    plan = plan_batches(entries, BatchOptions(10), 0)
    assert plan_batches(entries, BatchOptions(10), 1) != plan
    assert plan_batches(entries, BatchOptions(10, seed=1), 0) != plan


def test_same_piece_batches_have_as_few_pieces_as_can_be() -> None:
    entries = _entries(6, 8)
    for batch in plan_batches(entries, BatchOptions(8, "same"), 3):
        assert len({entries[place].piece for place in batch}) == 1
    random = plan_batches(entries, BatchOptions(8, "random"), 3)
    assert max(len({entries[place].piece for place in batch}) for batch in random) > 3


def test_few_pieces_share_a_batch_whose_pairs_are_of_similar_length() -> None:
    entries = [
        PairEntry(f"p{piece:02d}.whole.{number}", None, "s.tar", 0, 0, 300, 2.0 * 1.2 ** (piece // 8))
        for piece in range(64)
        for number in range(8)
    ]
    batches = plan_batches(entries, BatchOptions(8, "few"), 3)
    n_pieces = [len({entries[place].piece for place in batch}) for batch in batches]
    assert 3 < np.mean(n_pieces) <= 5
    lengths = np.array([[entries[place].duration_sec for place in batch] for batch in batches])
    assert np.ptp(lengths, axis=1).mean() < 0.2 * np.ptp(lengths)
    assert not np.array_equal(np.sort(lengths.min(axis=1)), lengths.min(axis=1))


def test_mutants_stay_beside_their_originals_among_few_pieces() -> None:
    entries = _entries(12, 8, mutants=True)
    for batch in plan_batches(entries, BatchOptions(12, "few", "negative"), 0):
        assert [entries[place].mutant_of for place in batch[1::2]] == [
            entries[place].key for place in batch[::2]
        ]


def test_without_mutations_mutants_are_not_used() -> None:
    entries = _entries(2, 8, mutants=True)
    places = [place for batch in plan_batches(entries, BatchOptions(4), 0) for place in batch]
    assert len(places) == 16
    assert all(entries[place].mutant_of is None for place in places)


@pytest.mark.parametrize("mutations", ["negative", "positive"])
def test_half_of_the_pairs_are_originals_and_half_their_mutants_side_by_side(mutations: str) -> None:
    entries = _entries(5, 8, mutants=True)  # 40 originals
    options = BatchOptions(4, mutations=mutations)  # type: ignore[arg-type]
    places = [place for batch in plan_batches(entries, options, 0) for place in batch]
    assert len(places) == 40
    for original, mutant in zip(places[::2], places[1::2], strict=True):
        assert entries[mutant].mutant_of == entries[original].key
    later = {place for batch in plan_batches(entries, options, 1) for place in batch}
    assert later == set(places)  # the same half in each epoch


def test_mutations_need_mutants_and_even_batches() -> None:
    with pytest.raises(InputError, match="mutants = true"):
        plan_batches(_entries(2, 8), BatchOptions(4, mutations="negative"), 0)
    with pytest.raises(InputError, match="even"):
        BatchOptions(3, mutations="negative")
