from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
from example_bundles import write_pitch_bundle
from example_performances import PITCHES, perform, record, tune
from PIL import Image

from fusili_mir.alignment.played import play_pages
from fusili_mir.cli.main import main
from fusili_mir.pages.pages import render_pages

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle, a score, its page as an image, a recording of it, and one of something else."""
    folder = tmp_path_factory.mktemp("align")
    write_pitch_bundle(folder / "bundle")
    (folder / "tune.musicxml").write_text(tune(PITCHES * 2))
    pages = render_pages(folder / "tune.musicxml")
    Image.fromarray(pages.images[0]).save(folder / "page.png")
    performed = perform(play_pages(pages))
    soundfile.write(folder / "tune.wav", record(performed).samples, 16_000)
    performed["pitch"] = np.random.default_rng(0).permutation(performed["pitch"])
    soundfile.write(folder / "other.flac", record(performed).samples, 16_000)
    return folder


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in the folder, with its model."""
    monkeypatch.chdir(folder)

    def run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main([*map(str, arguments), "--model", "bundle"])
        captured = capsys.readouterr()
        return int(str(ended.value.code)), captured.out, captured.err

    return run


def test_a_score_is_aligned_and_everything_is_written(run: Run, tmp_path: Path) -> None:
    code, out, err = run("align", "tune.musicxml", "tune.wav", "-o", tmp_path / "out")
    assert (code, err) == (0, "")
    assert out.startswith("32 of 32 notes, ")
    assert out.endswith(f" -> {tmp_path / 'out'}\n")
    assert (tmp_path / "out" / "alignment.match").is_file()


def test_only_the_requested_formats_are_written(run: Run, tmp_path: Path) -> None:
    code, _, _ = run(
        "align", "tune.musicxml", "tune.wav", "-o", tmp_path / "o", "--format", "measures", "--format", "midi"
    )
    assert code == 0
    assert sorted(file.name for file in (tmp_path / "o").iterdir()) == ["measures.csv", "performance.mid"]


def test_images_are_aligned_with_a_cache(run: Run, tmp_path: Path) -> None:
    arguments = ("align", "page.png", "tune.wav", "--cache", tmp_path / "page.npz", "--jumps")
    assert run(*arguments, "-o", tmp_path / "first")[0] == 0
    assert (tmp_path / "page.npz").is_file()
    assert run(*arguments, "-o", tmp_path / "second")[0] == 0
    frames = [(tmp_path / name / "frames.csv").read_bytes() for name in ("first", "second")]
    assert frames[0] == frames[1]


def test_a_recording_of_another_piece_is_marked_and_warned_of_in_one_line(run: Run, tmp_path: Path) -> None:
    code, out, err = run("align", "tune.musicxml", "other.flac", "-o", tmp_path / "out")
    assert code == 0
    assert ", LOW -> " in out
    assert err.startswith("fusili-mir: warning: the score hardly explains the recording")
    assert err.count("\n") == 1
    assert '"is_reliable":false' in (tmp_path / "out" / "alignment.json").read_text()


def write_bad(folder: Path, name: str) -> Path:
    file = folder / f"{name}.wav"
    samples = {
        "silent": np.zeros(16_000),
        "three": np.array([0.1, -0.1, 0.1]),
        "nan": np.array([0.1, np.nan] * 8000),
        "nothing": np.zeros(0),
    }
    if name in samples:
        soundfile.write(file, samples[name], 16_000, subtype="FLOAT")
    else:
        file.write_bytes(b"" if name == "empty" else b"This is not audio.")
    return file


@pytest.mark.parametrize("name", ["silent", "three", "nan", "nothing", "empty", "text"])
def test_a_recording_that_cannot_be_used_is_one_line_and_no_folder(
    run: Run, tmp_path: Path, name: str
) -> None:
    code, out, err = run("align", "tune.musicxml", write_bad(tmp_path, name), "-o", tmp_path / "out")
    assert (code, out) == (1, "")
    assert err.startswith("fusili-mir: ")
    assert f"{name}.wav" in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none.musicxml", "tune.wav"), "none.musicxml"),
        (("tune.musicxml", "none.wav"), "none.wav"),
        (("page.png", "tune.wav", "--format", "match"), "a score of images has no notes to write as match"),
        (("page.png", "tune.wav", "--unfold", "maximal"), "repeat signs are not read from images"),
        (("tune.musicxml", "tune.wav", "--jumps"), "jumps are for page images"),
        (("tune.musicxml", "tune.wav", "--format", "pdf"), "format 'pdf', expected some of"),
    ],
)
def test_a_request_that_cannot_be_met_is_one_line_and_leaves_no_folder(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    code, _, err = run("align", *arguments, "-o", tmp_path / "out")
    assert code == 1
    assert message in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_existing_result_is_found_before_any_work_is_done(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    code, _, err = run("align", "tune.musicxml", "none.wav", "-o", tmp_path)
    assert code == 1
    assert "--force" in err
    code, _, _ = run("align", "tune.musicxml", "tune.wav", "-o", tmp_path, "--force", "--format", "notes")
    assert code == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["mine.txt", "notes.csv"]


def test_an_interruption_leaves_nothing_behind(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fusili_mir.alignment.aligning.decode_path", interrupted)
    code, out, err = run("align", "tune.musicxml", "tune.wav", "-o", tmp_path / "out")
    assert (code, out) == (130, "")
    assert err.strip() == "fusili-mir: interrupted"
    assert list(tmp_path.iterdir()) == []


def test_point_answers_both_ways(run: Run) -> None:
    code, out, _ = run("point", "tune.musicxml", "tune.wav", "--time", "1.0", "--top", "1")
    assert code == 0
    page, x, y, number, similarity = out.splitlines()[1].split()
    assert (page, number, similarity) == ("1", "1", "1.000")
    code, out, _ = run("point", "tune.musicxml", "tune.wav", "--at", f"1:{x},{y}", "--top", "1")
    assert code == 0
    assert float(out.splitlines()[1].split()[0]) == pytest.approx(1.0, abs=0.04)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--time", "1", "--at", "1:2,3"),
        ("--at", "0:2,3"),
        ("--at", "1:2"),
        ("--at", "1:2.2.2,3"),
        ("--time", "x"),
    ],
)
def test_a_wrong_question_is_refused_with_the_usage(run: Run, arguments: tuple[str, ...]) -> None:
    code, out, err = run("point", "tune.musicxml", "tune.wav", *arguments)
    assert (code, out) == (2, "")
    assert "Usage: fusili-mir point" in err


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (("--time", "1000"), "1000 s is outside the recording (0 to "),
        (("--time", "-0.1"), "-0.1 s is outside the recording (0 to "),
        (("--at", "1:-4,300"), "-4,300 is off page 1, which is "),
        (("--at", "1:300,90000"), "300,90000 is off page 1, which is "),
        (("--at", "2:300,300"), "page 2 does not exist: tune.musicxml has 1 page"),
    ],
)
def test_a_question_outside_the_recording_or_off_the_pages_is_one_line(
    run: Run, question: tuple[str, ...], message: str
) -> None:
    code, out, err = run("point", "tune.musicxml", "tune.wav", *question)
    assert (code, out) == (1, "")
    assert err.startswith(f"fusili-mir: {message}")
    assert err.count("\n") == 1
