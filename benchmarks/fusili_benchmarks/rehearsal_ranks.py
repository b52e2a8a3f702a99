"""Commands on ranks that communicate by Gloo, as torchrun would start them: to be let run, or to be killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from fusili_mir.errors import FusiliError

__all__ = ["run_on_ranks", "start_and_kill"]

_POLL_SEC = 0.05
# Ranks are forked from a process that has only imported these, which takes longer than a toy run.
_IMPORTED_ONCE = [
    "fusili_mir.cli.main",
    "fusili_training.backbones.clip_clap",
    "fusili_training.loop.msmd_batches",
    "fusili_training.loop.running",
    "torch.utils.tensorboard",
]
_TIME_LIMIT_SEC = 3600


def run_on_ranks(command: Sequence[str], n_ranks: int = 2) -> None:
    """Run a command of `fusili-mir` on all ranks, each in a new process.

    Parameters
    ----------
    command : sequence of str
        Arguments of the command.
    n_ranks : int
    """
    ranks = _start(command, n_ranks)
    for rank in ranks:
        rank.join(_TIME_LIMIT_SEC)
    codes = [rank.exitcode for rank in ranks]
    if any(code != 0 for code in codes):
        _kill(ranks)
        raise FusiliError(f"the ranks ended with {codes}; expected 0 from all")


def start_and_kill(command: Sequence[str], when_exists: Path, n_ranks: int = 2) -> None:
    """Start a command on all ranks, and kill them (SIGKILL) as soon as a file exists."""
    ranks = _start(command, n_ranks)
    begun = time.monotonic()
    while not when_exists.exists():
        if any(rank.exitcode is not None for rank in ranks) or time.monotonic() - begun > _TIME_LIMIT_SEC:
            _kill(ranks)
            raise FusiliError(f"the ranks ended before they wrote {when_exists}")
        time.sleep(_POLL_SEC)
    _kill(ranks)


def _start(command: Sequence[str], n_ranks: int) -> list[ForkServerProcess]:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED_ONCE)
    port = _free_port()
    ranks = [context.Process(target=_run, args=(command, port, number, n_ranks)) for number in range(n_ranks)]
    for rank in ranks:
        rank.start()
    return ranks


def _kill(ranks: Sequence[ForkServerProcess]) -> None:
    for rank in ranks:
        if rank.pid is not None and rank.exitcode is None:
            os.kill(rank.pid, signal.SIGKILL)
    for rank in ranks:
        rank.join()


def _run(command: Sequence[str], port: int, rank: int, n_ranks: int) -> None:
    """Be one rank: torchrun describes the group in the same variables."""
    from fusili_mir.cli.main import main

    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(n_ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    main([*command])


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
