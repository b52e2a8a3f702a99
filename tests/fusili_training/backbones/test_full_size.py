"""Two training steps of the paper's model at full size, with a batch of two."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fusili_training.data.batch import Batch
from fusili_training.loop.distributed import ProcessRanks
from fusili_training.loop.recipe_files import read_recipe
from fusili_training.loop.trainer import Trainer
from fusili_training.losses.denormals import flushed_denormals
from fusili_training.truth import TRUTH_DTYPE

OVERRIDES = ("data.batch_size=2", "weights.clip=random", "weights.clap=random", "model.initial_scale=1.0")


class NoiseSource:
    """An original and its mutant, as noise: 224 x 224 pixels and 20 s at 48 kHz."""

    def __len__(self) -> int:
        return 2

    def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
        for index in range(skip, len(self)):
            generator = torch.Generator().manual_seed(index)
            yield Batch(
                images=torch.rand(2, 1, 224, 224, generator=generator),
                waveforms=torch.rand(2, 20 * 48_000, generator=generator) - 0.5,
                is_original=torch.tensor([True, False]),
                keys=("noise.whole.0", "noise.whole.0.mutant"),
                truths=(np.zeros(0, dtype=TRUTH_DTYPE),) * 2,
            )


def test_two_steps_with_negative_mutations_train_heads_and_encoders(tmp_path: Path) -> None:
    recipe = read_recipe("table1-same-piece-negative-mutations", OVERRIDES)
    trainer = Trainer(recipe, tmp_path, NoiseSource(), None, ProcessRanks(0, 1, torch.device("cpu")))
    model = trainer.objective.model
    watched: tuple[Any, Any] = (model.image_head.weight, model.image.visual.conv1.weight)  # type: ignore[union-attr]
    before = [weight.detach().clone() for weight in watched]
    with flushed_denormals():
        figures = [trainer.step(batch) for batch in NoiseSource().epoch(0)]
    assert all(np.isfinite(figure["loss"]) for figure in figures)
    assert figures[0]["heads_rate"] == pytest.approx(10 * figures[0]["encoders_rate"])
    assert figures[1]["local_scale"] >= 1
    # The first steps of AdamW have the size of the learning rate, whatever the gradient.
    for weight, earlier, rate in zip(watched, before, (2e-4, 2e-5), strict=True):
        moved = (weight.detach() - earlier).abs().max().item()
        assert rate / 2 < moved < 3 * rate
