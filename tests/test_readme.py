"""The README's lines, run in their order in a folder that holds nothing but the files that they name."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import numpy as np
import pytest
import soundfile
from example_media import write_media
from PIL import Image

from fusili_mir.demo.example import load_example

README = Path(__file__).parent.parent / "README.md"
NOT_RUN = {
    "make demo": "makes an environment of its own, with packages from an index",
    "make test": "runs this test",
    "make docs": "a part of make test",
    "pip install": "takes packages from an index; the workflow tests does it",
    "fusili-mir render": "takes hours for a corpus, and the soundfonts of its recipe",
    "fusili-mir train": "takes hours",
    "fusili-mir export": "needs what train makes",
    "fusili-mir evaluate": "needs what train makes",
}
LINE = re.compile(r"^    (?! )(.*)$", re.MULTILINE)
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
RATE_HZ = 24_000


def write_files(folder: Path) -> None:
    """Write what the README names: the first 16 s of the demo's song, and a scan with a system on each page."""
    example = load_example()
    with zipfile.ZipFile(example.score) as archive:
        (name,) = (name for name in archive.namelist() if not name.startswith("META-INF"))
        score = archive.read(name)
    with Image.open(example.page) as page:
        grey = page.convert("L")
    system = grey.crop((0, 0, grey.width, grey.height // 4))
    sound, _ = soundfile.read(example.recording, frames=16 * RATE_HZ, dtype="float32")
    noise = np.random.default_rng(0).normal(0, 1e-3, 75 * RATE_HZ).astype(np.float32)
    for name in ("scores", "recordings"):
        (folder / name).mkdir()
    for name in ("piece.musicxml", "scores/piece.musicxml"):
        (folder / name).write_bytes(score)
    for name in ("recording.wav", "recording.mp3", "recordings/recording.flac"):
        soundfile.write(folder / name, sound, RATE_HZ)
    soundfile.write(folder / "excerpt.wav", sound[2 * RATE_HZ : 12 * RATE_HZ], RATE_HZ)
    write_media(folder / "concert.mp4", np.concatenate((noise, sound)), RATE_HZ, video=True)
    system.save(folder / "scan.pdf", resolution=200, save_all=True, append_images=[system] * 6)
    rows = "score,recording\npiece.musicxml,recording.wav\nscan.pdf#1-2,recording.mp3\n"
    (folder / "pairs.csv").write_text(rows, encoding="utf-8")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A home without anything in it, a browser that opens nothing, and the program under its name."""
    home, programs = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("programs")
    program = programs / "fusili-mir"
    program.write_text(f"#!{sys.executable}\nfrom fusili_mir.cli.console import run\nrun()\n")
    program.chmod(0o755)
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("XDG_CACHE_HOME", "ORT_DISABLE_TELEMETRY")
    }
    path = os.pathsep.join((str(programs), str(Path(sys.executable).parent), os.environ["PATH"]))
    return {**kept, "HOME": str(home), "PATH": path, "BROWSER": "true"}


def run(program: list[str], folder: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{program[-1]}\n{done.stderr}"


def run_view(line: str, folder: Path, environment: dict[str, str]) -> None:
    """Start the server, look at its page, and stop it as Ctrl-C does."""
    program = ["sh", "-c", f"exec {line}"]
    with subprocess.Popen(program, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            with urllib.request.urlopen(server.stdout.readline().strip(), timeout=20) as page:
                assert b"piece" in page.read()
            server.send_signal(signal.SIGINT)
            assert server.wait(timeout=20) == 0
        finally:
            server.kill()


@pytest.mark.skipif(os.name == "nt", reason="the README is written for a POSIX shell")
def test_the_lines_of_the_readme_work_in_their_order(tmp_path: Path, environment: dict[str, str]) -> None:
    write_files(tmp_path)
    text = README.read_text(encoding="utf-8")
    left_out = set()
    for line in LINE.findall(BLOCK.sub("", text)):
        command = " ".join(line.split()[:2])
        if command in NOT_RUN:
            left_out.add(command)
        elif command == "fusili-mir view":
            run_view(line, tmp_path, environment)
        else:
            run(["sh", "-c", line], tmp_path, environment)
    program = "".join(BLOCK.findall(text))  # blocks share their names
    run([sys.executable, "-c", program], tmp_path, environment)
    assert left_out == set(NOT_RUN)
    kept_elsewhere = list(Path(environment["HOME"]).rglob("*"))
    assert not kept_elsewhere


def test_the_readme_takes_a_few_minutes_to_read() -> None:
    assert len(README.read_text(encoding="utf-8").split()) <= 900
