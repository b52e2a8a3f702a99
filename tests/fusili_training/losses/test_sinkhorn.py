"""The FuSiLi similarity against a plain implementation that follows the definition pair by pair."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from fusili_mir.errors import InputError
from fusili_training.losses.sinkhorn import fusili_similarity
from fusili_training.losses.soft_alignment import Potentials, scale_plan


def slow_similarity(
    patches: Tensor,
    frames: Tensor,
    scale: Tensor,
    patch_mask: Tensor | None = None,
    frame_mask: Tensor | None = None,
    n_iterations: int = 20,
) -> Tensor:
    """Remove padding, and normalise rows and columns in turn, one pair at a time."""
    rows = []
    for i, image in enumerate(functional.normalize(patches, dim=-1)):
        x = image if patch_mask is None else image[patch_mask[i]]
        row = []
        for j, recording in enumerate(functional.normalize(frames, dim=-1)):
            y = recording if frame_mask is None else recording[frame_mask[j]]
            logits = scale * x @ y.T
            log_plan = logits
            for _ in range(n_iterations):
                log_plan = log_plan.log_softmax(dim=1) - math.log(len(x))
                log_plan = log_plan.log_softmax(dim=0) - math.log(len(y))
            row.append((log_plan.exp() * logits).sum())
        rows.append(torch.stack(row))
    return torch.stack(rows)


def batch(
    seed: int = 0, n_images: int = 2, n_recordings: int = 3, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    patches = torch.randn(n_images, 4, 3, generator=generator, dtype=dtype).requires_grad_()
    frames = torch.randn(n_recordings, 5, 3, generator=generator, dtype=dtype).requires_grad_()
    return patches, frames, torch.tensor(3.0, dtype=dtype, requires_grad=True)


PATCH_MASK = torch.tensor([[1, 1, 1, 1], [1, 0, 1, 0]], dtype=torch.bool)
FRAME_MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 1, 0], [0, 1, 1, 0, 0]], dtype=torch.bool)


@pytest.mark.parametrize("n_iterations", [1, 2, 5, 20])
@pytest.mark.parametrize("masked", [False, True])
def test_the_value_is_that_of_the_definition(n_iterations: int, masked: bool) -> None:
    masks: tuple[Tensor | None, Tensor | None] = (PATCH_MASK, FRAME_MASK) if masked else (None, None)
    patches, frames, scale = batch()
    expected = slow_similarity(patches, frames, scale, *masks, n_iterations)
    found = fusili_similarity(patches, frames, scale, *masks, n_iterations)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_iterations", [1, 2, 5, 20])
@pytest.mark.parametrize("masked", [False, True])
def test_the_gradient_is_exact_through_all_iterations(n_iterations: int, masked: bool) -> None:
    masks: tuple[Tensor | None, Tensor | None] = (PATCH_MASK, FRAME_MASK) if masked else (None, None)
    assert torch.autograd.gradcheck(lambda *inputs: fusili_similarity(*inputs, *masks, n_iterations), batch())  # type: ignore[call-arg]


def test_one_iteration_by_hand() -> None:
    # One patch, two frames with cosines 1 and 0: whatever the row step does, each column ends up with 1/2.
    patches, frames = torch.tensor([[[1.0, 0.0]]]), torch.tensor([[[2.0, 0.0], [0.0, 5.0]]])
    assert fusili_similarity(patches, frames, torch.tensor(8.0), n_iterations=1).item() == pytest.approx(4.0)


@pytest.mark.parametrize("pairs_per_tile", [1, 3, 100])
def test_the_tile_size_changes_nothing(pairs_per_tile: int) -> None:
    patches, frames, scale = batch(n_images=3, n_recordings=4)
    weights = torch.arange(12.0, dtype=torch.float64).view(3, 4)
    expected = slow_similarity(patches, frames, scale)
    found = fusili_similarity(patches, frames, scale, pairs_per_tile=pairs_per_tile)
    torch.testing.assert_close(found, expected)
    inputs = (patches, frames, scale)
    torch.testing.assert_close(
        torch.autograd.grad((weights * found).sum(), inputs),
        torch.autograd.grad((weights * expected).sum(), inputs),
    )


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_float32_stays_within_1e_5_of_float64(scale: float) -> None:
    generator = torch.Generator().manual_seed(1)
    frames = torch.randn(2, 64, 32, generator=generator, dtype=torch.float64)
    patches = frames[:, ::2] + 0.3 * torch.randn(2, 32, 32, generator=generator, dtype=torch.float64)
    values, gradients = [], []
    for dtype in (torch.float32, torch.float64):
        inputs = [patches.to(dtype).requires_grad_(), frames.to(dtype).requires_grad_()]
        similarities = fusili_similarity(inputs[0], inputs[1], torch.tensor(scale, dtype=dtype))
        values.append(similarities.detach().double())
        gradients.append([g.double() for g in torch.autograd.grad(similarities.diagonal().sum(), inputs)])
    assert ((values[0] - values[1]) / values[1]).abs().max() < 1e-5
    for single, double in zip(*gradients, strict=True):
        assert (single - double).norm() < 1e-4 * double.norm()


def test_a_very_high_scale_stays_finite_and_right() -> None:
    generator = torch.Generator().manual_seed(2)
    patches = torch.randn(2, 6, 4, generator=generator)
    frames = torch.randn(2, 9, 4, generator=generator)
    results = []
    for dtype, similarity in ((torch.float32, fusili_similarity), (torch.float64, slow_similarity)):
        x, y = patches.to(dtype).requires_grad_(), frames.to(dtype).requires_grad_()
        value = similarity(x, y, torch.tensor(3000.0, dtype=dtype))
        results.append([t.detach().double() for t in (value, *torch.autograd.grad(value.sum(), (x, y)))])
    for found, expected in zip(*results, strict=True):
        assert (found - expected).norm() < 1e-3 * expected.norm()


def test_a_pair_out_of_the_number_range_is_computed_in_the_log_domain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def overflowing(*arguments: Any) -> tuple[Potentials, Tensor]:
        potentials, similarities = scale_plan(*arguments)
        potentials.u[1] = similarities[1] = torch.inf
        potentials.in_range[1] = False
        return potentials, similarities

    inputs = batch()
    expected = slow_similarity(*inputs, PATCH_MASK, FRAME_MASK)
    expected_gradients = torch.autograd.grad(expected.prod(), inputs)
    monkeypatch.setattr("fusili_training.losses.sinkhorn.scale_plan", overflowing)
    found = fusili_similarity(*inputs, PATCH_MASK, FRAME_MASK, pairs_per_tile=2)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.autograd.grad(found.prod(), inputs), expected_gradients)


def test_embeddings_that_are_no_numbers_spoil_their_own_pairs_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def unexpected(*_: Any) -> Tensor:
        raise AssertionError("no other way to compute the pair can help")

    monkeypatch.setattr("fusili_training.losses.sinkhorn.similarity_in_log_domain", unexpected)
    patches, frames, scale = batch()
    expected = fusili_similarity(patches, frames, scale)
    spoilt = patches.detach().clone().requires_grad_()
    with torch.no_grad():
        spoilt[0, 1] = torch.nan
    found = fusili_similarity(spoilt, frames, scale)
    assert found[0].isnan().all()
    torch.testing.assert_close(found[1], expected[1])
    found.sum().backward()
    assert spoilt.grad is not None
    assert spoilt.grad[0].isnan().any()


def test_repeated_frames_leave_the_similarity_unchanged() -> None:
    patches, frames, scale = batch()
    repeated = frames.repeat_interleave(4, dim=1)
    torch.testing.assert_close(
        fusili_similarity(patches, repeated, scale), fusili_similarity(patches, frames, scale)
    )


def test_the_order_of_patches_and_frames_does_not_matter() -> None:
    patches, frames, scale = batch()
    shuffled = fusili_similarity(patches[:, [2, 0, 3, 1]], frames[:, [4, 2, 0, 1, 3]], scale)
    torch.testing.assert_close(shuffled, fusili_similarity(patches, frames, scale))


def test_autocast_accumulates_in_float32() -> None:
    patches, frames, scale = (t.detach().float() for t in batch())
    expected = fusili_similarity(patches, frames, scale)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = fusili_similarity(patches, frames, scale)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected)


def test_a_matched_pair_is_more_similar_than_a_mismatched_one() -> None:
    embeddings = torch.eye(12).view(2, 6, 12)  # two segments that have nothing in common
    similarities = fusili_similarity(embeddings, embeddings.flip(1), torch.tensor(30.0))
    assert similarities.argmax(dim=1).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"frames": torch.ones(2, 5, 7)}, "same d"),
        ({"scale": torch.ones(2)}, "single number"),
        ({"n_iterations": 0}, "at least 1"),
        ({"patch_mask": torch.ones(2, 4)}, "torch.bool"),
        (
            {"patch_mask": torch.tensor([[True] * 4, [False] * 4])},
            "item 1 of the batch has padding only; expected at least one patch",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(changes: dict[str, object], message: str) -> None:
    patches, frames, scale = batch()
    arguments = {"patches": patches, "frames": frames, "scale": scale} | changes
    with pytest.raises(InputError, match=message) as caught:
        fusili_similarity(**arguments)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
