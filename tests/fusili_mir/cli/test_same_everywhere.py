from __future__ import annotations

from functools import reduce
from operator import or_
from pathlib import Path

import numpy as np
import pytest
import soundfile
from example_performances import PITCHES, perform, record, tune
from PIL import Image

from fusili_benchmarks.surroundings import checksums, make_surroundings, run_in
from fusili_mir.alignment.played import play_pages
from fusili_mir.pages.pages import render_pages

COMMAND = "from fusili_mir.cli.main import main; main()"


@pytest.mark.parametrize("score", ["tune.musicxml", "tune.png"])
def test_results_have_the_same_bytes_whatever_cpus_locale_fonts_seed_and_time_zone(
    tmp_path: Path, score: str
) -> None:
    (tmp_path / "tune.musicxml").write_text(tune(PITCHES * 3))
    pages = render_pages(tmp_path / "tune.musicxml")
    Image.fromarray(pages.images[0]).save(tmp_path / "tune.png")
    samples = record(perform(play_pages(pages))).samples
    samples += np.random.default_rng(0).normal(0, 0.003, samples.shape).astype(samples.dtype)
    soundfile.write(tmp_path / "tune.wav", samples, 16_000)
    around = make_surroundings(tmp_path / "around")
    others = [each for name, each in around.items() if name not in ("no fonts", "locale C", "locale C.UTF-8")]
    found = []
    for name, each in (("here", around["plain"]), ("elsewhere", reduce(or_, others))):
        out = tmp_path / name / "out"
        pair = [str(tmp_path / score), str(tmp_path / "tune.wav")]
        done = run_in(each, "-c", COMMAND, "align", *pair, "-o", str(out))
        assert done.returncode == 0, done.stderr
        found.append(checksums(out))
    assert len(found[0]) > 8
    assert found[0] == found[1]
