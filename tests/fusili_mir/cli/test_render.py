from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest
from example_processes import FusiliCommand, messages, still_there

from fusili_mir.audio.soundfonts import find_soundfonts
from fusili_mir.cli.main import main
from fusili_mir.folder_lock import locked_folder
from fusili_training.rendering.render_recipe import RenderRecipe


def _run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    assert isinstance(left.value.code, int)
    return left.value.code


@pytest.fixture
def recipe_file(small_recipe: RenderRecipe, tmp_path: Path) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(
        "[audio]\nkeyboard_programs = [0]\nother_programs = [0]\nvelocities = [72]\n"
        f"soundfonts = ['{small_recipe.audio.soundfonts[0]}']\n"
    )
    return path


def test_render_writes_shards_a_manifest_and_a_sheet(
    corpus: Path,
    recipe_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    out, sheet = Path("data"), Path("sheet.png")
    options = ["--recipe", recipe_file, "--limit", 2, "--seed", 5, "--jobs", 1, "--contact-sheet", sheet]
    assert _run("render", corpus, "-o", out, *options) == 0
    assert "segments, 2 of 2 pieces" in capsys.readouterr().out
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["recipe"]["seed"] == 5
    assert (out / "shard-train-000000.tar").is_file()
    assert sheet.is_file()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc to find processes")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nobody_works_on_after_ctrl_c_or_a_kill(
    corpus: Path, recipe_file: Path, tmp_path: Path, number: int
) -> None:
    out, options = tmp_path / "data", ["--recipe", recipe_file, "--jobs", 2]
    command = FusiliCommand("render", corpus, "-o", out, *options)
    family = command.wait_for_children(4)  # two that keep account for joblib, and two workers that begin
    if number == signal.SIGINT:
        command.press_ctrl_c()
        _, said = command.end()
        assert messages(said) == ["fusili-mir: interrupted; repeat the command to go on"]
    else:
        command.process.kill()
        command.process.wait()
    with locked_folder(out, patience_sec=2):  # a process that was just being started may hold it as long
        pass
    assert still_there(family) == []
    if number == signal.SIGKILL:
        command.end()


def test_a_recipe_with_missing_soundfonts_renders_with_another_and_records_it(
    corpus: Path, recipe_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = recipe_file.read_text()
    wanted = text.split("soundfonts = ['")[1].split("'")[0]
    used = find_soundfonts()[0].name
    recipe_file.write_text(text.replace(wanted, "Stradivari"))
    options = ["--recipe", recipe_file, "--limit", 1, "--jobs", 1]
    assert _run("render", corpus, "-o", tmp_path / "data", *options) == 0
    line = f"fusili-mir: warning: the soundfont Stradivari is not installed; {used} is used instead"
    assert capsys.readouterr().err.strip() == line
    manifest = json.loads((tmp_path / "data" / "manifest.json").read_text())
    assert manifest["soundfonts"]["Stradivari"]["used"] == used
    assert manifest["recipe"]["audio"]["soundfonts"] == ["Stradivari"]
    (shard,) = (tmp_path / "data").glob("shard-*.json")
    assert json.loads(shard.read_text())["soundfonts"] == [used]
    assert _run("render", corpus, "-o", tmp_path / "strict", "--strict-soundfonts", *options) == 1
    assert "no soundfont 'Stradivari' on this machine" in capsys.readouterr().err
    assert not (tmp_path / "strict").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--licence", "MIT"], "the corpus has the licences CC0-1.0"),
        (["--recipe", "none.toml"], "none.toml: not found"),
        (["--backend", "abacus"], "abacus"),
    ],
)
def test_mistakes_are_one_line(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert _run("render", corpus, "-o", tmp_path / "data", *arguments) == 1
    complaint = capsys.readouterr().err.strip()
    assert message in complaint
    assert complaint.count("\n") == 0
    assert not (tmp_path / "data").exists()


def test_no_processes_at_all_is_wrong_usage(tmp_path: Path) -> None:
    assert _run("render", tmp_path, "-o", tmp_path / "out", "--jobs", "0") == 2
    assert not (tmp_path / "out").exists()


def test_a_corpus_of_broken_scores_alone_is_an_error(
    tmp_path: Path, recipe_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "scores").mkdir()
    (tmp_path / "scores" / "cut.musicxml").write_text("<score-partwise>")
    options = ["--recipe", recipe_file, "--jobs", 1]
    assert _run("render", tmp_path / "scores", "-o", tmp_path / "out", *options) == 1
    captured = capsys.readouterr()
    assert "1 of the pieces could not be rendered" in captured.out
    assert "no segment could be rendered" in captured.err
