from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fusili_mir.errors import OutputError
from fusili_mir.folder_lock import locked_folder

HOLD = """
import sys, time
from fusili_mir.folder_lock import locked_folder
with locked_folder(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_told_that_a_folder_is_held_and_gets_it_when_the_first_is_killed(
    tmp_path: Path,
) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, encoding="utf-8"
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(OutputError, match="another process is writing into it"), locked_folder(tmp_path):
        pass
    holder.kill()
    holder.communicate()
    with locked_folder(tmp_path) as folder:
        assert folder == tmp_path


def test_a_file_where_the_folder_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"), locked_folder(tmp_path / "file"):
        pass


def test_nothing_stays_in_a_folder_that_was_held(tmp_path: Path) -> None:
    with locked_folder(tmp_path / "out"):
        pass
    assert list((tmp_path / "out").iterdir()) == []
