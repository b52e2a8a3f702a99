from __future__ import annotations

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
