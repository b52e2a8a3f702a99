"""Killing a command again and again, and judging what it leaves."""

from __future__ import annotations

import hashlib
import random
import shutil
import signal
from dataclasses import dataclass, field
from pathlib import Path

from fusili_benchmarks.killed_commands import KilledCommand, Tree, read_tree
from fusili_benchmarks.killed_process import Ended, Moment, list_children, run_command, wait_for_orphans
from fusili_benchmarks.remembered_calls import RememberedCalls
from fusili_mir.cli.main import main
from fusili_training.model.weights import read_checkpoint

__all__ = ["Judgement", "KilledFolder", "differences", "is_good"]

_LIBRARIES = (".ses", "torchinductor_")  # files of fixed names that onnxruntime and torch keep
_ENDINGS = {"index.html": b"</html>\n", "summary.csv": b"\n", "report.csv": b"\n"}  # say how far a run is
_MOST_DRAWS = 5
_OLD = b"an older result\n"


@dataclass
class Judgement:
    """What kills of one command by one signal have led to.

    Attributes
    ----------
    kills : int
        Runs that the signal met before they had ended.
    half_written, left_behind, differs, refused : list of str
        Under a final name, something that is not whole; hidden files, temporary files of a request to end, or
        processes that stay after the next run; another result of the next run; a next run that did not go on.
    """

    kills: int = 0
    half_written: list[str] = field(default_factory=list)
    left_behind: list[str] = field(default_factory=list)
    differs: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def faults(self) -> list[str]:
        """All faults, with their kind."""
        kinds = ("half_written", "left_behind", "differs", "refused")
        return [f"{kind}: {fault}" for kind in kinds for fault in getattr(self, kind)]


