"""What `benchmarks/fresh_machine.py` hands into the new machine; the machine itself is made by running it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fresh_machine
from fresh_machine import folder_of_machine, inside, local_places, pip_variables

LISTING = """\
:env:.find-links='/wheels'
global.find-links='/ignored'
global.index-url='file:///nowhere/simple'
global.extra-index-url='\\nhttps://one.example/simple\\nhttps://two.example/simple'
"""


def test_the_configuration_of_pip_becomes_variables_and_those_of_the_environment_win() -> None:
    assert pip_variables(LISTING) == {
        "PIP_FIND_LINKS": "/wheels",
        "PIP_INDEX_URL": "file:///nowhere/simple",
        "PIP_EXTRA_INDEX_URL": "https://one.example/simple https://two.example/simple",
    }


def test_places_that_exist_are_handed_in_and_an_index_with_what_lies_beside_it(tmp_path: Path) -> None:
    for name in ("wheels", "index/simple"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "certificates.pem").touch()
    found = local_places(
        {
            "PIP_CERT": str(tmp_path / "certificates.pem"),
            "PIP_FIND_LINKS": f"{tmp_path}/wheels https://wheels.example {tmp_path}/gone",
            "PIP_EXTRA_INDEX_URL": f"https://one.example/simple file://{tmp_path}/index/simple",
            "PIP_TIMEOUT": "60",
        }
    )
    assert found == {tmp_path / "certificates.pem", tmp_path / "wheels", tmp_path / "index"}


def test_folders_are_mounted_for_reading_alone_and_where_the_command_runs_alone(tmp_path: Path) -> None:
    call = inside(tmp_path / "a machine", [Path("/my wheels")], {"A": "b c"}, "make demo")
    *begin, _, _, script = call
    assert begin == ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    lines = script.splitlines()
    assert lines[:2] == ["set -e", f"cd '{tmp_path}/a machine'"]
    assert lines[-4:-1] == [
        "mkdir -p './my wheels'",
        "mount --bind '/my wheels' './my wheels'",
        "mount -o remount,bind,ro './my wheels'",
    ]
    assert lines[-1].endswith(" 'A=b c' sh -c 'make demo'")


def can_mount() -> bool:
    """Return whether this process may mount something for a process of its own."""
    if shutil.which("unshare") is None:
        return False
    tried = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True, check=False
    )
    return tried.returncode == 0


def test_the_folder_is_removed_and_what_was_mounted_in_it_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", fresh_machine.PATH)
    (tmp_path / "mine.txt").write_text("mine")
    with folder_of_machine() as folder:
        (folder / "there").mkdir()
        if can_mount():
            script = f"mount --bind {tmp_path} {folder}/there && cat {folder}/there/mine.txt"
            code, lines = fresh_machine.run([*fresh_machine.UNSHARED, "sh", "-c", script])
            assert (code, lines) == (0, ["mine"])
        assert list((folder / "there").iterdir()) == []
    assert not folder.exists()
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_without_root_it_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr(sys, "argv", ["fresh_machine.py"])
    assert fresh_machine.main() == 1
    said = "fresh_machine.py: it needs root, for debootstrap and chroot; run it with sudo\n"
    assert capsys.readouterr() == ("", said)
