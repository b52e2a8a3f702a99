"""Every command that writes a result takes a place relative to the current folder, as a shell gives it."""

from __future__ import annotations

import contextlib
from importlib import import_module
from pathlib import Path

import pytest
import soundfile
from example_bundles import write_pitch_bundle
from example_performances import PITCHES, perform, record, tune

from fusili_mir.alignment.played import play_pages
from fusili_mir.cli.main import main
from fusili_mir.pages.pages import render_pages

WRITING = {
    "align": (["tune.musicxml", "tune.wav", "--model", "bundle"], "alignment.match"),
    "align-many": (["pairs.csv", "--model", "bundle"], "summary.csv"),
    "demo": (["--model", "bundle"], "from-score/alignment.match"),
    "index": (["tune.musicxml", "tune.wav", "--model", "bundle"], "report.csv"),
    "pages": (["tune.musicxml"], "overlay-001.png"),
    "view": (["result", "result"], ""),
}
"""Arguments of each command, but for `-o`, and a file that it writes into that folder; none if it is a file."""
ELSEWHERE = {"export", "render", "search", "train"}
"""Commands whose own tests write to relative places."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle, a score, a recording of it, a table of both, and the result of an alignment."""
    folder = tmp_path_factory.mktemp("relative")
    write_pitch_bundle(folder / "bundle")
    (folder / "tune.musicxml").write_text(tune(PITCHES * 2))
    performed = perform(play_pages(render_pages(folder / "tune.musicxml")))
    soundfile.write(folder / "tune.wav", record(performed).samples, 16_000)
    (folder / "pairs.csv").write_text("score,recording\ntune.musicxml,tune.wav\n")
    with contextlib.chdir(folder):
        assert run("align", *WRITING["align"][0], "-o", str(folder / "result")) == 0
    return folder


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main([*arguments])
    return int(str(ended.value.code))


def test_every_command_with_an_output_is_tried() -> None:
    commands = Path(str(import_module("fusili_mir.cli.commands").__file__)).parent.glob("[!_]*.py")
    modules = [import_module(f"fusili_mir.cli.commands.{file.stem}") for file in commands]
    writing = {
        module.command.name
        for module in modules
        if any(parameter.name == "out" for parameter in module.command.params)
    }
    assert writing == set(WRITING) | ELSEWHERE


@pytest.mark.parametrize("name", WRITING)
@pytest.mark.parametrize("place", ["new", "../beside"])
def test_a_result_is_written_to_a_relative_place(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, place: str
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    for each in folder.iterdir():
        (here / each.name).symlink_to(each)
    monkeypatch.chdir(here)
    arguments, file = WRITING[name]
    assert run(name, *arguments, "-o", place) == 0
    assert (here / place / file).is_file()
    assert not list(tmp_path.rglob(".*stage*"))


@pytest.mark.parametrize(
    ("name", "place"), [("align", "."), ("align", "there"), ("demo", "there"), ("pages", ".")]
)
def test_results_are_written_again_to_a_relative_place_that_is_in_use(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(place).mkdir(exist_ok=True)
    Path(place, "mine.txt").write_text("mine")
    arguments, file = WRITING[name]
    found = [str(folder / each) if (folder / each).exists() else each for each in arguments]
    assert run(name, *found, "-o", place) == 1
    for _ in range(2):
        assert run(name, *found, "-o", place, "--force") == 0
    assert Path(place, file).is_file()
    assert Path(place, "mine.txt").read_text() == "mine"
    assert not list(tmp_path.rglob(".*stage*"))
