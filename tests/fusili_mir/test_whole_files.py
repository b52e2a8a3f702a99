from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from fusili_mir.errors import OutputError
from fusili_mir.whole_files import whole_file, write_text

KILLED = """
import os, signal, sys
from pathlib import Path
from fusili_mir.whole_files import whole_file
with whole_file(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def kill_while_writing(path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL


def test_a_file_has_its_name_when_it_is_whole(tmp_path: Path) -> None:
    write_text(tmp_path / "a", "old")
    with whole_file(tmp_path / "a") as file:
        file.write(b"new")
        file.flush()
        assert (tmp_path / "a").read_text() == "old"
    assert (tmp_path / "a").read_text() == "new"
    assert names(tmp_path) == ["a"]


def test_what_a_killed_process_left_of_a_file_goes_when_it_is_written_again(tmp_path: Path) -> None:
    write_text(tmp_path / "a", "old")
    kill_while_writing(tmp_path / "a")
    assert (tmp_path / "a").read_text() == "old"
    assert len(names(tmp_path)) == 2
    write_text(tmp_path / "a.b", "another file")
    assert len(names(tmp_path)) == 3
    write_text(tmp_path / "a", "new")
    assert names(tmp_path) == ["a", "a.b"]


def test_what_another_process_is_writing_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with whole_file(tmp_path / "a") as file:
        file.write(b"first")
        with monkeypatch.context() as other:
            other.setattr(os, "getpid", lambda: 1)
            write_text(tmp_path / "a", "second")
    assert (tmp_path / "a").read_text() == "first"


def test_a_full_disk_is_one_line_and_the_old_file_stays(tmp_path: Path) -> None:
    write_text(tmp_path / "a", "old")

    def fill(file: IO[bytes]) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    def write() -> None:
        with whole_file(tmp_path / "a") as file:
            fill(file)

    with pytest.raises(OutputError, match=r"a: cannot be written \(No space left on device\)"):
        write()
    assert (tmp_path / "a").read_text() == "old"
    assert names(tmp_path) == ["a"]
