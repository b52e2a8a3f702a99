"""Sinkhorn's soft alignment of P pairs at a time: the plan, the similarity it gives, and the gradient of that.

Z is a matrix of logits with N rows (patches) and M columns (frames). In K row steps and column steps, Sinkhorn
scales exp(Z) to a plan A whose rows sum to 1/N and whose columns sum to 1/M; the similarity is sum(A * Z). In the
scaling form the plan is ``A = u E v`` with ``E = exp(Z + a + b)``, where one sweep in the log domain gives a and
b; a row step is ``u = r / (E v)`` and a column step is ``v = c / (E^T u)``.
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
    "similarity_in_log_domain",
]


@dataclass(frozen=True)
class Marginal:
    """The mass of each row (or column) of a plan: uniform, without padding.

    Attributes
    ----------
    mass : Tensor [shape=(P, length)]
        One over the number of rows that are not padding; 0 for padding.
    padding : Tensor of bool [shape=(P, length)]
        True where there is padding.
    padded : bool
        Whether there is any padding.
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
            raise InputError(f"item {empty} of the batch has padding only; expected at least one {noun}")
        return cls(mask.to(embeddings.dtype) / n_valid, ~mask, padded=not bool(mask.all()))

    @property
    def divisor(self) -> Tensor:
        """The mass, and 1 for padding, to avoid divisions by zero."""
        return self.mass + self.padding

    def of(self, items: Tensor) -> Marginal:
        """Return the marginals of some items of the batch."""
        return Marginal(self.mass[items], self.padding[items], self.padded)


@dataclass(frozen=True)
class Potentials:
    """What the backward pass needs besides the logits of P pairs: K * (N + M) numbers per pair.

    Attributes
    ----------
    row_shift, column_shift : Tensor [shape=(P, N), (P, M)]
        The shifts a and b.
    u : Tensor [shape=(P, K, N)]
        Scaling of the rows after each row step.
    v : Tensor [shape=(P, K + 1, M)]
        Scaling of the columns before the first and after each column step.
    in_range : Tensor of bool [shape=(P,)]
        False for a pair whose numbers overflowed.
    """

    row_shift: Tensor
    column_shift: Tensor
    u: Tensor
    v: Tensor
    in_range: Tensor


def scale_plan(
    logits: Tensor, rows: Marginal, columns: Marginal, n_iterations: int
) -> tuple[Potentials, Tensor]:
    """Run Sinkhorn in its scaling form; return the potentials and the similarities [shape=(P,)]."""
    row_shift, column_shift = _log_domain_sweep(logits, rows, columns)
    kernel = _kernel(logits, row_shift, column_shift, rows, columns)
    transposed = kernel.transpose(1, 2)
    n_pairs, n_rows, n_columns = logits.shape
    u = logits.new_empty(n_pairs, n_iterations, n_rows)
    v = logits.new_empty(n_pairs, n_iterations + 1, n_columns)
    u[:, 0] = (~rows.padding).to(u.dtype)  # the first row step was taken in the log domain
    v[:, 0] = (-column_shift).exp().masked_fill(columns.padding, 0.0)
    for k in range(n_iterations):
        if k:
            u[:, k] = rows.mass / (_times(kernel, v[:, k]) + rows.padding)
        v[:, k + 1] = columns.mass / (_times(transposed, u[:, k]) + columns.padding)
    similarities = (_times(kernel.mul_(logits), v[:, -1]) * u[:, -1]).sum(dim=1)
    in_range = similarities.isfinite()
    in_range &= u.flatten(1).isfinite().all(dim=1) & v.flatten(1).isfinite().all(dim=1)
    return Potentials(row_shift, column_shift, u, v, in_range), similarities


def logit_gradient(logits: Tensor, potentials: Potentials, rows: Marginal, columns: Marginal) -> Tensor:
    """Return d similarity / d Z [shape=(P, N, M)] through all K iterations.

    Let phi and gamma be the gradients with respect to log u_k and log v_k. A column step adds
    ``-(u_k q_k^T) * E`` with ``q_k = v_k gamma / c``, a row step ``-(p_k v_(k-1)^T) * E`` with
    ``p_k = u_k phi / r``. The sum over all steps is one product of rank 2K.
    """
    u, v = potentials.u, potentials.v
    kernel = _kernel(logits, potentials.row_shift, potentials.column_shift, rows, columns)
    transposed = kernel.transpose(1, 2)
    weighted = kernel * logits
    phi = u[:, -1] * _times(weighted, v[:, -1])  # the plan itself depends on the last u and v only
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
    """Return the plan A [shape=(P, N, M)], slowly, but for logits of any size and with ordinary autograd."""
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


def similarity_in_log_domain(logits: Tensor, rows: Marginal, columns: Marginal, n_iterations: int) -> Tensor:
    """Return sum(A * Z) [shape=(P,)] with the plan computed in the log domain."""
    return (plan_in_log_domain(logits, rows, columns, n_iterations) * logits).sum(dim=(1, 2))


def _times(matrices: Tensor, vectors: Tensor) -> Tensor:
    """Multiply (P, N, M) matrices by (P, M) vectors; bmm is faster with the vector on the left."""
    return torch.bmm(vectors[:, None], matrices.transpose(1, 2))[:, 0]


def _kernel(
    logits: Tensor, row_shift: Tensor, column_shift: Tensor, rows: Marginal, columns: Marginal
) -> Tensor:
    """Return E [shape=(P, N, M)], with 0 for padding."""
    kernel = (logits + row_shift[:, :, None]).add_(column_shift[:, None]).exp_()
    if rows.padded or columns.padded:
        kernel.masked_fill_(rows.padding[:, :, None] | columns.padding[:, None], 0.0)
    return kernel


def _log_domain_sweep(logits: Tensor, rows: Marginal, columns: Marginal) -> tuple[Tensor, Tensor]:
    """Return the shifts a and b, which make the largest number in every column of E equal to 1."""
    if columns.padded:
        logits = logits.masked_fill(columns.padding[:, None], -torch.inf)
    row_shift = rows.divisor.log() - logits.logsumexp(dim=2)
    if rows.padded:
        logits = logits.masked_fill(rows.padding[:, :, None], -torch.inf)
    column_shift = -(logits + row_shift[:, :, None]).amax(dim=1)
    return row_shift, column_shift.masked_fill(columns.padding, 0.0)
