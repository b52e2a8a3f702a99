import pytest
import torch
from example_melodies import TINY_MODEL

from fusili_training.loop.estimate import Estimate, estimate_run, noise_inputs
from fusili_training.loop.feeding import Inputs
from fusili_training.loop.live_memory import LiveMemory
from fusili_training.loop.recipe import DataOptions, LossOptions, Recipe, TrainingOptions
from fusili_training.model.model import FusiliModel, ModelOptions


def estimate(batch_size: int = 8, alpha: float = 0.5, n_batches: int | None = None) -> Estimate:
    torch.manual_seed(0)
    options = ModelOptions(backbone="small", backbone_options=TINY_MODEL)
    recipe = Recipe(
        "x",
        model=options,
        loss=LossOptions(alpha=alpha),
        data=DataOptions(batch_size=batch_size),
        training=TrainingOptions(epochs=3),
    )
    model = FusiliModel(options)
    inputs = Inputs(torch.rand(2, 1, 128, 64), torch.rand(2, 16_000) - 0.5, None, None)
    return estimate_run(recipe, model, inputs, n_batches)


def test_live_memory_counts_storages_once_and_forgets_those_that_are_gone() -> None:
    known = torch.zeros(1000)
    memory = LiveMemory([known])
    with memory:
        kept = known[:10] + 1  # 40 bytes: the view is of a known tensor
        view = kept[:5]
        temporary = torch.ones(100)  # 400 bytes
        del temporary
    assert (memory.peak_bytes, memory.live_bytes) == (440, 40)
    assert len(view) == 5


def test_what_autograd_keeps_is_counted() -> None:
    weight = torch.ones(10, 10, requires_grad=True)
    memory = LiveMemory([weight])
    with memory:
        loss = (weight.exp() * 2).sum()
    assert memory.live_bytes == 400 + 4  # the exponential, for its own gradient, and the loss
    assert loss.requires_grad


def test_parameters_and_their_optimiser_are_counted_exactly() -> None:
    model = FusiliModel(ModelOptions(backbone="small", backbone_options=TINY_MODEL))
    n_parameters = sum(p.numel() for p in model.parameters())
    found = estimate()
    assert found.n_parameters == n_parameters
    assert found.n_head_parameters + found.n_encoder_parameters == n_parameters
    assert found.state_bytes == 16 * n_parameters  # weight, gradient, two moments


def test_activations_grow_with_the_batch_and_the_similarity_with_its_square() -> None:
    small, large = estimate(batch_size=8), estimate(batch_size=16)
    assert large.activation_bytes == pytest.approx(2 * small.activation_bytes, rel=0.01)
    assert large.similarity_bytes == pytest.approx(4 * small.similarity_bytes, rel=0.2)


def test_a_global_loss_needs_no_local_similarity() -> None:
    assert estimate(alpha=0.0).similarity_bytes == 0


def test_steps_are_said_when_the_data_is_known() -> None:
    assert "unknown without data" in estimate().lines()[-1]
    assert estimate(n_batches=500).lines()[-1] == "steps           1,500 (500 per epoch)"


def test_noise_has_the_size_that_a_model_takes() -> None:
    inputs = noise_inputs(FusiliModel(ModelOptions(backbone="small", backbone_options=TINY_MODEL)))
    assert inputs.images.shape == (2, 2, 128, 512)
    assert inputs.waveforms.shape == (2, 20 * 16_000)
