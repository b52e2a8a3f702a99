from __future__ import annotations

import os
import subprocess
import sys
import zipapp
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = """
from concurrent.futures import ProcessPoolExecutor
from fusili_mir.spawned_process import WorkerContext
print("begin", flush=True)
before = globals().get("__file__", "none"), __spec__
with ProcessPoolExecutor(2, WorkerContext()) as pool:
    print(sorted(pool.map(abs, [-1, -2])))

print((globals().get("__file__", "none"), __spec__) == before)
"""
"""A script without a guard: run a second time, it would say that it begins a second time."""


def in_file(folder: Path) -> list[str]:
    (folder / "a script.py").write_text(SCRIPT)
    return [str(folder / "a script.py")]


def in_current_folder(folder: Path) -> list[str]:
    in_file(folder)
    return ["a script.py"]


def as_module(folder: Path) -> list[str]:
    (folder / "unguarded.py").write_text(SCRIPT)
    return ["-m", "unguarded"]


def as_archive(folder: Path) -> list[str]:
    (folder / "app").mkdir()
    (folder / "app" / "__main__.py").write_text(SCRIPT)
    zipapp.create_archive(folder / "app", folder / "app.pyz")
    return [str(folder / "app.pyz")]


def on_command_line(_folder: Path) -> list[str]:
    return ["-c", SCRIPT]


def on_standard_input(_folder: Path) -> list[str]:
    return ["-"]


def in_a_session(_folder: Path) -> list[str]:
    return ["-i", "-q"]  # reads standard input as if somebody typed it


@pytest.mark.parametrize(
    "how",
    [in_file, in_current_folder, as_module, as_archive, on_command_line, on_standard_input, in_a_session],
)
def test_processes_start_from_any_script_and_do_not_run_it_again(
    how: Callable[[Path], list[str]], tmp_path: Path
) -> None:
    folder = tmp_path / "with a space"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, *how(folder)],
        input=SCRIPT,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    assert done.stdout.splitlines() == ["begin", "[1, 2]", "True"], done.stderr
    assert done.returncode == 0
