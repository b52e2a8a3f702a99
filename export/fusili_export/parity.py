"""Parity: whether a graph gives what the checkpoint gives.

Both run the same batches. fp32 graphs are held to the largest difference of any number of an embedding, int8
graphs to the cosine between an embedding and the checkpoint's.
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
from fusili_mir.model.sessions import open_session

__all__ = [
    "MAX_DIFFERENCE",
    "MIN_COSINE",
    "ParityRow",
    "Precision",
    "Reference",
    "check_parity",
    "compare_graph",
    "parity_table",
    "run_reference",
]

Precision = Literal["fp32", "int8"]

MAX_DIFFERENCE = 1e-4
"""Allowed between any two numbers of an fp32 graph's embeddings and the checkpoint's."""
MIN_COSINE = 0.99
"""Asked of an int8 graph's embeddings, on average over those of a batch."""


@dataclass(frozen=True)
class Reference:
    """A batch, and what the checkpoint makes of it: local and global embeddings."""

    case: ParityCase
    outputs: list[Float32]


@dataclass(frozen=True)
class ParityRow:
    """How one output of a graph compares with the checkpoint's on one batch.

    Attributes
    ----------
    precision : "fp32" or "int8"
        Of the graph.
    output : str
        Its name.
    inputs : str
        Kind of the batch.
    shape : list of int
        Of the batch.
    difference : float
        Largest, of all numbers.
    mean_cosine, min_cosine : float
        Over all embeddings of the output; nan if a shape is wrong or a number is none.
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
        """Whether the output is as close as its precision allows."""
        return self.excess() <= 1

    def excess(self) -> float:
        """Return how far the output is from the checkpoint's, as a multiple of what its precision allows."""
        if not np.isfinite(self.difference):
            return float("inf")
        if self.precision == "fp32":
            return self.difference / MAX_DIFFERENCE
        return (1 - self.mean_cosine) / (1 - MIN_COSINE)

    def as_dict(self) -> dict[str, Any]:
        """Return the row for a manifest, with numbers of a few digits."""
        numbers = {
            "difference": float(f"{self.difference:.3g}"),
            "mean_cosine": round(self.mean_cosine, 6),
            "min_cosine": round(self.min_cosine, 6),
        }
        return asdict(self) | numbers


def run_reference(tower: TowerGraph, cases: Iterable[ParityCase]) -> list[Reference]:
    """Run batches through a tower of the checkpoint."""
    references = []
    for case in cases:
        with torch.inference_mode():
            outputs = tower(torch.from_numpy(case.inputs))
        references.append(Reference(case, [output.numpy() for output in outputs]))
    return references


def compare_graph(
    graph: bytes, spec: ImageSpec | AudioSpec, references: Iterable[Reference], precision: Precision
) -> list[ParityRow]:
    """Run batches through a graph and compare what it gives with what the checkpoint gave.

    Parameters
    ----------
    graph : bytes
        Content of an ONNX file.
    spec : ImageSpec or AudioSpec
        Names of input and outputs.
    references : iterable of Reference
    precision : "fp32" or "int8"
        Of the graph.

    Returns
    -------
    list of ParityRow
        One for each output and case. A batch that the graph cannot run at all counts as infinitely different.
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
    """Raise an error that names the worst output, if any is further off than its precision allows."""
    failed = [row for row in rows if not row.is_close]
    if not failed:
        return
    worst = max(failed, key=ParityRow.excess)
    if worst.precision == "fp32":
        found = f"by {worst.difference:.2g}; expected at most {MAX_DIFFERENCE:g}"
    else:
        found = f"to a mean cosine of {worst.mean_cosine:.3f}; expected at least {MIN_COSINE:g}"
    raise FusiliError(
        f"the {worst.precision} graph is not the checkpoint: {worst.output} differs for {worst.inputs} of shape"
        f" {tuple(worst.shape)} {found}; {len(failed)} outputs are off, nothing was written"
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
    """Return the largest difference, the mean and the lowest cosine of embeddings [shape=(..., d)]."""
    if found.shape != expected.shape or not np.isfinite(found).all():
        return float("inf"), float("nan"), float("nan")
    lengths = np.linalg.norm(found, axis=-1) * np.linalg.norm(expected, axis=-1)
    cosines = (found * expected).sum(axis=-1) / np.maximum(lengths, np.finfo(np.float32).tiny)
    return float(np.abs(found - expected).max()), float(cosines.mean()), float(cosines.min())
