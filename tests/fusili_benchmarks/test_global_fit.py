"""Fitting the pooling of global embeddings, on pairs made by hand."""

import numpy as np
import torch
from torch.nn import functional

from fusili_benchmarks.global_fit import (
    LocalPairs,
    cut_excerpts,
    discriminant,
    find_prototypes,
    fit_projection,
    retrieval_mrr,
    whole_segments,
)
from fusili_benchmarks.pooled_tokens import TokenPairs
from fusili_training.model.prototype_pooling import PrototypePooling


def pairs(n_pairs: int = 2, n_columns: int = 100, n_frames: int = 200) -> TokenPairs:
    """Pairs with a note head in every tenth column, which sounds for 20 frames; the right half sounds last."""
    heads = np.array([(10 * k + 5, 20 * k, 20 * k + 20) for k in range(n_columns // 10)], np.float32)
    number = np.arange(1, n_pairs + 1)
    return TokenPairs(
        np.zeros((n_pairs * n_columns, 2), np.float16),
        np.zeros((n_pairs * n_frames, 2), np.float16),
        np.tile(heads, (n_pairs, 1)),
        number * n_columns,
        number * n_frames,
        number * len(heads),
        np.array([f"piece {k}" for k in number]),
        np.array(["same notes"] * n_pairs),
    )


def test_whole_segments_are_all_rows_of_each_pair() -> None:
    assert whole_segments(pairs()).tolist() == [[0, 100, 0, 200], [100, 200, 200, 400]]


def test_excerpts_lie_within_their_pairs_and_sound_about_when_their_columns_do() -> None:
    made = pairs(n_pairs=50)
    whole, cut = whole_segments(made), cut_excerpts(made, seed=0)
    inside = cut - whole
    assert (inside[:, [0, 2]] >= 0).all()
    assert (inside[:, [1, 3]] <= 0).all()
    length = cut[:, 1] - cut[:, 0]
    assert (length >= 40).all()
    assert (length <= 95).all()
    # Two frames a column; a quarter of the excerpt and the distance of two heads are allowed.
    allowed = 0.25 * 2 * length + 21
    assert (np.abs(inside[:, 2] - 2 * inside[:, 0]) <= allowed).all()
    assert (np.abs(inside[:, 3] - 2 * inside[:, 1]) <= allowed).all()


def test_excerpts_are_the_same_for_the_same_seed_only() -> None:
    made = pairs(n_pairs=5)
    assert (cut_excerpts(made, 3) == cut_excerpts(made, 3)).all()
    assert (cut_excerpts(made, 3) != cut_excerpts(made, 4)).any()


def test_joined_pairs_keep_their_rows() -> None:
    joined = TokenPairs.join([pairs(1), pairs(2)])
    assert joined.column_ends.tolist() == [100, 200, 300]
    assert joined.frame_ends.tolist() == [200, 400, 600]
    assert joined.head_ends.tolist() == [10, 20, 30]
    assert joined.groups.tolist() == [0, 0, 0]


def test_prototypes_are_the_directions_in_which_columns_and_frames_lie() -> None:
    axes = torch.eye(3)
    rows = functional.normalize(axes.repeat(40, 1) + 0.01 * torch.ones(120, 3), dim=1)
    found = find_prototypes(LocalPairs(pairs(), rows, rows), 3, seed=1)
    torch.testing.assert_close(found.norm(dim=1), torch.ones(3))
    assert (found @ axes).max(dim=1).values.min() > 0.9


def test_the_discriminant_prefers_what_images_and_recordings_have_in_common() -> None:
    torch.manual_seed(0)
    common = torch.randn(500, 1).double()
    noise = 10 * torch.randn(2, 500, 1).double()
    images, recordings = (
        torch.cat([common, each], dim=1) for each in noise
    )  # the second feature is loud noise
    (direction,) = discriminant(images, recordings, 1, 1e-6)
    assert abs(direction[0]) > 20 * abs(direction[1])


def test_a_fitted_projection_finds_partners_that_differ_in_level_and_noise() -> None:
    torch.manual_seed(0)
    segments = 0.1 * torch.randn(300, 4)
    images, recordings = segments + 0.2, segments - 0.3 + 0.01 * torch.randn(300, 4)
    pooling = PrototypePooling(embedding_dim=3, n_prototypes=4)
    fit_projection(pooling, images, recordings, 0.1)
    torch.testing.assert_close(pooling.centres, torch.stack([images.mean(dim=0), recordings.mean(dim=0)]))
    assert min(retrieval_mrr(pooling, images, recordings, np.arange(300))) > 0.7
    wrong = recordings[torch.randperm(300)]
    assert max(retrieval_mrr(pooling, images, wrong, np.arange(300))) < 0.1
