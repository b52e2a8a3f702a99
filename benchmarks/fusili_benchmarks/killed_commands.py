"""The commands that are killed: how each is called, what it may leave, and what must come out in the end.

A result is compared with that of an undisturbed run, file by file. What differs from run to run by its nature
is left out: times, random names, and the events of TensorBoard, whose files are named by the second.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from fusili_benchmarks.killed_inputs import KilledInputs
from fusili_mir.collection.index import open_index
from fusili_mir.errors import FusiliError
from fusili_training.loop.checkpoint import load_checkpoint

__all__ = ["KilledCommand", "Tree", "list_commands", "read_tree"]

Tree: TypeAlias = Mapping[str, str]
"""Name of a file below the folder -> a checksum of what it says."""

_ANCHORS = [{"measure": "2", "second": 1.4}]


@dataclass(frozen=True)
class KilledCommand:
    """A command that writes.

    Attributes
    ----------
    name : str
    run : list of str
        Its arguments; the result is the folder `out` beside the inputs.
    again : list of str
        Arguments of the next run, after a kill.
    before : list of list of str
        Commands whose result is in the folder already when it begins.
    is_unit : bool
        Whether the result appears whole or not at all.
    replaces : bool
        Whether older files of the same names are replaced, as with `--force`.
    check : callable, optional
        Finds fault with files that change while the command works: out -> problems.
    growing : tuple of str
        Files that may be the first lines of what they become.
    own : tuple of str
        Files that `check` knows, and that need not be as in the end.
    slow : tuple of str
        Functions that always give the same; they are called again only where a moment is drawn from all the time.
    always_remembers : bool
        Whether they are called in the first run only.
    drive : callable, optional
        See `run_command`.
    """

    name: str
    run: list[str]
    again: list[str]
    before: list[list[str]] = field(default_factory=list)
    is_unit: bool = True
    replaces: bool = False
    check: Callable[[Path], list[str]] | None = None
    growing: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()
    always_remembers: bool = False
    drive: Callable[[Path, threading.Event], None] | None = None


def list_commands(inputs: KilledInputs, out: Path) -> list[KilledCommand]:
    """Return all commands that write, with their result in the folder `out`."""
    score, recording = str(inputs.scores[0]), str(inputs.recordings[0])
    to = ["-o", str(out)]
    align = ["align", score, recording, *to]
    pages = ["pages", score, "--write-score", *to]
    many = ["align-many", str(inputs.pairs), *to]
    render = ["render", str(inputs.corpus), "--recipe", str(inputs.render_recipe), *to]
    train = ["train", str(inputs.train_recipe), "--data", str(inputs.data), *to]
    export = ["export", str(inputs.checkpoint), *to]
    index = ["index", score, recording, *to]
    adding = ["index", *map(str, (*inputs.scores[1:2], *inputs.recordings[1:2])), *to]
    tracing = ("trace_graph", "run_reference", "compare_graph")
    traced = tuple(f"fusili_export.exporting.{name}" for name in tracing)
    aligned = ("fusili_mir.alignment.aligner.Aligner.align",)
    encoded = ("fusili_mir.collection.encoding_tasks.encode_file",)
    demonstrated = ("fusili_mir.demo.demonstration._align",)
    return [
        KilledCommand("align", align, align, slow=aligned),
        KilledCommand("align --force", [*align, "--force"], [*align, "--force"], replaces=True, slow=aligned),
        *(
            KilledCommand(
                f"align-many --jobs {jobs}", [*many, "--jobs", jobs], [*many, "--jobs", jobs], is_unit=False
            )
            for jobs in ("1", "2")
        ),
        KilledCommand("render", [*render, "--jobs", "1"], [*render, "--jobs", "1"], is_unit=False),
        KilledCommand("render --jobs 2", [*render, "--jobs", "2"], [*render, "--jobs", "2"], is_unit=False),
        *(
            KilledCommand(
                f"train, {workers} workers",
                [*train, "--override", f"data.workers={workers}"],
                [*train, "--override", f"data.workers={workers}", "--resume"],
                is_unit=False,
                check=_check_run,
                growing=("steps.csv", "validations.csv"),
                own=("last.pt", "best.pt"),
            )
            for workers in (0, 2)
        ),
        KilledCommand("export", export, export, slow=traced, always_remembers=True),
        KilledCommand(
            "index", index, index, is_unit=False, check=_check_index, own=("manifest.json",), slow=encoded
        ),
        KilledCommand(
            "index --jobs 2",
            [*index, "--jobs", "2"],
            [*index, "--jobs", "2"],
            is_unit=False,
            check=_check_index,
            own=("manifest.json",),
        ),
        KilledCommand(
            "index, adding",
            adding,
            adding,
            [index],
            is_unit=False,
            check=_check_index,
            own=("manifest.json", "report.csv"),
            slow=encoded,
        ),
        KilledCommand("view", ["view", str(out), "--no-browser"], [], [align], replaces=True, drive=_correct),
        KilledCommand("demo", ["demo", *to], ["demo", *to], slow=demonstrated, always_remembers=True),
        KilledCommand("pages", pages, pages),
    ]


def read_tree(out: Path, hidden: bool = False) -> dict[str, str]:
    """Return what all files below a folder say; hidden ones, and those in hidden folders, only if asked for."""
    found = {}
    for file in sorted(out.rglob("*")):
        name = file.relative_to(out).as_posix()
        is_hidden = any(part.startswith(".") for part in Path(name).parts)
        if file.is_file() and is_hidden == hidden and "tensorboard" not in file.parts:
            found[name] = hashlib.sha256(_lasting(name, file.read_bytes())).hexdigest()
    return found


def _lasting(name: str, content: bytes) -> bytes:
    """Return the content of a file without what differs from run to run."""
    base = Path(name).name
    try:
        if base in ("report.csv", "summary.csv"):
            rows = list(csv.DictReader(io.StringIO(content.decode())))
            kept = [
                {k: v for k, v in row.items() if k not in ("seconds", "status", "cpu_sec")} for row in rows
            ]
            return json.dumps(kept).encode()
        if base == "report.json":
            report = json.loads(content)
            report["report"]["cpu_sec"] = None
            return json.dumps(report).encode()
        if base == "manifest.json" and b'"generation"' in content:
            return json.dumps({**json.loads(content), "id": ""}).encode()
        if base == "index.html":
            return re.sub(rb"\d+\.\d+", b"", content)
        if base.endswith(".mei"):  # Verovio writes the date, and random ids
            return re.sub(rb'(xml:id|isodate)="[^"]*"', b"", content)
        if base.endswith(".pt"):
            return b""  # compared by what is in it
    except ValueError:
        pass
    return content


def _check_run(out: Path) -> list[str]:
    """Return checkpoints that cannot be read."""
    problems = []
    for name in ("last.pt", "best.pt"):
        try:
            if (out / name).exists():
                load_checkpoint(out / name)
        except FusiliError as error:
            problems.append(str(error))
    return problems


def _check_index(out: Path) -> list[str]:
    """Return what is wrong with an index."""
    if not (out / "manifest.json").exists():
        return []
    try:
        index = open_index(out)
        if index.manifest.generation:
            _ = index.vectors, index.windows
    except FusiliError as error:
        return [str(error)]
    return []


def _correct(output: Path, begun: threading.Event) -> None:
    """Set an anchor on the page that a command serves, and wait until the result is saved."""
    end = time.monotonic() + 60
    url = ""
    while not url and time.monotonic() < end:
        url = output.read_text().split("\n")[0] if "\n" in output.read_text() else ""
        time.sleep(0.01)

    def ask(name: str, content: Any = None) -> Any:
        headers = {"Origin": url.rsplit("/", 2)[0], "Content-Type": "application/json"}
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(url + name, data, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    while not ask("state")[0]["ready"] and time.monotonic() < end:
        time.sleep(0.02)
    begun.set()
    ask("correct", {"result": 0, "anchors": _ANCHORS})
    while not ask("state")[0]["saved"] and time.monotonic() < end:
        time.sleep(0.02)
