import pytest

from fusili_mir.errors import InputError
from fusili_training.loop.recipe import (
    DataOptions,
    LossOptions,
    OptimiserOptions,
    Recipe,
    TrainingOptions,
    WeightsOptions,
)
from fusili_training.model.model import ModelOptions


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan")])
def test_alpha_outside_0_to_1_is_refused(alpha: float) -> None:
    with pytest.raises(InputError, match=r"alpha is .*; expected a weight within \[0, 1\]"):
        LossOptions(alpha=alpha)


def test_values_that_cannot_work_are_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"data.batch_size is 1; expected at least 2"):
        DataOptions(batch_size=1)
    with pytest.raises(InputError, match=r"optimiser.head_rate is 0; expected more than 0"):
        OptimiserOptions(head_rate=0.0)
    with pytest.raises(InputError, match=r"training.epochs is 0; expected at least 1"):
        TrainingOptions(epochs=0)


def test_a_memory_without_a_global_loss_is_refused() -> None:
    with pytest.raises(InputError, match=r"loss.memory is 64 with loss.alpha = 1; expected 0"):
        LossOptions(alpha=1.0, memory=64)


def test_prototypes_of_local_embeddings_that_nothing_trains_are_refused() -> None:
    pooled = ModelOptions(pooling="prototypes")
    with pytest.raises(
        InputError, match=r'model.pooling is "prototypes" with loss.alpha = 0; expected an alpha'
    ):
        Recipe("x", model=pooled, loss=LossOptions(alpha=0.0))
    Recipe("x", model=pooled, loss=LossOptions(alpha=0.0, supervision="local", note_weight=0.0))


def test_global_heads_without_a_global_loss_are_refused() -> None:
    with pytest.raises(InputError, match=r"expected an alpha below 1"):
        Recipe("x", weights=WeightsOptions(trained="global heads"), loss=LossOptions(alpha=1.0))


def test_note_heads_without_a_loss_for_them_are_refused() -> None:
    with pytest.raises(InputError, match=r"expected note heads if, and only if, local supervision"):
        Recipe("x", model=ModelOptions(note_heads=True))


def test_local_supervision_of_notes_without_heads_is_refused() -> None:
    with pytest.raises(InputError, match=r"expected note heads if, and only if, local supervision"):
        Recipe("x", loss=LossOptions(supervision="local"))


def test_mutations_need_an_even_batch() -> None:
    with pytest.raises(InputError, match=r"expected an even number, half originals and half mutants"):
        Recipe("x", data=DataOptions(batch_size=5, mutations="negative"))


@pytest.mark.parametrize(
    ("loss", "trained"),
    [
        (LossOptions(alpha=0.0), False),
        (LossOptions(alpha=0.5), True),
        (LossOptions(alpha=0.0, supervision="local"), True),
        (LossOptions(alpha=0.0, supervision="local", alignment_weight=0.0), False),
    ],
)
def test_local_heads_learn_from_the_local_loss_or_from_the_alignment(
    loss: LossOptions, trained: bool
) -> None:
    assert loss.trains_local_heads is trained
