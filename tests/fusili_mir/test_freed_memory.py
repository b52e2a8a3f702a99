from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from fusili_mir.freed_memory import give_back_memory


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc is asked")
def test_what_small_objects_leave_is_given_back() -> None:
    objects = [bytes(2000) for _ in range(50_000)]  # 100 MB
    above = bytes(2000)  # so that the heap does not shrink by itself
    del objects
    before = resident_bytes()
    give_back_memory()
    assert before - resident_bytes() > 50e6
    assert len(above) == 2000


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is asked")
def test_memory_of_an_array_is_at_hand_for_the_next_if_it_is_kept() -> None:
    code = (
        "import resource\n"
        "from fusili_mir import freed_memory\n"
        "freed_memory.{}()\n"
        "bytearray(b'x') * 30_000_000\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "for _ in range(5): bytearray(b'x') * 30_000_000\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)"
    )
    faults = [
        int(
            subprocess.run([sys.executable, "-c", code.format(asked)], capture_output=True, check=True).stdout
        )
        for asked in ("keep_freed_memory", "give_back_memory")
    ]
    assert faults[0] < 100 < faults[1]  # pages that the system had to clear; five arrays have 36,621
