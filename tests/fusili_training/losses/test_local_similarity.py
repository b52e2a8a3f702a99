"""The other two local similarities, and the choice by name."""

import pytest
import torch
from torch.nn import functional

from fusili_mir.errors import InputError
from fusili_training.losses.local_similarity import (
    LOCAL_SIMILARITIES,
    choose_local_similarity,
    softmax_similarity,
    summed_cosines,
)
from fusili_training.losses.sinkhorn import fusili_similarity

GENERATOR = torch.Generator().manual_seed(0)
PATCHES = torch.randn(2, 4, 3, generator=GENERATOR, dtype=torch.float64)
FRAMES = torch.randn(3, 5, 3, generator=GENERATOR, dtype=torch.float64)
PATCH_MASK = torch.tensor([[1, 1, 1, 1], [1, 0, 1, 0]], dtype=torch.bool)
FRAME_MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 1, 0], [0, 1, 1, 0, 0]], dtype=torch.bool)
SCALE = torch.tensor(2.5, dtype=torch.float64)


def logits(i: int, j: int) -> torch.Tensor:
    x = functional.normalize(PATCHES[i][PATCH_MASK[i]], dim=-1)
    return SCALE * x @ functional.normalize(FRAMES[j][FRAME_MASK[j]], dim=-1).T


def test_cosine_is_the_sum_of_all_valid_entries() -> None:
    expected = torch.stack([torch.stack([logits(i, j).sum() for j in range(3)]) for i in range(2)])
    torch.testing.assert_close(summed_cosines(PATCHES, FRAMES, SCALE, PATCH_MASK, FRAME_MASK), expected)


def test_cosine_counts_each_frame_as_often_as_the_protocol_does() -> None:
    repeated = summed_cosines(PATCHES, FRAMES.repeat_interleave(4, dim=1), SCALE)
    torch.testing.assert_close(summed_cosines(PATCHES, FRAMES, SCALE, frame_repeats=4), repeated)


def test_softmax_lets_each_frame_weigh_the_patches() -> None:
    expected = torch.stack(
        [
            torch.stack([(logits(i, j).softmax(dim=0) * logits(i, j)).sum(dim=0).mean() for j in range(3)])
            for i in range(2)
        ]
    )
    torch.testing.assert_close(softmax_similarity(PATCHES, FRAMES, SCALE, PATCH_MASK, FRAME_MASK), expected)


@pytest.mark.parametrize("name", LOCAL_SIMILARITIES)
def test_every_similarity_has_a_right_gradient(name: str) -> None:
    inputs = [t.clone().requires_grad_() for t in (PATCHES, FRAMES, SCALE)]
    similarity = choose_local_similarity(name, n_iterations=3)
    assert torch.autograd.gradcheck(lambda x, y, s: similarity(x, y, s, PATCH_MASK, FRAME_MASK), inputs)


@pytest.mark.parametrize("name", LOCAL_SIMILARITIES)
def test_every_similarity_stays_in_float32_under_autocast(name: str) -> None:
    inputs = (PATCHES.float(), FRAMES.float(), SCALE.float())
    similarity = choose_local_similarity(name)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = similarity(*inputs)
    torch.testing.assert_close(found, similarity(*inputs))


def test_the_iterations_reach_the_fusili_similarity() -> None:
    one = choose_local_similarity("fusili", n_iterations=1)(PATCHES, FRAMES, SCALE)
    torch.testing.assert_close(one, fusili_similarity(PATCHES, FRAMES, SCALE, n_iterations=1))


def test_an_unknown_similarity_is_refused() -> None:
    with pytest.raises(
        InputError, match="unknown local similarity 'sinkhorn'; expected one of fusili, cosine, softmax"
    ):
        choose_local_similarity("sinkhorn")
