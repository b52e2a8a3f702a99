import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from example_melodies import TINY_MODEL, MelodySource, batch_of, random_melodies
from example_models import TINY_CLIP_CLAP

from fusili_mir.geometry import FrameGrid, PatchGrid
from fusili_training.data.batch import Batch
from fusili_training.loop.distributed import ProcessRanks
from fusili_training.loop.feeding import prepare
from fusili_training.loop.objective import Objective
from fusili_training.loop.recipe import LossOptions, Recipe, TrainingOptions
from fusili_training.loop.validation import FrameHits, Validation, count_hits, local_similarities, validate
from fusili_training.model.model import FusiliModel, ModelOptions
from fusili_training.truth import TRUTH_DTYPE

PATCHES = PatchGrid(rows=1, cols=3, patch_width_px=10, patch_height_px=10)
FRAMES = FrameGrid(n_frames=4, frame_sec=1.0)
CPU = ProcessRanks(0, 1, torch.device("cpu"))


def build(alpha: float) -> tuple[Objective, Recipe]:
    torch.manual_seed(0)
    options = ModelOptions(backbone="small", backbone_options=TINY_MODEL)
    recipe = Recipe("x", model=options, loss=LossOptions(alpha=alpha))
    return Objective(FusiliModel(options), recipe.loss), recipe


def test_a_frame_is_right_when_its_most_similar_patch_sounds() -> None:
    # One note in the first patch for 0-2 s, one in the last for 1-3 s; frame 3 is after the last note.
    truth = np.array(
        [("a", 60, 0, 0, 4, 4, 6, 6, 0.0, 2.0, True), ("b", 62, 0, 0, 24, 4, 26, 6, 1.0, 3.0, True)],
        dtype=TRUTH_DTYPE,
    )
    similarity = np.zeros((3, 4), dtype=np.float32)
    similarity[[0, 2, 1, 1], range(4)] = 1  # right, right, wrong, not counted
    assert count_hits(similarity, truth, PATCHES, FRAMES) == FrameHits(2, 3)


def test_frames_of_the_protocol_are_counted_where_one_frame_stands_for_several() -> None:
    truth = np.array([("a", 60, 0, 0, 4, 4, 6, 6, 0.0, 0.75, True)], dtype=TRUTH_DTYPE)
    similarity = np.zeros((3, 4), dtype=np.float32)
    similarity[0] = 1
    assert count_hits(similarity, truth, PATCHES, FRAMES, frame_repeats=4) == FrameHits(3, 3)


def test_the_joint_figure_is_the_sum_of_two_log_probabilities() -> None:
    assert Validation(loss=0.5, local_top1=0.25).joint == pytest.approx(math.log(0.25) - 0.5)
    assert Validation(loss=0.5, local_top1=0.0).joint > -math.inf


def test_a_better_loss_or_a_better_top1_is_a_better_joint_figure() -> None:
    assert Validation(0.4, 0.25).joint > Validation(0.5, 0.25).joint
    assert Validation(0.5, 0.30).joint > Validation(0.5, 0.25).joint


def test_a_model_of_the_global_loss_is_judged_through_its_global_heads() -> None:
    batch = batch_of(random_melodies(2))
    for alpha, heads in ((0.0, "global"), (0.5, "local")):
        objective, recipe = build(alpha)
        model = objective.model.eval()
        inputs = prepare(batch, model, recipe, torch.device("cpu"))
        similarities = local_similarities(objective, model(inputs.images, inputs.waveforms))
        images = model.encode_images(batch.images, heads)  # type: ignore[arg-type]
        recordings = model.encode_recordings(batch.waveforms, heads)  # type: ignore[arg-type]
        expected = images.local @ recordings.local.transpose(1, 2)
        assert images.mask is not None
        torch.testing.assert_close(
            similarities[:, images.mask[0]], expected[:, images.mask[0]], rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_squares_are_validated_under_bfloat16_autocast_as_on_a_gpu(alpha: float) -> None:
    torch.manual_seed(0)
    options = ModelOptions(backbone="clip-clap", backbone_options=TINY_CLIP_CLAP)
    training = TrainingOptions(precision="bfloat16", device="cpu")
    recipe = Recipe("x", model=options, loss=LossOptions(alpha=alpha), training=training)
    objective = Objective(FusiliModel(options), recipe.loss)
    truth = np.array([("a", 60, 0, 0, 4, 4, 6, 6, 0.0, 2.0, True)], dtype=TRUTH_DTYPE)
    images, waveforms = torch.rand(2, 1, 224, 224), 0.1 * torch.randn(2, 960_000)
    batch = Batch(images, waveforms, torch.ones(2, dtype=torch.bool), ("a", "b"), (truth, truth))
    found = validate(objective, [batch], recipe, CPU)
    exact = validate(objective, [batch], replace(recipe, training=TrainingOptions(device="cpu")), CPU)
    assert found.loss == pytest.approx(exact.loss, rel=0.05)
    apart = validate(objective, [batch], recipe, CPU, local_batches=[batch, batch])
    assert (apart.loss, apart.local_top1) == pytest.approx((found.loss, found.local_top1))


def test_other_pairs_may_give_the_local_top1() -> None:
    objective, recipe = build(alpha=0.5)
    first, second = MelodySource(random_melodies(8), 4).epoch(0)
    alone = [validate(objective, [batch], recipe, CPU) for batch in (first, second)]
    both = validate(objective, [first], recipe, CPU, local_batches=[second])
    assert both.loss == pytest.approx(alone[0].loss)
    assert both.local_top1 == pytest.approx(alone[1].local_top1)
    assert alone[0].local_top1 != alone[1].local_top1


def test_validation_averages_over_batches_and_leaves_the_model_as_it_was() -> None:
    objective, recipe = build(alpha=0.5)
    objective.train()
    before = {name: value.clone() for name, value in objective.state_dict().items()}
    batches = list(MelodySource(random_melodies(8), 4).epoch(0))
    parts = [validate(objective, [batch], recipe, CPU) for batch in batches]
    whole = validate(objective, batches, recipe, CPU)
    assert whole.loss == pytest.approx(sum(part.loss for part in parts) / 2)
    assert whole.local_top1 == pytest.approx(sum(part.local_top1 for part in parts) / 2)
    assert 0 <= whole.local_top1 <= 1
    assert objective.training
    torch.testing.assert_close(objective.state_dict(), before, rtol=0, atol=0)
