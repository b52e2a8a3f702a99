"""The program `fusili-mir`: a process that runs one command and ends.

What such a process holds is freed by the system when it ends, all at once. Python would look for garbage again
and again while modules are imported and scores are read, and would take everything apart at the end: together
half a second for a song, more for a quartet. Memory that arrays leave is kept for those that follow, and
partitura is imported without what no command needs.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys

from fusili_mir.cli.late_imports import import_partitura_lightly
from fusili_mir.freed_memory import keep_freed_memory

__all__ = ["run"]

_NEW_OBJECTS = 50_000  # that make Python look for garbage; 700 by default
_FULL_EVERY = (10, 2)  # of these searches look at older objects, of those at all


def run() -> None:
    """Run the command line in a process that is ours alone."""
    exit_codes: list[int] = []
    if isinstance(
        sys.stdout, io.TextIOWrapper
    ):  # Windows writes into files and pipes in an encoding of its own
        sys.stdout.reconfigure(errors="backslashreplace")
    # What is registered first runs last. Where others came first, such as coverage, their work must be done, too.
    if getattr(atexit, "_ncallbacks", lambda: 1)() == 0:
        atexit.register(_end_at_once, exit_codes)
    if "train" not in sys.argv[1:2]:  # garbage of a training loop may hold much memory
        gc.set_threshold(_NEW_OBJECTS, *_FULL_EVERY)
    keep_freed_memory()
    import_partitura_lightly()
    from fusili_mir.cli.main import main

    try:
        main()
    except SystemExit as end:
        if isinstance(end.code, int):
            exit_codes.append(end.code)
        raise


def _end_at_once(exit_codes: list[int]) -> None:
    """End this process without taking apart what it holds, if the command has said how it ended."""
    if not exit_codes:
        return
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):  # no streams, or closed ones
        return
    os._exit(exit_codes[0])
