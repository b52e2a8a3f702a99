"""A few kills of a command; `benchmarks/kills.py` kills all of them a hundred times."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, and adopts orphans")

ROOT = Path(__file__).parents[2]
PATHS = [str(ROOT / name) for name in (".", "training", "export", "benchmarks")]


def test_a_killed_command_leaves_nothing_half_written_and_the_next_run_ends_as_usual() -> None:
    ended = subprocess.run(
        [
            sys.executable,
            str(ROOT / "benchmarks" / "kills.py"),
            "--kills",
            "4",
            "--seed",
            "21",
            "--only",
            "pages",
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    rows = [line.strip("| ").split(" | ") for line in ended.stdout.splitlines()[2:]]
    assert [row[:2] for row in rows] == [["pages", "SIGKILL"], ["pages", "SIGTERM"]]
    assert sum(int(row[2]) for row in rows) >= 3  # others had ended before the signal came
    assert [row for row in rows if row[3:] != ["0"] * 4] == [], ended.stderr
    assert ended.returncode == 0, ended.stderr
