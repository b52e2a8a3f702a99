"""Take two training steps with every recipe of the paper's tables, at full size, on pairs of noise.

`python benchmarks/two_steps.py [RECIPE ...]` prints a Markdown table: the CPU seconds of the second step, and
both losses. The encoders have random weights; a batch has 2 pairs.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from fusili_training.data.batch import Batch
from fusili_training.loop.distributed import ProcessRanks, choose_device
from fusili_training.loop.recipe_files import list_recipes, read_recipe
from fusili_training.loop.trainer import Trainer
from fusili_training.losses.denormals import flushed_denormals
from fusili_training.truth import TRUTH_DTYPE

OVERRIDES = ("data.batch_size=2", "weights.clip=random", "weights.clap=random", "model.initial_scale=1.0")
SIDE_PX, N_SAMPLES = 224, 20 * 48_000


class NoiseSource:
    """Batches of two pairs of noise: an original and, if the recipe has mutations, a mutant."""

    def __len__(self) -> int:
        return 2

    def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
        for index in range(skip, len(self)):
            generator = torch.Generator().manual_seed(1000 * number + index)
            yield Batch(
                images=torch.rand(2, 1, SIDE_PX, SIDE_PX, generator=generator),
                waveforms=torch.rand(2, N_SAMPLES, generator=generator) - 0.5,
                is_original=torch.tensor([True, False]),
                keys=("noise.0", "noise.0.mutant"),
                truths=(np.zeros(0, dtype=TRUTH_DTYPE),) * 2,
            )


def main() -> None:
    names = sys.argv[1:] or [name for name in list_recipes() if name.startswith("table")]
    print("| recipe | second step, CPU s | loss 1 | loss 2 |\n| --- | --- | --- | --- |")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            ranks = ProcessRanks(0, 1, choose_device("auto"))
            trainer = Trainer(read_recipe(name, OVERRIDES), Path(folder), NoiseSource(), None, ranks)
            losses, seconds = [], 0.0
            with flushed_denormals():
                for batch in NoiseSource().epoch(0):
                    begun = time.process_time()
                    losses.append(trainer.step(batch)["loss"])
                    seconds = time.process_time() - begun
        print(f"| {name} | {seconds:.1f} | {losses[0]:.4f} | {losses[1]:.4f} |", flush=True)


if __name__ == "__main__":
    main()
