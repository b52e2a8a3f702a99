from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest
import soundfile
from example_bundles import write_pitch_bundle
from example_performances import PITCHES, perform, record, tune

from fusili_mir.alignment.anchors import Anchor
from fusili_mir.alignment.played import play_pages
from fusili_mir.cli.commands.view import _correction
from fusili_mir.cli.main import main
from fusili_mir.pages.pages import render_pages


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result of `fusili-mir align`, made in another folder."""
    folder = tmp_path_factory.mktemp("view")
    write_pitch_bundle(folder / "bundle")
    (folder / "tune.musicxml").write_text(tune(PITCHES * 2))
    performed = perform(play_pages(render_pages(folder / "tune.musicxml")))
    soundfile.write(folder / "tune.wav", record(performed).samples, 16_000)
    files = [str(folder / name) for name in ("tune.musicxml", "tune.wav", "out", "bundle")]
    with pytest.raises(SystemExit) as ended:
        main(
            [
                "align",
                *files[:2],
                "-o",
                files[2],
                "--model",
                files[3],
                "--format",
                "html",
                "--format",
                "measures",
            ]
        )
    assert ended.value.code == 0
    return folder / "out"


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["view", *map(str, arguments)])
    return int(str(ended.value.code))


def test_a_result_says_where_its_files_are_and_can_be_decoded_again(result: Path) -> None:
    inputs = json.loads((result / "inputs.json").read_text())
    assert (inputs["score"], inputs["recording"]) == (["../tune.musicxml"], "../tune.wav")
    correction = _correction(result, (), None)
    tables = correction.correct((Anchor(4.6, measure="5"),))
    correction.finish()
    assert correction.problem == ""
    assert tables["measures"]["start"][4] == 4.6
    with (result / "measures.csv").open(newline="") as lines:
        assert {row["measure"]: row["start_sec"] for row in csv.DictReader(lines)}["5"] == "4.6000"
    names = {file.name for file in result.iterdir()}
    assert names == {"view.html", "measures.csv", "inputs.json", "anchors.csv", ".before"}


def test_several_results_become_one_page(result: Path, tmp_path: Path) -> None:
    assert run(result, result / "view.html", "-o", tmp_path / "both.html") == 0
    html = (tmp_path / "both.html").read_text(encoding="utf-8")
    assert html.count('"durationSec"') == 2
    assert run(result, "-o", tmp_path / "both.html") == 1


def test_what_is_no_result_is_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path) == 1
    assert "view.html: not found; align with --format html first" in (capsys.readouterr().err)
    (tmp_path / "view.html").write_text("<html></html>")
    assert run(tmp_path) == 1
    assert "not a page of fusili-mir, or damaged" in capsys.readouterr().err


def test_a_recording_that_is_gone_is_named(result: Path, tmp_path: Path) -> None:
    correction = _correction(result, (), tmp_path / "gone.wav")
    correction._prepared.join()
    assert "gone.wav: not found; give --score or --recording if it was moved" in correction.problem


def test_a_correction_that_was_killed_while_files_were_replaced_is_finished_before_it_is_shown(
    result: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    shutil.copytree(result, folder)
    stage = folder / ".fusili-stage-abcdefgh"
    stage.mkdir()
    (stage / "measures.csv").write_text("the new one")
    (stage / ".moving.json").write_text('{"files": ["view.html", "measures.csv"], "replaces": true}')
    assert run(folder, "-o", tmp_path / "page.html") == 0
    assert (folder / "measures.csv").read_text() == "the new one"
    assert not stage.exists()