class KilledFolder:
    """A command, and the folder in which it is killed.

    Parameters
    ----------
    command : KilledCommand
    folder : Path
        Its result is in the folder `work/out` below it.
    """

    def __init__(self, command: KilledCommand, folder: Path) -> None:
        self.command, self.folder = command, folder
        self.work, self.out = folder / "work", folder / "work" / "out"
        self.logs, self.begin = folder / "logs", folder / "begin"
        self.remembered = RememberedCalls(command.slow)
        self.whole, self.undisturbed = self._measure()

    def kill(self, rng: random.Random, number: int, into: Judgement) -> None:
        """Run the command, send it a signal at a random moment, run it again, and judge."""
        for _ in range(_MOST_DRAWS):
            moment = self._draw(rng, number)
            self.reset()
            self.remembered.begin(is_used=self.command.always_remembers or moment.kind != "time")
            ended = run_command(self.command.run, self.work, self.logs, moment, self.command.drive)
            if ended.exit_code != 0 or self.command.drive:
                break  # otherwise it had ended before
        self.remembered.begin(is_used=True)
        where = f"{moment.kind} {moment.at:.4g}"
        into.half_written += [f"{where}: {fault}" for fault in self.half_written()]
        if rng.random() < 0.5:
            self._wait(where, into)
        if ended.exit_code == 0 and not self.command.drive:
            return
        into.kills += 1
        if moment.signal == signal.SIGTERM:
            if ended.exit_code not in (0, 128 + signal.SIGTERM, 130):
                into.refused.append(f"{where}: ended with {ended.exit_code}: {ended.said.strip()[-300:]}")
            into.left_behind += [f"{where}: {name}" for name in self._temporary()]
        shutil.rmtree(self.logs / "tmp", ignore_errors=True)
        if self.is_untouched():
            self._wait(where, into)
            return
        is_whole = self.command.is_unit and not self.command.replaces and self.out.exists()
        after = run_command(
            self.command.again or self.command.run, self.work, self.logs, drive=self.command.drive
        )
        self._wait(where, into)
        if (
            not is_good(after)
            and not (is_whole and "not empty" in after.said)
            and not (is_whole and "earlier demo" in after.said)
        ):
            into.refused.append(f"{where}: {after.exit_code}: {after.said.strip()[-300:]}")
        into.differs += [f"{where}: {name}" for name in differences(self.read_result(), self.whole)]
        extra = set(read_tree(self.work, hidden=True)) - self.hidden
        into.left_behind += [f"{where}: {name}" for name in sorted(extra)]

    def _measure(self) -> tuple[Tree, Ended]:
        """Run undisturbed, and keep the result and how long it took."""
        shutil.rmtree(self.begin, ignore_errors=True)
        self.begin.mkdir(parents=True)
        for arguments in self.command.before:
            self.reset()
            ended = run_command(arguments, self.work, self.logs)
            self._expect(ended)
            shutil.rmtree(self.begin)
            shutil.copytree(self.work, self.begin)
        self.reset()
        if self.command.slow:  # in this process, which then remembers
            self._call_here()
            self.reset()
        self.own = list_children()  # workers of this process
        self.remembered.begin(is_used=self.command.always_remembers)
        ended = run_command(self.command.run, self.work, self.logs, drive=self.command.drive)
        self._expect(ended)
        whole = self.read_result()
        self._grown = {f"out/{name}": (self.out / name).read_bytes() for name in self.command.growing}
        self.n_bytes = sum(file.stat().st_size for file in self.work.rglob("*") if file.is_file())
        self.hidden = set(read_tree(self.work, hidden=True))
        if self.command.name == "align --force":
            shutil.copytree(self.out, self.begin / "out")
            for file in (self.begin / "out").rglob("*"):
                if file.is_file():
                    file.write_bytes(_OLD)
        self.before = read_tree(self.begin)
        self.reset()
        self._started = {**read_tree(self.work), **read_tree(self.work, hidden=True)}
        return whole, ended

    def _call_here(self) -> None:
        handler = signal.getsignal(signal.SIGTERM)
        try:
            main([*self.command.run, "--quiet"])
        except SystemExit as left:
            if left.code:
                raise RuntimeError(f"{self.command.name} ended with {left.code}") from left
        finally:
            signal.signal(signal.SIGTERM, handler)

    def _expect(self, ended: Ended) -> None:
        if not is_good(ended):
            raise RuntimeError(f"{self.command.name} ended with {ended.exit_code}: {ended.said}")

    def _draw(self, rng: random.Random, number: int) -> Moment:
        """Draw a moment: a third over all the time, a third while files are written, a third by operation."""
        by = (signal.SIGKILL, signal.SIGTERM)[number % 2]
        kind = ("time", "writing", "operation")[number // 2 % 3]
        undisturbed = self.undisturbed
        if kind == "time":
            return Moment("time", rng.uniform(0, undisturbed.duration_sec), by)
        if kind == "writing" or not undisturbed.n_operations:
            return Moment("writing", rng.uniform(0, undisturbed.writing_sec), by)
        return Moment("operation", rng.randint(1, undisturbed.n_operations), by)

    def reset(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.begin, self.work)

    def read_result(self) -> dict[str, str]:
        """Return what the files of the result say, and the weights of checkpoints."""
        found = read_tree(self.work)
        for name in [name for name in found if name.endswith(".pt")]:
            found[name] = _weights(self.work / name)
        return found

    def half_written(self) -> list[str]:
        """Return what is wrong under final names."""
        found = read_tree(self.work)
        problems = []
        own = {f"out/{name}" for name in self.command.own}
        growing = {f"out/{name}" for name in self.command.growing}
        for name, content in found.items():
            if name in own or name in growing or content in (self.whole.get(name), self.before.get(name)):
                continue
            ending = _ENDINGS.get(Path(name).name)
            if ending is None or not (self.work / name).read_bytes().endswith(ending):
                problems.append(name)
        problems += [
            name
            for name, lines in self._grown.items()
            if (self.work / name).exists() and not lines.startswith((self.work / name).read_bytes())
        ]
        if self.command.is_unit and not self.command.replaces and self.out.exists():
            problems += [f"{name} is missing" for name in sorted(self.whole.keys() - found.keys())]
        if self.command.check is not None:
            problems += self.command.check(self.out)
        return problems

    def is_untouched(self) -> bool:
        return {**read_tree(self.work), **read_tree(self.work, hidden=True)} == self._started and (
            sorted(self.work.rglob("*"))
            == sorted(self.work / each.relative_to(self.begin) for each in self.begin.rglob("*"))
        )

    def _temporary(self) -> list[str]:
        found = [file.name for file in (self.logs / "tmp").iterdir()]
        return [f"temporary {name}" for name in found if not name.startswith(_LIBRARIES)]

    def _wait(self, where: str, into: Judgement) -> None:
        if number := wait_for_orphans(self.own):
            into.left_behind.append(f"{where}: {number} processes")


def is_good(ended: Ended) -> bool:
    """Return whether a run did what was asked, or a server ended when it was asked to."""
    return ended.exit_code == 0 or (ended.exit_code == 128 + signal.SIGTERM and not ended.said.strip())


def differences(found: Tree, expected: Tree) -> list[str]:
    """Return the files that differ."""
    return sorted(
        f"{name}{'' if name in found else ' is missing'}"
        for name in found.keys() | expected.keys()
        if found.get(name) != expected.get(name)
    )


def _weights(path: Path) -> str:
    """Return a checksum of the numbers in a checkpoint."""
    content = read_checkpoint(path)
    state = content["model_state_dict"]
    numbers = b"".join(state[name].numpy().tobytes() for name in sorted(state))
    return hashlib.sha256(numbers + repr(content["progress"]).encode()).hexdigest()
