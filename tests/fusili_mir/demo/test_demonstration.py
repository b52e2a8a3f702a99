from __future__ import annotations

import signal
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import soundfile
from example_bundles import write_pitch_bundle
from PIL import Image

import fusili_mir
from fusili_mir.alignment.pitch_shift import find_pitch
from fusili_mir.cli.main import main
from fusili_mir.decoding.similarity import unit_vectors
from fusili_mir.demo.demonstration import (
    Demonstration,
    OnsetErrors,
    demonstrate,
    errors_of_notes,
    errors_of_places,
)
from fusili_mir.demo.example import Example, load_example
from fusili_mir.model.bundle import Bundle
from fusili_mir.model.encoded import EncodedAudio, EncodedScore
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import Pages, load_pages, render_pages
from fusili_mir.viewer.inputs import load_inputs

FRAME_SEC = 0.04  # frame length of the pitch bundle
WITH_NOTES = {"alignment.match", "notes.csv", "measures.csv", "performance.mid", "part.csv", "recording.mei"}
WITHOUT_NOTES = {
    "alignment.json",
    "frames.csv",
    "labels.txt",
    "sonic-visualiser.csv",
    "similarity.png",
    "overlay-001.png",
    "view.html",
}

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module", autouse=True)
def the_recording_is_in_the_key_of_the_page() -> Iterator[None]:
    """Look for no other key: the listener knows only the recording as it is."""

    def as_it_is(pages: Pages, score: EncodedScore, heard: Any, encoder: Encoder, *_: object) -> Any:
        return find_pitch(pages, score, heard, encoder, 0.0, None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fusili_mir.alignment.aligner.find_pitch", as_it_is)
        yield


class Listener(Encoder):
    """A perfect model of the example: columns and frames of one onset are alike, and unlike all others."""

    def __init__(self, bundle: Bundle, example: Example) -> None:
        super().__init__(bundle)
        self.example = example
        onset_sec = example.truth["onset_sec"]
        struck = np.concatenate(([True], np.diff(onset_sec) > 0.07))  # the notes of a chord are nearer
        self.struck_sec = onset_sec[struck]
        self.onset_of = dict(zip(example.truth["id"].tolist(), np.cumsum(struck) - 1, strict=True))
        vectors = np.random.default_rng(0).standard_normal((len(self.struck_sec) + 1, 64), dtype=np.float32)
        self.vectors = unit_vectors(vectors)  # the last one is silence

    def encode_pages(self, pages: Pages, progress: bool = False) -> EncodedScore:
        score = super().encode_pages(pages, progress)
        if pages.score is None:
            truth = self.example.truth
            ids, page = truth["id"], truth["page"]
            x, y = pages.skews[0].to_deskewed(truth["x"], truth["y"])
        else:
            ids, page = pages.notes["id"], pages.notes["page"]
            x, y = ((pages.notes[f"{axis}0"] + pages.notes[f"{axis}1"]) / 2 for axis in "xy")
        onset = np.full(len(score.axis), -1)
        for note_id, column in zip(ids.tolist(), score.axis.index(page, x, y), strict=True):
            onset[column : column + 3] = self.onset_of.get(note_id, -1)
        embeddings = self.vectors[onset][:, None].repeat(score.mask.shape[1], axis=1)
        return replace(score, embeddings=embeddings * score.mask[..., None])

    def encode_recording(self, recording: Any, *arguments: Any, **options: Any) -> EncodedAudio:
        audio = super().encode_recording(recording, *arguments, **options)
        middle_sec = audio.grid.centre(np.arange(len(audio.grid)))
        onset = np.searchsorted(self.struck_sec, middle_sec, side="right") - 1
        return replace(audio, frames=self.vectors[onset])


@pytest.fixture(scope="module")
def example() -> Example:
    return load_example()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def bundle(folder: Path) -> Bundle:
    return write_pitch_bundle(folder / "bundle")


@pytest.fixture(scope="module")
def known(example: Example, bundle: Bundle, folder: Path) -> tuple[Demonstration, Demonstration]:
    """The demonstration with a model that makes no mistakes."""
    return demonstrate(example, Listener(bundle, example), folder / "out")


def test_with_perfect_embeddings_both_ways_find_the_truth_within_a_frame(known) -> None:
    from_score, from_image = known
    for way in known:
        assert way.alignment.is_reliable
        assert len(way.errors.errors_sec) == 268
        assert way.errors.median_ms < 1000 * FRAME_SEC
    assert from_score.errors.share_within(100) > 0.95
    assert from_image.errors.share_within(250) > 0.95


def test_each_way_writes_all_formats_that_apply_and_an_overlay(known, folder: Path) -> None:
    from_score, from_image = known
    assert (from_score.folder, from_image.folder) == (folder / "out/from-score", folder / "out/from-image")
    written = [{file.name for file in way.folder.iterdir()} for way in known]
    assert written[0] >= WITH_NOTES | WITHOUT_NOTES
    assert written[1] == WITHOUT_NOTES | {"measures.csv", "measures.svl", "alphatab-sync.json", "inputs.json"}
    assert sorted(file.name for file in (folder / "out").iterdir()) == ["from-image", "from-score"]


def test_both_results_say_where_their_inputs_are_so_that_they_can_be_corrected(
    known, folder: Path, example: Example
) -> None:
    for way, score in (("from-score", example.score), ("from-image", example.page)):
        inputs = load_inputs(folder / "out" / way)
        assert inputs.score[0].samefile(score)
        assert inputs.recording.samefile(example.recording)


def test_the_overlay_of_the_image_marks_where_measures_begin_on_the_page_itself(known) -> None:
    _, from_image = known
    overlay = np.asarray(Image.open(from_image.folder / "overlay-001.png")).astype(int)
    height_px, width_px = from_image.alignment.pages.images[0].shape
    assert overlay.shape[1] == width_px
    assert overlay.shape[0] > height_px  # the legend
    measure = from_image.alignment.measures[11]
    x, y = round(float(measure["x0"])), round(float(measure["y0"] + measure["y1"]) / 2)
    blue = overlay[y - 60 : y + 60, x - 8 : x + 9]
    assert ((blue[..., 2] - blue[..., 0]) > 60).any(axis=1).all()  # a line from top to bottom, maybe tilted


def test_the_truth_is_of_notes_of_the_score_and_lies_on_heads_of_the_page(example: Example) -> None:
    truth, notes = example.truth, render_pages(example.score).notes
    assert len(set(truth["id"].tolist())) == len(truth)
    assert set(truth["id"].tolist()) <= set(notes["id"].tolist())
    assert (np.diff(truth["onset_sec"]) >= 0).all()
    page = np.asarray(Image.open(example.page).convert("L"))
    around = np.array([page[int(y) - 5 : int(y) + 6, int(x) - 5 : int(x) + 6] for x, y in truth[["x", "y"]]])
    assert (around < 80).mean(axis=(1, 2)).min() > 0.3  # hollow heads have the least ink


def test_the_page_is_found_to_be_skewed_and_to_have_four_systems(example: Example) -> None:
    pages = load_pages(example.page)
    assert pages.skews[0].angle_deg == pytest.approx(0.6, abs=0.05)
    assert pages.systems["n_staves"].tolist() == [3, 3, 3, 3]


def test_the_recording_begins_with_the_first_note_of_the_truth(example: Example) -> None:
    samples, sample_rate_hz = soundfile.read(example.recording, dtype="float32")
    onset_sec = example.truth["onset_sec"]
    loud = np.flatnonzero(np.abs(samples) > 0.02)
    assert loud[0] / sample_rate_hz == pytest.approx(onset_sec[0], abs=0.02)
    assert len(samples) / sample_rate_hz > onset_sec[-1] + 1


def test_the_files_are_small_and_in_the_package_which_the_wheel_takes_whole(example: Example) -> None:
    package = Path(fusili_mir.__file__).parent
    build = tomllib.loads((package.parent / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    wheel = build["targets"]["wheel"]
    assert "fusili_mir" in wheel["packages"]
    assert not {"exclude", "include", "only-include"} & set(wheel)
    assert example.recording.stat().st_size < 400_000
    assert example.page.stat().st_size < 300_000
    assert all(file.is_relative_to(package) for file in (example.score, example.page, example.recording))


def test_an_example_that_is_not_installed_is_one_line(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("fusili_mir.demo.example._FOLDER", tmp_path)
    with pytest.raises(fusili_mir.InputError, match=r"hensel_bitte\.mxl: a file of the example is missing"):
        load_example()


def test_notes_that_were_not_found_are_within_no_tolerance() -> None:
    errors = OnsetErrors(np.array([0.0, 0.025, 0.1, np.inf]))
    assert [errors.share_within(ms) for ms in (25, 50, 100, 1e9)] == [0.5, 0.5, 0.75, 0.75]
    assert errors.median_ms == pytest.approx(62.5)


def test_errors_grow_by_as_much_as_the_truth_is_moved(known, example: Example) -> None:
    for way, compare in zip(known, (errors_of_notes, errors_of_places), strict=True):
        later: npt.NDArray[np.void] = example.truth.copy()
        later["onset_sec"] += 5.0
        moved = compare(way.alignment, later)
        assert moved.median_ms == pytest.approx(5000, abs=1000 * FRAME_SEC)
        later["id"], later["page"] = "unknown", 7
        assert np.isinf(compare(way.alignment, later).errors_sec).all()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], bundle: Bundle, tmp_path: Path, monkeypatch) -> Run:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["demo", *map(str, arguments)])
        captured = capsys.readouterr()
        return int(str(ended.value.code)), captured.out, captured.err

    return run


def test_the_command_says_what_it_found_where_it_is_and_what_to_try(
    run: Run, bundle: Bundle, example: Example, monkeypatch
) -> None:
    monkeypatch.setattr("fusili_mir.model.opened_encoder.as_encoder", lambda model: Listener(bundle, example))
    monkeypatch.setattr("shutil.which", lambda name: None)  # as in `make demo`, where it is not on the path
    monkeypatch.setattr("sys.argv", [".venv-demo/bin/fusili-mir"])
    mine = Path("demo/from-score/mine.txt")
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    code, out, err = run("--model", "a bundle", "--force")
    assert (code, err) == (0, "")
    assert mine.read_text() == "mine"
    lines = out.splitlines()
    assert "Bitte" in lines[0]
    assert "21 measures" in lines[0]
    assert "268 notes" in lines[1]
    medians = [float(line.split(" ms ")[0].split()[-1]) for line in lines if "%" in line]
    assert len(medians) == 2
    assert max(medians) < 1000 * FRAME_SEC
    assert Path("demo/from-image/overlay-001.png").is_file()
    assert any("demo/from-image/overlay-001.png" in line for line in lines)
    assert (
        f"  .venv-demo/bin/fusili-mir point {example.page} {example.recording} --time 12.5 --model 'a bundle'"
        in out
    )
    assert max(len(line) for line in lines if "fusili-mir" not in line) <= 80  # commands are not wrapped


def test_a_folder_that_is_not_empty_is_refused_before_any_work(run: Run, tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "mine.txt").write_text("mine")
    code, out, err = run("--model", "none")
    assert (code, out) == (1, "")
    assert "--force" in err
    assert err.count("\n") == 1


def test_a_model_that_is_not_there_is_one_line_and_leaves_no_folder(run: Run, tmp_path: Path) -> None:
    code, out, err = run("--model", "none")
    assert (code, out) == (1, "")
    assert err.startswith("fusili-mir: none: not found; expected a bundle")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


NAMES = ("a.csv", "b.png", "c.json")


@pytest.fixture
def quick(known: tuple[Demonstration, Demonstration], example: Example, monkeypatch) -> None:
    """Provide the alignments without computing them, and write them as three small files."""
    ways = dict(zip((example.score, example.page), known, strict=True))

    def align(score: Path, example: Example, encoder: Encoder, folder: Path) -> Demonstration:
        return replace(ways[score], folder=folder)

    def write(_: object, folder: Path) -> None:
        for name in NAMES:
            (folder / name).write_text("new")

    monkeypatch.setattr("fusili_mir.demo.demonstration._align", align)
    monkeypatch.setattr("fusili_mir.demo.demonstration.write_formats", write)


def contents(folder: Path) -> dict[str, str]:
    files = (file for file in folder.rglob("*") if file.is_file() and file.name != "inputs.json")
    return {str(file.relative_to(folder)): file.read_text() for file in files}


WHOLE = {f"{way}/{name}": "new" for way in ("from-image", "from-score") for name in NAMES}


@pytest.mark.usefixtures("quick")
def test_a_second_run_says_how_to_continue_and_can_be_forced(
    run: Run, bundle: Bundle, tmp_path: Path
) -> None:
    assert run("--model", bundle.folder)[0] == 0
    code, out, err = run("--model", bundle.folder)
    assert (code, out) == (1, "")
    assert err == (
        "fusili-mir: demo: holds the results of an earlier demo; add --force to replace them, or choose "
        "another folder\n"
    )
    assert run("--model", bundle.folder, "--force")[0] == 0
    assert run("--model", bundle.folder, "-o", "again")[0] == 0
    assert contents(tmp_path / "demo") == contents(tmp_path / "again") == WHOLE


@pytest.mark.parametrize("out", ["file/out", "file/deep/out"])
def test_a_place_that_cannot_be_written_is_refused_before_any_work(
    run: Run, bundle: Bundle, tmp_path: Path, monkeypatch, out: str
) -> None:
    def work(*_: object) -> None:
        raise AssertionError("work was done")

    monkeypatch.setattr("fusili_mir.demo.demonstration._align", work)
    (tmp_path / "file").write_text("")
    code, _, err = run("--model", bundle.folder, "-o", out)
    assert code == 1
    assert err.startswith(f"fusili-mir: {out}")
    assert "cannot be written (Not a directory)" in err
    assert err.count("\n") == 1


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("at", ["_align", "write_formats"])
def test_an_interruption_of_the_work_or_of_the_writing_leaves_nothing_behind(
    run: Run, bundle: Bundle, tmp_path: Path, monkeypatch, at: str
) -> None:
    def interrupted(first: object, *others: object) -> None:
        if at == "write_formats":
            (Path(str(others[0])) / NAMES[0]).write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(f"fusili_mir.demo.demonstration.{at}", interrupted)
    code, out, err = run("--model", bundle.folder)
    assert (code, out, err.strip()) == (130, "", "fusili-mir: interrupted")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("options", [(), ("--force",)])
def test_an_interruption_while_files_get_their_names_waits_until_all_have_them(
    run: Run, bundle: Bundle, tmp_path: Path, monkeypatch, options: tuple[str, ...]
) -> None:
    if options:
        for name in WHOLE:
            file = tmp_path / "demo" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("old")
    name_change = "replace" if options else "rename"
    move = getattr(Path, name_change)

    def interrupted_move(file: Path, target: Path) -> Path:
        signal.raise_signal(signal.SIGINT)
        moved: Path = move(file, target)
        return moved

    monkeypatch.setattr(Path, name_change, interrupted_move)
    before = signal.getsignal(signal.SIGINT)
    code, out, err = run("--model", bundle.folder, *options)
    assert (code, out, err.strip()) == (130, "", "fusili-mir: interrupted")
    assert contents(tmp_path / "demo") == WHOLE
    assert signal.getsignal(signal.SIGINT) is before
