from __future__ import annotations

import sys
from pathlib import Path

import pytest

import every_python


def test_every_python_from_the_oldest_that_the_package_takes_is_promised() -> None:
    promised = every_python.promised()
    assert promised[0] == "3.11"
    assert [int(version.removeprefix("3.")) for version in promised] == list(range(11, 11 + len(promised)))


def test_an_interpreter_is_found_by_its_version_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = f"3.{sys.version_info.minor}"
    assert every_python.find_python(here) is not None
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "python3.99").symlink_to(sys.executable)  # is not what its name says
    assert every_python.find_python("3.99") is None


def test_a_step_that_fails_says_what_was_printed(tmp_path: Path) -> None:
    assert every_python.run(tmp_path, sys.executable, "-c", "print('fine')") == "fine\n"
    with pytest.raises(every_python.FailedError, match=r"ended with exit code 3:\nnot fine"):
        every_python.run(tmp_path, sys.executable, "-c", "print('not fine'); raise SystemExit(3)")
