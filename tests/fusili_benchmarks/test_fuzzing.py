"""Some hundred damaged files against all readers; `benchmarks/fuzz.py` runs thousands."""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

import pytest

from fusili_benchmarks.fuzzed_readers import make_seeds
from fusili_benchmarks.guarded_case import run_guarded
from fusili_benchmarks.mutations import mutate, shrink
from fusili_mir.errors import InputError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks with limits")

CASES = 250


def refuse(_: Path) -> None:
    raise InputError("one line")


def fail(_: Path) -> None:
    raise KeyError("nobody expects this")


def spin(_: Path) -> None:
    while True:
        pass


def grow(_: Path) -> None:
    held = bytearray(400_000_000)
    held[::4096] = b"x" * len(held[::4096])


def crash(_: Path) -> None:
    os.abort()


@pytest.mark.parametrize(
    ("reader", "ending"),
    [
        (lambda _: None, "read"),
        (refuse, "refused"),
        (fail, "traceback"),
        (spin, "hang"),
        (grow, "memory"),
        (crash, "crash"),
    ],
)
def test_every_way_to_end_is_told_apart(reader, ending: str, tmp_path: Path) -> None:
    resident_mb = run_guarded(lambda _: None, tmp_path).resident_mb
    outcome = run_guarded(reader, tmp_path, cpu_limit_sec=0.5, memory_limit_mb=resident_mb + 200)
    assert outcome.ending == ending


def test_a_reader_that_only_waits_is_ended_too(tmp_path: Path) -> None:
    assert run_guarded(lambda _: time.sleep(60), tmp_path, wall_limit_sec=0.3).ending == "hang"


def test_what_fails_is_shrunk_to_what_it_takes() -> None:
    assert shrink(b"aaaa<bad>aaaaaaaaaaaa", lambda data: b"<bad>" in data) == b"<bad>"


def test_no_damaged_file_gets_more_than_one_line(tmp_path: Path) -> None:
    readers = make_seeds(tmp_path / "seeds")
    rng = random.Random(21)
    bad = []
    for number in range(CASES):
        reader = readers[number % len(readers)]
        file = tmp_path / f"case{reader.seed.suffix}"
        file.write_bytes(mutate(reader.seed.read_bytes(), reader.kind, rng))
        outcome = run_guarded(reader.read, file)
        if not outcome.is_good:
            bad.append(f"{reader.name}: {outcome.ending}: {outcome.text}")
    assert bad == []


def test_whole_files_are_read(tmp_path: Path) -> None:
    for reader in make_seeds(tmp_path):
        if reader.name not in ("inputs", "names"):  # what they name is not there
            assert run_guarded(reader.read, reader.seed).ending == "read", reader.name
