"""SIGKILL and SIGTERM at random moments of every command that writes: what is half-written, left behind, or lost?

    python benchmarks/kills.py --kills 100 --seed 1
    python benchmarks/kills.py --kills 10 --only align --only "train, 2 workers"
    python benchmarks/kills.py --places

A third of the moments is drawn from the whole time of a run, a third from the time in which it writes, and a
third from its operations on files. Then the command is called again, and its result compared with that of an
undisturbed run. Kills that left everything as it was need no second run.

With --places, the same commands meet a full disk (at three sizes), a disk that cannot be written, and a second
process with the same result instead; as root, for small disks in memory are mounted.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pickle
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

for library in ("OMP", "OPENBLAS", "MKL"):  # before numpy is imported
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# ruff: noqa: E402
from fusili_benchmarks.bad_places import on_full_disk, on_read_only_disk, two_at_once
from fusili_benchmarks.killed_commands import list_commands
from fusili_benchmarks.killed_inputs import KilledInputs, make_inputs
from fusili_benchmarks.killed_process import adopt_orphans
from fusili_benchmarks.killing import Judgement, KilledFolder

_WARM = (
    *(
        f"fusili_mir.cli.commands.{name}"
        for name in ("align", "align_many", "demo", "export", "index", "pages")
    ),
    *(f"fusili_mir.cli.commands.{name}" for name in ("render", "train", "view")),
    "fusili_mir.output.alignment_files",
    "fusili_mir.output.score_with_ids",
    "fusili_mir.batch.many",
    "fusili_mir.collection.building",
    "fusili_mir.demo.demonstration",
    "fusili_mir.viewer.view_server",
    "fusili_training.rendering.render",
    "fusili_training.loop.running",
    "fusili_export.exporting",
    "faiss",
    "onnxruntime",
    "torch.utils.tensorboard",
)

_NEED_MODEL = frozenset({"render", "render --jobs 2", "train, 0 workers", "train, 2 workers", "export"})
_KILLS = ("signal", "kills", "half-written", "left behind", "next run differs", "refused")
_PLACES = ("full disk", "read-only disk", "two at once")
_SHARES = (0.0, 0.4, 0.9)  # of the room that the result takes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--kills", type=int, default=100, help="moments of each command, half for each signal"
    )
    parser.add_argument("--minutes", type=float, default=float("inf"), help="longest time for a command")
    parser.add_argument("--jobs", type=int, default=1, help="commands at the same time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", help="only this command; may be repeated")
    parser.add_argument("--places", action="store_true", help="full and read-only disks, and two at once")
    arguments = parser.parse_args()
    for module in _WARM:
        importlib.import_module(module)
    adopt_orphans()
    folder = Path(tempfile.mkdtemp(prefix="fusili-kills-"))  # not one that forked processes would remove
    bad = 0
    columns = _PLACES if arguments.places else _KILLS
    print(f"| command | {' | '.join(columns)} |")
    print("| --- " * (len(columns) + 1) + "|", flush=True)
    try:
        with_model = not arguments.only or not _NEED_MODEL.isdisjoint(arguments.only)
        inputs = _in_copy(folder, with_model)
        names = [command.name for command in list_commands(inputs, folder)]
        chosen = [name for name in names if not arguments.only or name in arguments.only]
        running: set[int] = set()
        for name in chosen:
            if len(running) == arguments.jobs:
                bad += _wait_for_one(running)
            running.add(
                _in_fork(partial(_try_command, name, inputs, folder / f"run{names.index(name)}", arguments))
            )
        while running:
            bad += _wait_for_one(running)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if bad else 0)


def _in_copy(folder: Path, with_model: bool) -> KilledInputs:
    """Make the inputs in a forked process: this one starts no threads, so that it can be forked again."""
    os.environ["FUSILI_SOUNDBANKS"] = str(folder / "soundbanks")
    child = os.fork()
    if child == 0:
        os.dup2(os.open(folder / "said", os.O_WRONLY | os.O_CREAT), 1)
        os.dup2(1, 2)
        (folder / "inputs").write_bytes(pickle.dumps(make_inputs(folder, with_model)))
        os._exit(0)
    os.waitpid(child, 0)
    made: KilledInputs = pickle.loads((folder / "inputs").read_bytes())
    return made


def _in_fork(work: Callable[[], int]) -> int:
    """Do something in a forked process of its own, which adopts orphans, and return its number."""
    child = os.fork()
    if child:
        return child
    bad = 1
    try:
        adopt_orphans()
        bad = work()
    except BaseException:  # noqa: BLE001  # this process must not go on as its parent
        traceback.print_exc()
    os._exit(1 if bad else 0)


def _wait_for_one(running: set[int]) -> int:
    """Wait until one of some processes has ended, and return whether it went wrong."""
    while True:
        pid, status = os.wait()
        if pid in running:
            running.remove(pid)
            return os.waitstatus_to_exitcode(status)


def _try_command(name: str, inputs: KilledInputs, folder: Path, arguments: argparse.Namespace) -> int:
    commands = list_commands(inputs, folder / "work" / "out")
    (command,) = [each for each in commands if each.name == name]
    rng = random.Random(f"{arguments.seed} {name}")
    begin = time.monotonic()
    killed = KilledFolder(command, folder)
    if arguments.places:
        bad = _try_places(killed, rng)
    else:
        bad = _kill(killed, rng, arguments.kills, begin + 60 * arguments.minutes)
    print(f"{name}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    return bad


def _kill(killed: KilledFolder, rng: random.Random, n_kills: int, end_sec: float) -> int:
    """Kill a command, and print its rows."""
    name = killed.command.name
    judged = {signal.SIGKILL: Judgement(), signal.SIGTERM: Judgement()}
    for number in range(n_kills):
        if time.monotonic() > end_sec:
            break
        killed.kill(rng, number, judged[(signal.SIGKILL, signal.SIGTERM)[number % 2]])
    bad = 0
    for by, each in judged.items():
        counts = [len(faults) for faults in (each.half_written, each.left_behind, each.differs, each.refused)]
        cells = " | ".join(map(str, (each.kills, *counts)))
        print(f"| {name} | {signal.Signals(by).name} | {cells} |", flush=True)
        for fault in each.faults:
            print(f"{name}: {signal.Signals(by).name}: {fault}", file=sys.stderr, flush=True)
        bad += sum(counts)
    return bad


def _try_places(killed: KilledFolder, rng: random.Random) -> int:
    """Try a command in bad places, and print its row."""
    name = killed.command.name
    full = [f"{share:.0%}: {fault}" for share in _SHARES for fault in on_full_disk(killed, share)]
    read_only = on_read_only_disk(killed)
    two = [] if killed.command.drive else two_at_once(killed, rng)
    cells = [str(len(faults)) for faults in (full, read_only, two)]
    if killed.command.drive:
        cells[-1] = "-"
    print(f"| {name} | {' | '.join(cells)} |", flush=True)
    for place, faults in zip(_PLACES, (full, read_only, two), strict=True):
        for fault in faults:
            print(f"{name}: {place}: {fault}", file=sys.stderr, flush=True)
    return len(full) + len(read_only) + len(two)


if __name__ == "__main__":
    main()
