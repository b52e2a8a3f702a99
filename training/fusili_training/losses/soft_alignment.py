"""Sinkhorn's soft alignment of P pairs at a time: the plan, its score, and the score's gradient.

Z is a matrix of logits with N rows (patches) and M columns (frames). Sinkhorn scales exp(Z) to a plan A whose
rows sum to 1/N and whose columns sum to 1/M by K times a row step and a column step; the score is sum(A * Z).
In the scaling form ``A = u E v``, where ``E = exp(Z + a + b)`` and one sweep in the log domain gives a and b,
a row step is ``u = r / (E v)`` and a column step ``v = c / (E^T u)``.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fusili_mir.errors import InputError

__all__ = [
    "Marginal",
    "Potentials",
    "logit_gradient",
    "plan_in_log_domain",
    "scale_plan",
    "score_in_log_domain",
]


@dataclass(frozen=True)
class Marginal:
    """How much mass each row (or column) of a plan holds: uniform over the valid ones.

    Attributes
    ----------
    mass : Tensor [shape=(P, length)]
        One over the number of valid rows, 0 for padding.
    padding : Tensor of bool [shape=(P, length)]
        True where there is padding.
    padded : bool
        Whether there is any padding at all.
    """

    mass: Tensor
    padding: Tensor
    padded: bool

    @classmethod
    def uniform(cls, embeddings: Tensor, mask: Tensor | None, noun: str) -> Marginal:
        """Spread the mass over embeddings [shape=(P, length, d)] where `mask` [shape=(P, length)] is true."""
        shape = embeddings.shape[:2]
        if mask is None:
            padding = torch.zeros(shape, dtype=torch.bool, device=embeddings.device)
            return cls(embeddings.new_full(shape, 1 / shape[1]), padding, padded=False)
        if mask.shape != shape or mask.dtype != torch.bool:
            raise InputError(
                f"the {noun} mask is {mask.dtype} of shape {tuple(mask.shape)};"
                f" expected torch.bool of shape {tuple(shape)}"
            )
        n_valid = mask.sum(dim=1, keepdim=True)
        if not bool(n_valid.all()):
            empty = int((n_valid == 0).nonzero()[0, 0])
            raise InputError(f"item {empty} of the batch has no valid {noun}; leave it out of the batch")
        return cls(mask.to(embeddings.dtype) / n_valid, ~mask, padded=not bool(mask.all()))

    @property
    def divisor(self) -> Tensor:
        """The mass, and 1 for padding, which holds nothing and must only not divide by zero."""
        return self.mass + self.padding

    def of(self, items: Tensor) -> Marginal:
        """Return the marginals of some items of the batch."""
        return Marginal(self.mass[items], self.padding[items], self.padded)


@dataclass(frozen=True)
class Potentials:
    """What the backward pass needs of P pairs besides their logits: K * (N + M) numbers a pair.

    Attributes
    ----------
    row_shift, column_shift : Tensor [shape=(P, N), (P, M)]
        a and b.
    u : Tensor [shape=(P, K, N)]
        The scaling of the rows after each row step.
    v : Tensor [shape=(P, K + 1, M)]
        The scaling of the columns before the first and after each column step.
    in_range : Tensor of bool [shape=(P,)]
        False for a pair that left the range of the number format.
    """

    row_shift: Tensor
    column_shift: Tensor
    u: Tensor
    v: Tensor
    in_range: Tensor


def scale_plan(
    logits: Tensor, rows: Marginal, columns: Marginal, n_iterations: int
) -> tuple[Potentials, Tensor]:
    """Run Sinkhorn in its scaling form; return the potentials and the scores [shape=(P,)]."""
    row_shift, column_shift = _log_domain_sweep(logits, rows, columns)
    kernel = _kernel(logits, row_shift, column_shift, rows, columns)
    transposed = kernel.transpose(1, 2)
    n_pairs, n_rows, n_columns = logits.shape
    u = logits.new_empty(n_pairs, n_iterations, n_rows)
    v = logits.new_empty(n_pairs, n_iterations + 1, n_columns)
    u[:, 0] = (~rows.padding).to(u.dtype)  # the first row step is that of the log domain
    v[:, 0] = (-column_shift).exp().masked_fill(columns.padding, 0.0)
    for k in range(n_iterations):
        if k:
            u[:, k] = rows.mass / (_times(kernel, v[:, k]) + rows.padding)
        v[:, k + 1] = columns.mass / (_times(transposed, u[:, k]) + columns.padding)
    scores = (_times(kernel.mul_(logits), v[:, -1]) * u[:, -1]).sum(dim=1)
    in_range = scores.isfinite() & u.flatten(1).isfinite().all(dim=1) & v.flatten(1).isfinite().all(dim=1)
    return Potentials(row_shift, column_shift, u, v, in_range), scores


def logit_gradient(logits: Tensor, potentials: Potentials, rows: Marginal, columns: Marginal) -> Tensor:
    """Return d score / d Z [shape=(P, N, M)] through all K iterations.

    With phi and gamma the gradients at log u_k and log v_k, a column step adds ``-(u_k q_k^T) * E`` where
    ``q_k = v_k gamma / c``, and a row step ``-(p_k v_(k-1)^T) * E`` where ``p_k = u_k phi / r``: the sum over
    all steps is one product of rank 2K.
    """
    u, v = potentials.u, potentials.v
    kernel = _kernel(logits, potentials.row_shift, potentials.column_shift, rows, columns)
    transposed = kernel.transpose(1, 2)
    weighted = kernel * logits
    phi = u[:, -1] * _times(weighted, v[:, -1])  # the plan itself holds the last u and the last v only
    gamma = v[:, -1] * _times(weighted.transpose(1, 2), u[:, -1])
    p, q = torch.empty_like(u), torch.empty_like(v[:, 1:])
    for k in reversed(range(u.shape[1])):
        q[:, k] = v[:, k + 1] * gamma / columns.divisor
        phi = phi - u[:, k] * _times(kernel, q[:, k])
        p[:, k] = u[:, k] * phi / rows.divisor
        gamma = -v[:, k] * _times(transposed, p[:, k])
        phi = torch.zeros_like(phi)
    steps = torch.bmm(torch.cat([u, p], dim=1).transpose(1, 2), torch.cat([q, v[:, :-1]], dim=1))
    plan = u[:, -1, :, None] * v[:, -1, None]
    return plan.mul_(logits + 1).sub_(steps).mul_(kernel)


def plan_in_log_domain(logits: Tensor, rows: Marginal, columns: Marginal, n_iterations: int) -> Tensor:
    """Return the plan A [shape=(P, N, M)], slowly, for logits of any size and with ordinary autograd."""
    padding = rows.padding[:, :, None] | columns.padding[:, None]
    row_target, column_target = rows.divisor.log(), columns.divisor.log()
    column_potential = torch.zeros_like(column_target)
    row_potential = torch.zeros_like(row_target)
    for _ in range(n_iterations):
        with_columns = (logits + column_potential[:, None]).masked_fill(columns.padding[:, None], -torch.inf)
        row_potential = row_target - with_columns.logsumexp(dim=2)
        with_rows = (logits + row_potential[:, :, None]).masked_fill(rows.padding[:, :, None], -torch.inf)
        column_potential = column_target - with_rows.logsumexp(dim=1)
    log_plan = logits + row_potential[:, :, None] + column_potential[:, None]
    return log_plan.masked_fill(padding, -torch.inf).exp()


def score_in_log_domain(logits: Tensor, rows: Marginal, columns: Marginal, n_iterations: int) -> Tensor:
    """Return sum(A * Z) [shape=(P,)] with the plan of the log domain."""
    return (plan_in_log_domain(logits, rows, columns, n_iterations) * logits).sum(dim=(1, 2))


def _times(matrices: Tensor, vectors: Tensor) -> Tensor:
    """Multiply (P, N, M) matrices by (P, M) vectors; the vector on the left is the fast form of bmm."""
    return torch.bmm(vectors[:, None], matrices.transpose(1, 2))[:, 0]


def _kernel(
    logits: Tensor, row_shift: Tensor, column_shift: Tensor, rows: Marginal, columns: Marginal
) -> Tensor:
    """Return E [shape=(P, N, M)], with zeros for padding."""
    kernel = (logits + row_shift[:, :, None]).add_(column_shift[:, None]).exp_()
    if rows.padded or columns.padded:
        kernel.masked_fill_(rows.padding[:, :, None] | columns.padding[:, None], 0.0)
    return kernel


def _log_domain_sweep(logits: Tensor, rows: Marginal, columns: Marginal) -> tuple[Tensor, Tensor]:
    """Return the shifts a and b: with them the largest number in every column of E is 1."""
    if columns.padded:
        logits = logits.masked_fill(columns.padding[:, None], -torch.inf)
    row_shift = rows.divisor.log() - logits.logsumexp(dim=2)
    if rows.padded:
        logits = logits.masked_fill(rows.padding[:, :, None], -torch.inf)
    column_shift = -(logits + row_shift[:, :, None]).amax(dim=1)
    return row_shift, column_shift.masked_fill(columns.padding, 0.0)
