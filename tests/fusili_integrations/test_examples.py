"""The scripts of integrations/examples, run as a user would run them."""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import partitura as pt
import pytest
import soundfile
from example_bundles import write_pitch_bundle
from example_performances import PITCHES, perform, record, tune
from PIL import Image

from fusili_mir.alignment.performance import note_alignment, performance_from_notes
from fusili_mir.alignment.played import play_pages
from fusili_mir.pages.pages import render_pages

EXAMPLES = Path(__file__).parents[2] / "integrations" / "examples"
BEAT_SEC = 0.48

Run = Callable[..., str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle, a score, a recording, its MIDI with a wrong and an omitted note, and its true match file."""
    folder = tmp_path_factory.mktemp("examples")
    write_pitch_bundle(folder / "bundle")
    (folder / "tune.musicxml").write_text(tune(PITCHES * 2))
    played = play_pages(render_pages(folder / "tune.musicxml"))
    performed = perform(played, beat_sec=BEAT_SEC)
    soundfile.write(folder / "tune.wav", record(performed).samples, 16_000)
    notes = np.zeros(
        len(performed),
        [("id", "U32"), ("pitch", "i4"), ("onset_sec", "f8"), ("offset_sec", "f8"), ("confidence", "f4")],
    )
    for name in ("id", "pitch", "onset_sec"):
        notes[name] = performed[name]
    notes["offset_sec"] = performed["onset_sec"] + performed["duration_sec"]
    pt.save_match(
        note_alignment(notes), performance_from_notes(notes), played.score, out=str(folder / "true.match")
    )
    kept = np.delete(notes, 9)
    kept["pitch"][20] = 100
    pt.save_performance_midi(performance_from_notes(kept), str(folder / "tune.mid"))
    return folder


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(script: str, *arguments: object) -> str:
        monkeypatch.chdir(folder)
        given = ["tune.musicxml", "tune.wav", *map(str, arguments), "--model", "bundle"]
        monkeypatch.setattr(sys, "argv", [script, *given])
        runpy.run_path(str(EXAMPLES / script), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_encode_performance_prints_a_steady_tempo_for_every_note(run: Run) -> None:
    header, *rows = run("encode_performance.py").splitlines()
    assert header.split() == ["id", "beat_period_sec", "timing_sec", "articulation_log2"]
    assert len(rows) == 2 * len(PITCHES)
    tempo = [float(row.split()[1]) for row in rows[:-1]]  # the last note has no successor
    assert tempo == pytest.approx([BEAT_SEC] * len(tempo), abs=0.03)


def test_match_midi_finds_the_wrong_and_the_omitted_note(run: Run, folder: Path) -> None:
    counts = dict(line.split() for line in run("match_midi.py", "tune.mid", "out.match").splitlines())
    assert counts == {"match": "30", "deletion": "2", "insertion": "1"}
    _, alignment = pt.load_match(folder / "out.match")
    assert {entry["score_id"] for entry in alignment if entry["label"] == "deletion"} == {"p0n9", "p0n21"}


def test_compare_with_mir_eval_prints_the_usual_figures(run: Run) -> None:
    lines = run("compare_with_mir_eval.py", "true.match").splitlines()
    figures = {line[:20].strip(): line[20:].split()[0] for line in lines}
    assert figures["notes"] == "32"
    assert float(figures["median error"]) <= 20  # sines start abruptly, and are heard a little early
    assert figures["within   50 ms"] == "100.0"
    assert float(figures["mir_eval pc"]) == 1.0


def test_draw_tempo_curve_writes_a_picture_of_a_steady_tempo(run: Run, tmp_path: Path) -> None:
    printed = run("draw_tempo_curve.py", tmp_path / "tempo.png")
    n_spans, low, high = (int(number) for number in re.findall(r"\d+", printed)[:3])
    assert n_spans == 31
    assert 0.95 * 125 < low <= high < 1.05 * 125  # pure tones are dated to 20 ms
    with Image.open(tmp_path / "tempo.png") as image:
        assert image.size == (1000, 320)
        blue = np.all(np.asarray(image) == (0, 114, 178), axis=-1)
    assert np.ptp(np.nonzero(blue)[1]) > 800  # from left to right
    assert np.ptp(np.nonzero(blue)[0]) < 100  # and nearly horizontal


def test_every_example_is_run_here() -> None:
    source = Path(__file__).read_text()
    for script in EXAMPLES.glob("*.py"):
        assert f'run("{script.name}"' in source
