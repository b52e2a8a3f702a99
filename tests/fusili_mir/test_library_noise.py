"""What libraries print of damaged files stays hidden; what Python prints does not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import soundfile
from example_scores import melody
from PIL import Image, TiffImagePlugin

from fusili_mir.library_noise import libraries_silenced

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="C has no variable for its standard error")

RUN = "import sys; from fusili_mir.cli.main import main; main(sys.argv[1:])"


def damaged_mp3(path: Path) -> None:
    samples = np.sin(np.arange(48_000) / 20) * 0.5
    soundfile.write(path, samples, 16_000)
    content = bytearray(path.read_bytes())
    content[2000:2400] = bytes(400)
    path.write_bytes(content)


def damaged_tiff(path: Path) -> None:
    """Write a page whose strip of LZW ends too early, and which has a tag that nobody knows."""
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags[65_000] = "odd"
    Image.effect_noise((200, 300), 80).save(path, compression="tiff_lzw", tiffinfo=tags)
    content = bytearray(path.read_bytes())
    content[500:900] = bytes(400)
    path.write_bytes(content)


def stderr_of(code: str, *arguments: object) -> str:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False).stderr


def test_a_damaged_mp3_is_aligned_without_what_its_decoder_says(tmp_path: Path) -> None:
    damaged_mp3(tmp_path / "take.mp3")
    (tmp_path / "tune.musicxml").write_text(melody(4))
    loud = "import soundfile, sys; soundfile.read(sys.argv[1])"
    assert "Illegal Audio-MPEG-Header" in stderr_of(loud, tmp_path / "take.mp3")
    said = stderr_of(RUN, "align", tmp_path / "tune.musicxml", tmp_path / "take.mp3", "-o", tmp_path / "out")
    assert (tmp_path / "out" / "notes.csv").is_file()
    assert all(line.startswith("fusili-mir: warning: ") for line in said.splitlines()), said


def test_a_damaged_tiff_is_one_line(tmp_path: Path) -> None:
    damaged_tiff(tmp_path / "page.tif")
    loud = "import sys; from PIL import Image; Image.open(sys.argv[1]).load()"
    assert "LZWDecode" in stderr_of(loud, tmp_path / "page.tif")
    said = stderr_of(RUN, "pages", tmp_path / "page.tif", "-o", tmp_path / "out")
    assert re.fullmatch(r"fusili-mir: \S+page\.tif: a damaged image \(.*\); expected a whole image\n", said)


def test_what_python_prints_meanwhile_is_not_held_back(capfd: pytest.CaptureFixture[str]) -> None:
    with libraries_silenced():
        other = threading.Thread(target=lambda: sys.stderr.write("another thread\n"))
        other.start()
        other.join()
        sys.stderr.flush()
        os.write(2, b"the descriptor\n")
        subprocess.run([sys.executable, "-c", "import sys; print('a child', file=sys.stderr)"], check=True)
    assert capfd.readouterr().err == "another thread\nthe descriptor\na child\n"
