"""Joining the ranks of a run that torchrun started; a run of one process has one rank."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from fusili_mir.errors import InputError

__all__ = ["ProcessRanks", "choose_device", "join_ranks"]


@dataclass(frozen=True)
class ProcessRanks:
    """The rank of this process among those that train together.

    Attributes
    ----------
    rank, n_ranks : int
        Number of this process, counted from 0, and number of processes.
    device : torch.device
        Device of this rank.
    """

    rank: int
    n_ranks: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """Whether this is the rank that writes files and messages."""
        return self.rank == 0

    def share_of(self, batch_size: int) -> int:
        """Return each rank's share of a global batch."""
        if batch_size % self.n_ranks:
            raise InputError(
                f"data.batch_size is {batch_size} on {self.n_ranks} ranks; expected a multiple of {self.n_ranks}"
            )
        return batch_size // self.n_ranks

    def wrap(self, module: nn.Module) -> nn.Module:
        """Average the gradients of a module over the ranks; on GPUs, also synchronise batch statistics."""
        if self.n_ranks == 1:
            return module
        if self.device.type != "cuda":
            return DistributedDataParallel(module)
        module = nn.SyncBatchNorm.convert_sync_batchnorm(module)  # type: ignore[no-untyped-call]
        return DistributedDataParallel(module, device_ids=[self.device.index])

    def total(self, values: Tensor) -> Tensor:
        """Return the sum over the ranks."""
        if self.n_ranks == 1:
            return values
        summed = values.clone()
        distributed.all_reduce(summed)
        return summed

    def collect(self, value: Any) -> list[Any]:
        """Return the values of all ranks, in the order of the ranks."""
        if self.n_ranks == 1:
            return [value]
        values: list[Any] = [None] * self.n_ranks
        distributed.all_gather_object(values, value)
        return values


@contextmanager
def join_ranks(device: str = "auto") -> Iterator[ProcessRanks]:
    """Join the process group that torchrun describes in the environment, and leave it at the end.

    Parameters
    ----------
    device : str
        "auto", "cpu" or "cuda". Ranks on GPUs communicate by NCCL and use the GPU of their local rank; ranks on
        CPUs communicate by Gloo.
    """
    n_ranks = int(os.environ.get("WORLD_SIZE", "1"))
    chosen = choose_device(device, int(os.environ.get("LOCAL_RANK", "0")))
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    if n_ranks == 1:
        yield ProcessRanks(0, 1, chosen)
        return
    distributed.init_process_group("nccl" if chosen.type == "cuda" else "gloo")
    try:
        yield ProcessRanks(distributed.get_rank(), n_ranks, chosen)
        distributed.barrier()  # a rank that leaves while another still talks to it aborts that one
    finally:
        distributed.destroy_process_group()


def choose_device(name: str, local_rank: int = 0) -> torch.device:
    """Return the device of a local rank; `name` is "auto", "cpu" or "cuda"."""
    if name == "cpu" or (name == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if local_rank >= torch.cuda.device_count():
        raise InputError(
            f"this machine has {torch.cuda.device_count()} usable GPUs; expected at least {local_rank + 1}:"
            " start fewer processes, or set training.device=cpu"
        )
    return torch.device("cuda", local_rank)
