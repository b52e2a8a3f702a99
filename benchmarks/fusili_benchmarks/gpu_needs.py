"""What the paper's rows need on GPUs, computed from the full-size model and from what was measured at toy size.

The arithmetic of a step is counted while two pairs go through the model and back. Hours follow from it and from a
stated share of a GPU's peak that training reaches; they are estimates, not measurements.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.utils.flop_counter import FlopCounterMode

from fusili_training.loop.estimate import noise_inputs
from fusili_training.model.model import FusiliModel, ModelOptions

__all__ = ["GpuNeeds", "Workload", "count_operations"]

_SHARE_OF_PEAK = 0.3
_PEAK = {"A100 80 GB": 312e12, "H100 80 GB": 989e12, "RTX 4090 24 GB": 165e12}  # bf16, dense
_RECOMPUTED = 4 / 3  # gradient checkpointing repeats the forward pass: 4 passes' worth instead of 3


@dataclass(frozen=True)
class Workload:
    """The paper's training: pairs of an epoch, batch over all GPUs, epochs and GPUs."""

    n_pairs: int = 324_000
    batch_size: int = 128
    epochs: int = 20
    n_gpus: int = 4

    @property
    def n_steps(self) -> int:
        """Steps of a run."""
        return self.n_pairs // self.batch_size * self.epochs


@dataclass(frozen=True)
class GpuNeeds:
    """What a run needs.

    Attributes
    ----------
    operations_per_pair : float
        Floating-point operations of a forward and backward pass of one pair.
    kb_per_pair : float
        Size of a stored pair, originals and mutants alike.
    pairs_per_cpu_sec : float
        Pairs that one process reads and collates in a second of CPU time.
    """

    operations_per_pair: float
    kb_per_pair: float
    pairs_per_cpu_sec: float

    def lines(self, work: Workload) -> list[str]:
        """Return the estimate for people to read."""
        per_step = self.operations_per_pair * _RECOMPUTED * work.batch_size
        lines = [
            f"one run          {work.n_steps:,} steps of {work.batch_size} pairs on {work.n_gpus} GPUs,"
            f" {per_step / 1e12:.1f} TFLOP a step"
        ]
        for name, peak in _PEAK.items():
            step_sec = per_step / (work.n_gpus * peak * _SHARE_OF_PEAK)
            hours = step_sec * work.n_steps / 3600
            workers = work.batch_size / self.pairs_per_cpu_sec / step_sec
            lines.append(
                f"  {name:15s} {step_sec:.2f} s a step, {hours:.1f} h a run, {hours * work.n_gpus:.0f} GPU hours,"
                f" if training reaches {_SHARE_OF_PEAK:.0%} of the peak; {workers:.0f} cores to feed it"
            )
        # Every original of the corpus has a mutant; 324,000 of 345,000 originals are for training.
        n_stored = 2 * round(work.n_pairs * 345 / 324)
        lines.append(
            f"disk             {n_stored * self.kb_per_pair / 1e6:.0f} GB for {n_stored:,} pairs"
            f" of {self.kb_per_pair:.0f} kB"
        )
        return lines


def count_operations(options: ModelOptions) -> float:
    """Return the floating-point operations of a forward and backward pass, per pair, counted in a pass of two."""
    model = FusiliModel(options).train()
    inputs = noise_inputs(model)
    with FlopCounterMode(display=False) as counter:
        output = model(inputs.images, inputs.waveforms)
        total = torch.zeros(())
        for embeddings in (output.images, output.recordings):
            total = total + embeddings.local.sum() + embeddings.pooled.sum()
        total.backward()  # type: ignore[no-untyped-call]
    return float(counter.get_total_flops()) / len(inputs.images)
