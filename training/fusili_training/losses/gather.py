"""Gathering a batch across the ranks of a distributed run, with gradients.

Each rank computes the loss of the whole global batch. For a rank's own items, the backward pass of `gather` sums
the gradients that all ranks have. That is the gradient of the loss, once per rank; DistributedDataParallel
averages parameter gradients over the ranks, so the result is exactly the gradient of one process on the global
batch. Outside a process group every function here is the identity.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed
from torch.nn import functional

from fusili_mir.errors import InputError
from fusili_training.model.embeddings import Embeddings

__all__ = ["gather", "gather_embeddings", "n_ranks"]


def n_ranks() -> int:
    """Return the number of ranks, 1 outside a process group."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_world_size()
    return 1


def gather(items: Tensor) -> Tensor:
    """Concatenate the items [shape=(B, ...)] of all ranks in the order of the ranks [shape=(ranks * B, ...)].

    All ranks must have the same shape. Booleans are gathered too; gradients reach floating-point items only.
    """
    if n_ranks() == 1:
        return items
    if items.dtype == torch.bool:
        return gather(items.to(torch.uint8)).bool()
    gathered: Tensor = _Gather.apply(items)  # type: ignore[no-untyped-call]
    return gathered


def gather_embeddings(embeddings: Embeddings) -> Embeddings:
    """Gather embeddings; ranks may differ in the number of patches or frames, but not in the batch size."""
    if n_ranks() == 1:
        return embeddings
    local, mask = embeddings.local, embeddings.mask
    batch, length = local.shape[:2]
    sizes = gather(torch.tensor([[batch, length]], device=local.device))
    if bool((sizes[:, 0] != batch).any()):
        raise InputError(
            f"the ranks have batches of {sizes[:, 0].tolist()} items; expected the same number on every rank"
            " (drop the last incomplete batch)"
        )
    if mask is None:
        mask = torch.ones(batch, length, dtype=torch.bool, device=local.device)
    missing = int(sizes[:, 1].max()) - length
    local = functional.pad(local, (0, 0, 0, missing))
    mask = functional.pad(mask, (0, missing), value=False)
    return Embeddings(gather(local), gather(mask), gather(embeddings.pooled))


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, items: Tensor) -> Tensor:
        ctx.batch = len(items)
        parts = [torch.empty_like(items) for _ in range(n_ranks())]
        distributed.all_gather(parts, items.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        gradient = gradient.clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(gradient)
        first = distributed.get_rank() * ctx.batch
        return gradient[first : first + ctx.batch]
