"""The list of system packages is true: tests see nothing of the machine that it does not name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from example_machine import ROOT, essential_packages, listed_packages, sealed

from fusili_mir.audio.soundfonts import find_fluidsynth, find_soundfonts

pytestmark = pytest.mark.skipif(not essential_packages(), reason="only Debian is sealed off")


def test_of_all_soundfonts_the_tests_see_the_listed_one() -> None:
    assert [font.name for font in find_soundfonts()] == ["TimGM6mb"]


def test_programs_of_listed_packages_and_of_every_debian_are_found() -> None:
    assert Path(find_fluidsynth()).resolve() == Path("/usr/bin/fluidsynth")
    assert all(map(shutil.which, ("sh", "bash", "cp", "sed", "grep", "tar", "localedef")))
    assert any(map(shutil.which, ("chromium", "google-chrome-stable")))


@pytest.mark.parametrize("name", ["python3", "git", "node", "apt-get", "mscore", "nvidia-smi"])
def test_other_programs_are_not_found(name: str) -> None:
    assert shutil.which(name) is None


SEE = """
import os, shutil, sys
from fusili_mir.audio.soundfonts import find_soundfonts
print([font.name for font in find_soundfonts()])
print([shutil.which(name) for name in ("stranger", "chromium-stranger")])
print(sorted(name for name in os.environ if name.startswith("FUSILI_")), "PYTHONUNBUFFERED" in os.environ)
"""


def see(environment: dict[str, str]) -> list[str]:
    command = [sys.executable, "-c", SEE]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


def test_what_somebody_has_put_on_the_machine_is_hidden_from_processes_too(tmp_path: Path) -> None:
    strange, inside = tmp_path / "strange", tmp_path / "inside"
    for folder in (strange, inside):
        folder.mkdir()
    for name in ("stranger", "chromium-stranger"):
        (strange / name).write_text("#!/bin/sh\n")
        (strange / name).chmod(0o755)
    (strange / "Stradivari.sf2").write_bytes(b"RIFF")
    brought = {
        "PATH": os.pathsep.join([str(strange), os.environ["PATH"]]),
        "FUSILI_SOUNDFONTS": str(strange),
        "FUSILI_LIMITS": "pixels=1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    soundfonts, programs, _ = see(brought)
    assert soundfonts == "['Stradivari']"
    assert "None" not in programs
    assert see(sealed(brought, inside)) == [
        "['TimGM6mb']",
        "[None, None]",
        "['FUSILI_SOUNDBANKS', 'FUSILI_SOUNDFONTS'] False",
    ]


def test_a_package_that_is_not_listed_is_not_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (ROOT / "system-packages.txt").read_text().splitlines()
    without = [line for line in lines if not line.startswith(("fluidsynth", "timgm6mb"))]
    (tmp_path / "system-packages.txt").write_text("\n".join(without))
    monkeypatch.setattr("example_machine.PACKAGES", tmp_path / "system-packages.txt")
    (tmp_path / "inside").mkdir()
    environment = sealed(os.environ, tmp_path / "inside")
    assert shutil.which("fluidsynth", path=environment["PATH"]) is None
    assert shutil.which("sh", path=environment["PATH"]) is not None
    assert list(Path(environment["FUSILI_SOUNDFONTS"]).iterdir()) == []


def test_the_makefile_and_continuous_integration_have_no_list_of_their_own() -> None:
    for file in (ROOT / "Makefile", *ROOT.glob(".github/workflows/*.yml")):
        lines = file.read_text(encoding="utf-8").splitlines()
        words = {word for line in lines if "apt-get" in line for word in line.split()}
        assert words.isdisjoint(listed_packages()), file


def test_make_names_every_missing_package_and_no_other(tmp_path: Path) -> None:
    """Make asks a dpkg-query that knows two packages, as a user who may install nothing."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, script in {
        "dpkg-query": 'case $4 in libegl1|google-chrome-stable) echo "install ok installed";; *) exit 1;; esac',
        "id": "echo 1000",
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    done = subprocess.run(
        ["make", "--silent", "--no-print-directory", "system-packages"],
        cwd=ROOT,
        env={**os.environ, "PATH": os.pathsep.join([str(programs), os.environ["PATH"]])},
        capture_output=True,
        text=True,
        check=False,
    )
    missing = "fluidsynth timgm6mb-soundfont libgl1 libatomic1 make locales"
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == (
        f"make: the tests need {missing}; install with: sudo apt-get install {missing}"
    )


SKIPPED = """
import pytest

def test_without_a_browser():
    pytest.skip("no browser is installed")

def test_as_root():
    pytest.skip("nothing is locked to root")
"""
RUN = """
import importlib.util, sys
import pytest
specification = importlib.util.spec_from_file_location("root_conftest", sys.argv[1])
plugin = importlib.util.module_from_spec(specification)
specification.loader.exec_module(plugin)
sys.exit(pytest.main(["-p", "no:cacheprovider", "-q", sys.argv[2]], plugins=[plugin]))
"""


def test_a_test_that_is_skipped_for_a_missing_program_fails(tmp_path: Path) -> None:
    (tmp_path / "test_skipped.py").write_text(SKIPPED)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(ROOT / "conftest.py"), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "on Linux, a test is not skipped: no browser is installed" in done.stdout
    assert "1 failed, 1 skipped" in done.stdout
