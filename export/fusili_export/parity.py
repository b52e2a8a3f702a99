"""Parity: whether the outputs of a graph agree with those of the checkpoint.

Both run the same batches. For fp32 graphs the largest difference of any number of an embedding is limited, for
fp16 and int8 graphs the cosine between each embedding and that of the checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch

from fusili_export.parity_inputs import ParityCase
from fusili_export.wrappers import TowerGraph
from fusili_mir.arrays import Float32
from fusili_mir.errors import FusiliError
from fusili_mir.model.bundle import AudioSpec, ImageSpec
from fusili_mir.sessions.graph_session import open_session

__all__ = [
    "MAX_DIFFERENCE",
    "MIN_COSINE",
    "MIN_FP16_COSINE",
    "ParityRow",
    "Precision",
    "Reference",
    "check_parity",
    "compare_graph",
    "parity_table",
    "run_reference",
]

Precision = Literal["fp32", "fp16", "int8"]

MAX_DIFFERENCE = 1e-4
"""Largest difference allowed between any number of an fp32 graph's embeddings and the checkpoint's."""
MIN_COSINE = 0.99
"""Smallest mean cosine allowed between an int8 graph's embeddings and the checkpoint's, per batch."""
MIN_FP16_COSINE = 0.9999
"""Smallest cosine allowed between any embedding of an fp16 graph and the checkpoint's."""


@dataclass(frozen=True)
class Reference:
    """A batch, and the local and global embeddings that the checkpoint gives for it."""

    case: ParityCase
    outputs: list[Float32]


@dataclass(frozen=True)
class ParityRow:
    """Comparison of one output of a graph with that of the checkpoint, on one batch.

    Attributes
    ----------
    precision : "fp32", "fp16" or "int8"
        Precision of the graph.
    output : str
        Name of the output.
    inputs : str
        Kind of the batch.
    shape : list of int
        Shape of the batch.
    difference : float
        Largest absolute difference of any number.
    mean_cosine, min_cosine : float
        Mean and smallest cosine of the embeddings; nan if the shape is wrong or a number is not finite.
    """

    precision: Precision
    output: str
    inputs: str
    shape: list[int]
    difference: float
    mean_cosine: float
    min_cosine: float

    @property
    def is_close(self) -> bool:
        """Whether the difference is within what the precision allows."""
        return self.excess() <= 1

    def excess(self) -> float:
        """Return the difference as a multiple of what the precision allows."""
        if not np.isfinite(self.difference):
            return float("inf")
        if self.precision == "fp32":
            return self.difference / MAX_DIFFERENCE
        if self.precision == "fp16":
            return (1 - self.min_cosine) / (1 - MIN_FP16_COSINE)
        return (1 - self.mean_cosine) / (1 - MIN_COSINE)

    def as_dict(self) -> dict[str, Any]:
        """Return the row for a manifest, with rounded numbers."""
        numbers = {
            "difference": float(f"{self.difference:.3g}"),
            "mean_cosine": round(self.mean_cosine, 6),
            "min_cosine": round(self.min_cosine, 6),
        }
        return asdict(self) | numbers


def run_reference(tower: TowerGraph, cases: Iterable[ParityCase]) -> list[Reference]:
    """Run batches through one tower of the checkpoint."""
    references = []
    for case in cases:
        with torch.inference_mode():
            outputs = tower(torch.from_numpy(case.inputs))
        references.append(Reference(case, [output.numpy() for output in outputs]))
    return references


def compare_graph(
    graph: bytes, spec: ImageSpec | AudioSpec, references: Iterable[Reference], precision: Precision
) -> list[ParityRow]:
    """Run batches through a graph and compare its outputs with those of the checkpoint.

    Parameters
    ----------
    graph : bytes
        Content of an ONNX file.
    spec : ImageSpec or AudioSpec
        Names of the input and the outputs.
    references : iterable of Reference
    precision : "fp32", "fp16" or "int8"
        Precision of the graph.

    Returns
    -------
    list of ParityRow
        One row per output and batch. If the graph cannot run a batch, the difference is infinite.
    """
    session = open_session(graph, "cpu")
    names = [spec.local_output, spec.global_output]
    rows = []
    for reference in references:
        case = reference.case
        try:
            found = session.run(spec.input, case.inputs, names)
        except FusiliError:
            found = [np.empty(0, np.float32)] * len(names)
        for name, ours, theirs in zip(names, found, reference.outputs, strict=True):
            figures = _compare(ours, theirs)
            rows.append(ParityRow(precision, name, case.kind, list(case.inputs.shape), *figures))
    return rows


def check_parity(rows: Iterable[ParityRow]) -> None:
    """Raise an error that names the worst output, if any output differs by more than its precision allows."""
    failed = [row for row in rows if not row.is_close]
    if not failed:
        return
    worst = max(failed, key=ParityRow.excess)
    if worst.precision == "fp32":
        found = f"by {worst.difference:.2g}; expected at most {MAX_DIFFERENCE:g}"
    else:
        found = f"(mean cosine {worst.mean_cosine:.3f}); expected at least {MIN_COSINE:g}"
    raise FusiliError(
        f"the {worst.precision} graph does not match the checkpoint: {worst.output} differs for {worst.inputs} of"
        f" shape {tuple(worst.shape)} {found}; {len(failed)} outputs differ, nothing was written"
    )


def parity_table(rows: Iterable[ParityRow]) -> str:
    """Return the comparison as a Markdown table."""
    lines = [
        "| graph | output | inputs | shape | difference | cosine: mean | lowest |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        shape = " x ".join(map(str, row.shape))
        lines.append(
            f"| {row.precision} | {row.output} | {row.inputs} | {shape} | {row.difference:.1e}"
            f" | {row.mean_cosine:.5f} | {row.min_cosine:.5f} |"
        )
    return "\n".join(lines)


def _compare(found: Float32, expected: Float32) -> tuple[float, float, float]:
    """Return the largest difference and the mean and smallest cosine of embeddings [shape=(..., d)]."""
    if found.shape != expected.shape or not np.isfinite(found).all():
        return float("inf"), float("nan"), float("nan")
    lengths = np.linalg.norm(found, axis=-1) * np.linalg.norm(expected, axis=-1)
    cosines = (found * expected).sum(axis=-1) / np.maximum(lengths, np.finfo(np.float32).tiny)
    return float(np.abs(found - expected).max()), float(cosines.mean()), float(cosines.min())
