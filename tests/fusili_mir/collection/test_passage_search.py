from __future__ import annotations

import itertools

import numpy as np
import pytest

from fusili_mir.collection import passage_search
from fusili_mir.collection.encoded_piece import EncodedPiece
from fusili_mir.collection.passage_search import find_passage
from fusili_mir.pages.score_axis import COLUMN_DTYPE


def recording(steps: np.ndarray) -> EncodedPiece:  # type: ignore[type-arg]
    n, d = steps.shape
    return EncodedPiece(
        "recording",
        steps[:, None].astype(np.float16),
        np.ones((n, 1), bool),
        np.zeros((0, d), np.float16),
        np.zeros((0, 2), np.int64),
        np.empty(0, COLUMN_DTYPE),
        frame_sec=0.04,
    )


def random_steps(n: int, seed: int) -> np.ndarray:  # type: ignore[type-arg]
    drawn = np.random.default_rng(seed).normal(size=(n, 16)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def test_the_path_is_the_best_of_all_paths() -> None:
    nats = np.random.default_rng(1).normal(size=(4, 6)).astype(np.float32)
    held, fastest = passage_search._HELD_COST, passage_search._FASTEST

    def value(path: tuple[int, ...]) -> float:
        steps = np.diff(path)
        if np.any(steps < 0) or np.any(steps > fastest):
            return -np.inf
        cost = sum(held if step == 0 else held * (step - 1) for step in steps)
        return sum(float(nats[row, place]) for row, place in enumerate(path)) - cost

    best = max(itertools.product(range(6), repeat=4), key=value)
    values, begin = passage_search._best_path(nats)
    assert int(values.argmax()) == best[-1]
    assert begin[best[-1]] == best[0]
    assert values.max() == pytest.approx(value(best), abs=1e-5)


def test_a_passage_is_found_where_it_was_taken_from_even_at_half_the_speed() -> None:
    piece = np.repeat(random_steps(100, 0), 4, axis=0)  # every sound lasts four steps
    for repeats in (1, 2):
        passage = np.repeat(piece[120:240], repeats, axis=0)
        found = find_passage(passage[:, None], recording(piece), scale=20.0)
        assert (found.first, found.stop) == (120, 240)
        assert found.reliability > 0.9


def test_other_music_has_no_lead_over_itself_backwards() -> None:
    piece, other = (np.repeat(random_steps(100, seed), 4, axis=0) for seed in (0, 1))
    found = find_passage(other[120:240, None], recording(piece), scale=20.0)
    right = find_passage(piece[120:240, None], recording(piece), scale=20.0)
    assert right.likelihood - right.backwards > 4 * abs(found.likelihood - found.backwards)


def test_a_piece_shorter_than_the_passage_is_no_problem() -> None:
    piece = random_steps(3, 0)
    found = find_passage(random_steps(50, 1)[:, None], recording(piece), scale=20.0)
    assert (found.first, found.stop) == (0, 3)
