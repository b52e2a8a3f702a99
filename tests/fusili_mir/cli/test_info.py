from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from example_bundles import write_ink_bundle, write_pitch_bundle

from fusili_mir.cli.main import main
from fusili_mir.hearing import networks
from fusili_mir.model import bundle as bundle_module
from fusili_mir.model.bundle import save_bundle


def run(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    assert isinstance(end.value.code, int)
    return end.value.code


def test_a_bundle_is_described_and_its_graphs_are_checked(tmp_path: Path, capsys) -> None:
    bundle = write_pitch_bundle(tmp_path / "pitch")
    manifest = replace(bundle.manifest, quality={"onset_median_ms": 33.333333, "pieces": 35})
    save_bundle(tmp_path / "known", manifest, bundle.read_graph("image"), bundle.read_graph("audio"))
    assert run("info", tmp_path / "known") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "bundle         pitch (fp32, format 1)"
    assert "licence        CC0-1.0" in lines
    assert "image          staff strips 128 px high, staff lines 8 px apart, a column every 4 px" in lines
    assert "audio          16000 Hz, clips of any length, a frame every 40 ms" in lines
    assert "quality        onset_median_ms: 33.33" in lines
    assert any(line.startswith("graph          audio.onnx, 0.1 MB, checksum ") for line in lines)
    assert any(line.startswith("graph          onsets.onnx, 3.7 MB, checksum ") for line in lines)
    assert any(line.startswith("reading        CC0-1.0, trained_on engraved staves ") for line in lines)
    assert any(line.startswith("onnxruntime    ") and line.endswith("cpu") for line in lines)
    assert lines[-1].startswith("auto           runs on ")
    assert any(line.startswith("recordings     what libsndfile ") and "PyAV" in line for line in lines)
    assert any(line.startswith("MIDI           ") for line in lines)


QUALITY: dict[str, Any] = {
    "measured_on": "validation pieces, with a piano that training never heard and with expressive timing",
    "onsets": {"pieces": 10, "median_ms": 26.799999, "within_100_ms": 0.685, "hop_ms": [20, 40]},
    "commands": [
        "python benchmarks/held_out.py BUNDLE --split valid --pieces 10 --lilypond TREE " * 2,
        "make",
    ],
}
QUALITY_LINES = [
    f"quality        measured_on: {QUALITY['measured_on']}",
    "quality        onsets: pieces 10, median_ms 26.8, within_100_ms 0.685, hop_ms 20, 40",
    f"quality        commands: {QUALITY['commands'][0].strip()}",
    "quality        commands: make",
]


@pytest.fixture
def well_measured(tmp_path: Path) -> Path:
    """A bundle with a long description of its quality."""
    bundle = write_pitch_bundle(tmp_path / "pitch")
    manifest = replace(bundle.manifest, quality=QUALITY)
    save_bundle(tmp_path / "known", manifest, bundle.read_graph("image"), bundle.read_graph("audio"))
    return tmp_path / "known"


def test_in_a_pipe_every_property_of_a_bundle_is_one_line(well_measured: Path, capsys) -> None:
    assert run("info", well_measured) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("quality")] == QUALITY_LINES


def test_on_a_terminal_lines_are_wrapped_between_words_and_nothing_is_lost(
    well_measured: Path, capsys, monkeypatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    assert run("info", well_measured) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines if not line.startswith("folder")) <= 80
    first = lines.index(next(line for line in lines if line.startswith("quality")))
    last = lines.index("quality        commands: make")
    joined = "\n".join(lines[first : last + 1]).replace("\n" + 15 * " ", " ")
    assert joined.splitlines() == QUALITY_LINES


def test_squares_are_described_by_their_patches(tmp_path: Path, capsys) -> None:
    write_ink_bundle(tmp_path / "ink")
    assert run("info", tmp_path / "ink") == 0
    out = capsys.readouterr().out
    assert "image          squares of 224 x 224 px, patches of 32 x 32 px" in out
    assert "audio          16000 Hz, clips of 2 s, a frame every 40 ms" in out


def test_a_damaged_bundle_is_one_line_and_exit_code_1(tmp_path: Path, capsys) -> None:
    write_pitch_bundle(tmp_path / "pitch")
    (tmp_path / "pitch" / "audio.onnx").write_bytes(b"")
    assert run("info", tmp_path / "pitch") == 1
    error = capsys.readouterr().err
    assert error.startswith("fusili-mir: ")
    assert "audio.onnx: sha256" in error
    assert error.count("\n") == 1


def test_the_networks_that_ship_are_checked_too(tmp_path: Path, monkeypatch, capsys) -> None:
    shutil.copytree(networks.NETWORK_FOLDER, tmp_path / "copy")
    monkeypatch.setattr(networks, "NETWORK_FOLDER", tmp_path / "copy")
    (tmp_path / "copy" / "reading.onnx").write_bytes(b"damaged")
    assert run("info") == 1
    assert "reading.onnx: sha256" in capsys.readouterr().err


def test_a_missing_bundle_is_exit_code_1(tmp_path: Path, capsys) -> None:
    assert run("info", tmp_path / "none") == 1
    assert "not found; expected a bundle" in capsys.readouterr().err


def test_without_an_installed_bundle_the_machine_is_still_described(
    tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.setattr(bundle_module, "_DEFAULT_FOLDER", tmp_path / "small")
    assert run("info") == 0
    out = capsys.readouterr().out
    assert "bundle         no model comes with this installation" in out
    assert "onnxruntime    " in out


def test_what_is_missing_to_read_recordings_is_named(tmp_path: Path, monkeypatch, capsys) -> None:
    write_pitch_bundle(tmp_path / "pitch")
    monkeypatch.setitem(sys.modules, "av", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run("info", tmp_path / "pitch") == 0
    out = capsys.readouterr().out
    assert "and no more; fusili-mir[audio] adds M4A, MP4 and video" in out
    assert "MIDI           the program `fluidsynth` was not found; install it with `apt-get install" in out


def test_without_onnxruntime_the_bundle_is_still_described(tmp_path: Path, monkeypatch, capsys) -> None:
    write_pitch_bundle(tmp_path / "pitch")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert run("info", tmp_path / "pitch") == 0
    out = capsys.readouterr().out
    assert "bundle         pitch" in out
    assert "onnxruntime    onnxruntime is not installed; run pip install 'fusili-mir[cpu]'" in out
