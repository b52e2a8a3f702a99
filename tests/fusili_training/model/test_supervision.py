"""Local supervision, with values computed by hand."""

import math

import pytest
import torch

from fusili_mir.errors import InputError
from fusili_training.model.supervision import NoteHeads, NoteTargets, alignment_loss
from fusili_training.pitches import LOWEST_PITCH, N_PITCHES

PATCHES = torch.eye(3)[None]  # (B=1, N=3, d=3)
FRAMES = torch.eye(3)[None, [0, 1, 1, 2]]  # (B=1, M=4, d=3)
TRUTH = torch.tensor([[[1.0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]])


def test_both_directions_by_hand() -> None:
    scale = torch.tensor(2.0)
    to_patch = math.log(math.exp(2) + 2) - 2  # each frame: one patch with cosine 1, two with 0
    alone = math.log(math.exp(2) + 3) - 2  # patches 0 and 2: one frame of four
    shared = math.log(2 * math.exp(2) + 2) - 2  # patch 1: either of its two frames
    expected = (to_patch + (2 * alone + shared) / 3) / 2
    assert alignment_loss(PATCHES, FRAMES, scale, TRUTH).item() == pytest.approx(expected)


def test_a_right_alignment_costs_less_the_higher_the_scale() -> None:
    costs = [alignment_loss(PATCHES, FRAMES, torch.tensor(s), TRUTH).item() for s in (1.0, 10.0, 50.0)]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == pytest.approx(math.log(2) / 6, abs=1e-6)  # only patch 1 has two frames to choose from


def test_padding_changes_nothing() -> None:
    generator = torch.Generator().manual_seed(0)
    patches, frames = torch.randn(2, 4, 3, generator=generator), torch.randn(2, 6, 3, generator=generator)
    targets = torch.rand(2, 4, 6, generator=generator)
    patch_mask = torch.tensor([[1, 1, 1, 0]] * 2, dtype=torch.bool)
    frame_mask = torch.tensor([[1, 1, 1, 1, 0, 0]] * 2, dtype=torch.bool)
    scale = torch.tensor(3.0)
    expected = alignment_loss(patches[:, :3], frames[:, :4], scale, targets[:, :3, :4])
    torch.testing.assert_close(
        alignment_loss(patches, frames, scale, targets, patch_mask, frame_mask), expected
    )


def test_places_without_a_target_do_not_count() -> None:
    targets = TRUTH.clone()
    targets[:, :, 3] = 0  # frame 3, and now also patch 2, have no target
    scale = torch.tensor(2.0)
    to_patch = math.log(math.exp(2) + 2) - 2
    to_frame = (math.log(math.exp(2) + 3) - 2 + math.log(2 * math.exp(2) + 2) - 2) / 2
    found = alignment_loss(PATCHES, FRAMES, scale, targets).item()
    assert found == pytest.approx((to_patch + to_frame) / 2)
    assert alignment_loss(PATCHES, FRAMES, scale, torch.zeros_like(TRUTH)).item() == 0


def test_gradients_stay_finite_with_whole_rows_of_padding() -> None:
    patches = PATCHES.clone().requires_grad_()
    mask = torch.tensor([[True, False, False]])
    alignment_loss(patches, FRAMES, torch.tensor(100.0), TRUTH, mask).backward()
    assert patches.grad is not None
    assert patches.grad.isfinite().all()
    assert not patches.grad[0, 1:].any()


def test_targets_of_another_shape_are_refused() -> None:
    with pytest.raises(InputError, match=r"\(1, 4, 3\); expected \(B, N, M\) = \(1, 3, 4\)"):
        alignment_loss(PATCHES, FRAMES, torch.tensor(1.0), TRUTH.transpose(1, 2))


def note_targets() -> NoteTargets:
    pitch = 60 - LOWEST_PITCH
    targets = [torch.zeros(1, length, N_PITCHES) for length in (3, 4, 4)]
    for target in targets:
        target[0, 1, pitch] = 1
    return NoteTargets(*targets)


def test_the_note_heads_start_near_silence() -> None:
    heads = NoteHeads(5, 6, positive_weight=1.0)
    features = torch.zeros(1, 3, 5), torch.zeros(1, 4, 6)
    absent, present = math.log(1 + math.exp(-3)), math.log(1 + math.exp(3))
    expected = 3 * absent + (present - absent) / N_PITCHES * (1 / 3 + 1 / 4 + 1 / 4)
    assert heads(*features, note_targets()).item() == pytest.approx(expected, rel=1e-5)


def test_masked_places_have_no_say_in_the_note_loss() -> None:
    heads = NoteHeads(5, 6)
    generator = torch.Generator().manual_seed(0)
    patches, frames = torch.randn(1, 3, 5, generator=generator), torch.randn(1, 4, 6, generator=generator)
    masks = torch.tensor([[True, True, False]]), torch.tensor([[True, True, True, False]])
    expected = heads(patches, frames, note_targets(), *masks)
    patches[0, 2], frames[0, 3] = 100.0, -100.0
    torch.testing.assert_close(heads(patches, frames, note_targets(), *masks), expected)


def test_note_targets_of_another_shape_are_refused() -> None:
    with pytest.raises(InputError, match=r"expected \(1, 4, 88\)"):
        NoteHeads(5, 6)(torch.zeros(1, 4, 5), torch.zeros(1, 4, 6), note_targets())
