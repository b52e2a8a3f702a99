"""Commands on a full disk, in a place that cannot be written, and two at once on one result (Linux, root).

A small disk in memory is mounted where the result comes. With more room, the next run must end as usual.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fusili_benchmarks.killed_commands import read_tree
from fusili_benchmarks.killed_process import Ended, run_command, wait_for_orphans
from fusili_benchmarks.killing import KilledFolder, differences, is_good

__all__ = ["can_mount", "on_full_disk", "on_read_only_disk", "two_at_once"]

_BLOCK_BYTES = 4096
_LARGE = "size=512m"
_REFUSALS = ("another process is writing", "not empty", "already holds a run", "earlier demo")


def can_mount(folder: Path) -> bool:
    """Return whether this process may mount disks."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with _mounted(folder):
            return True
    except subprocess.CalledProcessError:
        return False


def on_full_disk(killed: KilledFolder, share: float) -> list[str]:
    """Run a command with room for a share of its result, and again with enough; return what is wrong.

    Parameters
    ----------
    killed : KilledFolder
    share : float
    """
    killed.reset()
    size = _size(killed.work) + int(share * (killed.n_bytes - _size(killed.work)))
    with _mounted(killed.work):
        shutil.copytree(killed.begin, killed.work, dirs_exist_ok=True)
        _remount(killed.work, f"size={max(1, size // _BLOCK_BYTES) * _BLOCK_BYTES}")
        ended = _run(killed)
        if killed.command.drive is None and ended.exit_code == 0:
            return []  # there was room enough, as other files went first
        faults = [*_complaint(ended, killed), *(f"half-written: {name}" for name in killed.half_written())]
        _remount(killed.work, _LARGE)
        after = _run(killed, again=True)
        if not is_good(after):
            faults.append(f"next run: {after.said.strip()[-200:]}")
        return faults + _compare(killed)


def on_read_only_disk(killed: KilledFolder) -> list[str]:
    """Run a command in a place that cannot be written; return what is wrong."""
    killed.reset()
    with _mounted(killed.work):
        shutil.copytree(killed.begin, killed.work, dirs_exist_ok=True)
        _remount(killed.work, "ro")
        ended = _run(killed)
        faults = _complaint(ended, killed)
        return faults if killed.is_untouched() else [*faults, "something was written"]


def two_at_once(killed: KilledFolder, rng: random.Random) -> list[str]:
    """Run a command twice, the second a little later; return what is wrong."""
    killed.reset()
    killed.remembered.begin(is_used=killed.command.always_remembers)
    delay_sec = rng.uniform(0, 0.3) * killed.undisturbed.duration_sec
    second = os.fork()
    if second == 0:
        time.sleep(delay_sec)
        ended = run_command(killed.command.run, killed.work, killed.logs / "second")
        (killed.logs / "ended").write_text(f"{ended.exit_code}\n{ended.said.strip()}")
        os._exit(0)
    first = run_command(killed.command.run, killed.work, killed.logs / "first")
    os.waitpid(second, 0)
    wait_for_orphans(killed.own)
    code, _, said = (killed.logs / "ended").read_text().partition("\n")
    both = {first.exit_code: first.said.strip(), int(code): said}
    faults = _compare(killed)
    if sorted(both) != [0, 1]:
        return [
            *faults,
            f"ended with {first.exit_code} and {code}: {first.said.strip()[-200:]} {said[-200:]}",
        ]
    if both[1].count("\n") or not any(each in both[1] for each in _REFUSALS):
        faults.append(f"the other said {both[1][-300:]}")
    return faults


def _run(killed: KilledFolder, again: bool = False) -> Ended:
    killed.remembered.begin(is_used=True)
    arguments = killed.command.again if again and killed.command.again else killed.command.run
    ended = run_command(arguments, killed.work, killed.logs, drive=killed.command.drive)
    wait_for_orphans(killed.own)
    return ended


def _complaint(ended: Ended, killed: KilledFolder) -> list[str]:
    """Return what is wrong with how a command refused."""
    lines = ended.said.strip().splitlines()
    expected = (0, 128 + signal.SIGTERM) if killed.command.drive else (1,)  # a server goes on, and says so
    most = 3 if killed.command.name == "align-many" else 1  # a line for each pair
    faults = []
    if ended.exit_code not in expected:
        faults.append(f"exit code {ended.exit_code}")
    is_plain = killed.command.drive is not None or all(line.startswith("fusili-mir: ") for line in lines)
    if not 1 <= len(lines) <= most or not is_plain:
        faults.append(f"said {ended.said.strip()[-400:]!r}")
    return faults


def _compare(killed: KilledFolder) -> list[str]:
    hidden = sorted(set(read_tree(killed.work, hidden=True)) - killed.hidden)
    return [
        *(f"differs: {name}" for name in differences(killed.read_result(), killed.whole)),
        *(f"left behind: {name}" for name in hidden),
    ]


def _size(folder: Path) -> int:
    """Return how much of a disk in memory the files of a folder take."""
    sizes = [file.stat().st_size if file.is_file() else 1 for file in folder.rglob("*")]
    return sum(-(-size // _BLOCK_BYTES) * _BLOCK_BYTES for size in sizes)


@contextmanager
def _mounted(folder: Path) -> Iterator[None]:
    command = ["mount", "-t", "tmpfs", "-o", _LARGE, "tmpfs", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def _remount(folder: Path, option: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{option}", str(folder)], check=True)
