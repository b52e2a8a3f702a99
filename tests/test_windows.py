"""What of Windows can be tried on any system: its paths, names and console, and modules that it lacks."""

from __future__ import annotations

import os
import shutil
import string
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import example, given
from hypothesis import strategies as st

import fusili_mir
from fusili_mir.audio.opening import open_recording
from fusili_mir.batch.pair_request import PairRequest, with_names
from fusili_mir.cli.main import _COMMANDS, main
from fusili_mir.demo.example import load_example
from fusili_mir.pages.page_ranges import split_page_range
from fusili_mir.pages.pages import check_score
from fusili_mir.viewer.inputs import Inputs, load_inputs, save_inputs

DEVICES = {"CON", "PRN", "AUX", "NUL", *(f"{port}{n}" for port in ("COM", "LPT") for n in "123456789¹²³")}
ODD_NAMES = [
    "CON",
    "aux.wav",
    "Nul.tar.gz",
    "com¹",
    "lied.",
    "lied ",
    "wer?",
    "a:b",
    'a"b',
    "a|b*",
    "c\\d",
    "\x07",
    "é" * 90,
]


def is_legal(name: str) -> bool:
    """Return whether Windows takes a name for a file."""
    return (
        not set(name) & {*'<>:"/\\|?*', *map(chr, range(32))}
        and name == name.rstrip(". ")
        and name.split(".")[0].rstrip().upper() not in DEVICES
    )


@given(st.lists(st.text(max_size=40) | st.sampled_from(ODD_NAMES), min_size=1, max_size=8))
@example(ODD_NAMES)
@example(["Lied", "LIED", "lied"])
@example(["Pre\u0301lude", "Pr\u00e9lude"])  # the accent by itself, and one character: alike to a Mac
def test_results_have_names_that_windows_takes_and_tells_apart(names: list[str]) -> None:
    asked = [PairRequest((Path("a.mxl"),), Path("a.wav"), name=name) for name in names]
    named = [request.name for request in with_names(asked)]
    assert [name for name in named if not is_legal(name)] == []
    assert len({name.casefold() for name in named}) == len(names)


def test_every_file_of_the_project_has_a_name_that_windows_takes() -> None:
    root = Path(fusili_mir.__file__).parent
    files = [path.relative_to(root) for path in root.rglob("*")]
    assert [str(file) for file in files if not all(map(is_legal, file.parts))] == []
    assert len({str(file).casefold() for file in files}) == len(files)


@pytest.mark.skipif(os.name == "nt", reason="would write to the root of a disk")
@pytest.mark.parametrize("folder", ["C:\\", "C:/", "C:\\scans\\", "C:/scans/", "\\\\server\\share\\", "D:"])
def test_a_drive_is_neither_an_address_nor_a_range_of_pages(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sound, score = Path(f"{folder}take 1.wav"), Path(f"{folder}lied.mxl")
    sound.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(str(sound), np.ones(800, np.float32), 8_000)
    assert open_recording(str(sound)).sample_rate_hz == 8_000
    shutil.copy(load_example().score, score)
    assert check_score(str(score))
    assert split_page_range(f"{folder}lied.pdf#3-7")[0] == Path(f"{folder}lied.pdf")


def test_a_result_that_windows_has_written_is_read_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "songs").mkdir()
    for name in ("lied.mxl", "take.wav"):
        (tmp_path / "songs" / name).touch()
    (tmp_path / "out").mkdir()
    inputs = Inputs((tmp_path / "songs/lied.mxl",), tmp_path / "songs/take.wav")
    save_inputs(inputs, tmp_path / "out/inputs.json", tmp_path / "out")
    assert '"../songs/lied.mxl"' in (tmp_path / "out/inputs.json").read_text(encoding="utf-8")
    assert [path.resolve() for path in load_inputs(tmp_path / "out").score] == [tmp_path / "songs/lied.mxl"]


def run_in(encoding: str, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run the program with an output in an encoding that lacks most characters, as a pipe of Windows does."""
    return subprocess.run(
        [sys.executable, "-c", "from fusili_mir.cli.console import run; run()", *arguments],
        capture_output=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
    )


@pytest.mark.parametrize("command", ["", *_COMMANDS])
def test_the_help_of_each_command_is_plain_ascii(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([*filter(None, [command]), "--help"])
    assert set(capsys.readouterr().out) <= set(string.printable)


@pytest.mark.parametrize("encoding", ["cp1252", "cp437"])
def test_names_that_the_console_lacks_are_printed_with_their_codes(tmp_path: Path, encoding: str) -> None:
    shutil.copy(load_example().score, tmp_path / "Ελλάς ♯.mxl")
    done = run_in(encoding, "pages", "Ελλάς ♯.mxl", "-o", "♭", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.strip().endswith(rb"-> \u266d")
    refused = run_in(encoding, "pages", "Ελλάς ♯.mxl", "-o", "♭", folder=tmp_path)
    assert refused.returncode == 1
    assert refused.stderr.startswith(rb"fusili-mir: \u266d: the folder is not empty")


WITHOUT_POSIX = """
import importlib, os, pkgutil, signal, sys, types
import numpy, scipy, partitura, verovio, soundfile, soxr, PIL.Image, pypdfium2, lxml.etree, fontTools, click, mido
import concurrent.futures, multiprocessing.connection, http.server, webbrowser, logging.handlers
import fusili_mir, fusili_mir.errors
for name in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "readline"):
    sys.modules[name] = None
for name in ("fork", "forkpty", "killpg", "getuid", "geteuid", "getgid", "setsid", "WNOHANG", "mkfifo", "sysconf",
             "statvfs", "sched_getaffinity", "register_at_fork", "O_NONBLOCK", "O_NOFOLLOW"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGKILL", "SIGALRM", "SIGHUP", "SIGIO", "SIGUSR1", "setitimer", "pthread_sigmask", "ITIMER_REAL"):
    if hasattr(signal, name):
        delattr(signal, name)
sys.modules["msvcrt"] = types.SimpleNamespace(LK_NBLCK=2, locking=lambda *_: None)
os.name = "nt"
import fusili_mir.folder_lock
os.name = "posix"  # pathlib makes its paths by it
for module in pkgutil.walk_packages(fusili_mir.__path__, "fusili_mir."):
    if module.name != "fusili_mir.pages.skia_raster":
        importlib.import_module(module.name)
"""


def test_every_runtime_module_imports_where_posix_is_missing() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_POSIX], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
