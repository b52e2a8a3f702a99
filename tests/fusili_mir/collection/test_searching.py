from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import soundfile
from example_bundles import melody_notes, sine_recording, write_ink_bundle
from example_collections import NAMES, NOTE_SEC, pitches_of, write_collection

import fusili_mir as fm
from fusili_mir.cli.main import main


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("collection")
    write_collection(folder)
    fm.build_index([folder / "scores", folder / "recordings"], folder / "index", model=folder / "bundle")
    return folder


def best(files: Path, query: object, **options: object) -> fm.Match:
    return fm.search(files / "index", query, model=files / "bundle", top=1, **options)[0]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
def test_ten_seconds_of_sound_find_their_score_and_the_system(files: Path, name: str) -> None:
    samples = sine_recording(melody_notes(pitches_of(name), NOTE_SEC))
    match = best(files, (samples, 16_000), kind="score", start_sec=8.0, end_sec=18.0)
    assert Path(match.path).name == f"{name}.musicxml"
    note = fm.open_pages(match.path).notes[int(8.0 / NOTE_SEC)]
    assert match.page == note["page"]
    assert match.box is not None
    margin_px = 50  # of ledger lines; systems are farther apart
    assert match.box[1] - margin_px < note["y0"] < note["y1"] < match.box[3] + margin_px
    assert match.box[0] - margin_px < note["x0"] < match.box[0] + margin_px


def test_a_score_finds_its_recording_and_when_it_is_played(files: Path) -> None:
    match = best(files, files / "scores" / "beech.musicxml", kind="recording")
    assert Path(match.path).name == "beech.flac"
    assert match.start_sec == pytest.approx(0.0, abs=1.0)
    assert match.end_sec == pytest.approx(48 * NOTE_SEC, abs=1.0)


def test_a_box_on_a_page_is_found_where_its_notes_sound(files: Path) -> None:
    score = files / "scores" / "ash.musicxml"
    notes = fm.open_pages(score).notes
    first, last = notes[20], notes[31]
    system = notes[(notes["y0"] > first["y0"] - 60) & (notes["y0"] < first["y0"] + 60)]
    x0, x1 = float(first["x0"]) - 4, float(system["x1"].max())
    in_box = [place for place, note in enumerate(notes) if x0 <= note["x0"] <= x1 and note in system]
    box = (x0, float(system["y0"].min()) - 30, x1, float(system["y1"].max()) + 30)
    match = best(files, score, kind="recording", page=int(first["page"]), box=box)
    assert Path(match.path).name == "ash.flac"
    assert match.start_sec == pytest.approx(in_box[0] * NOTE_SEC, abs=0.8)
    assert match.end_sec == pytest.approx((in_box[-1] + 1) * NOTE_SEC, abs=0.8)
    assert last["page"] == first["page"]


def test_within_one_kind_a_slower_recording_and_another_edition_are_found(files: Path) -> None:
    slower = sine_recording(melody_notes(pitches_of("ash"), 1.3 * NOTE_SEC))
    match = best(files, (slower, 16_000), kind="recording", start_sec=5.0, end_sec=20.0)
    assert Path(match.path).name == "ash.flac"
    assert match.start_sec == pytest.approx(5.0 / 1.3, abs=0.8)
    wide = fm.render_pages(files / "scores" / "elm.musicxml", fm.EngravingOptions(page_width_mm=150))
    assert Path(best(files, wide, kind="score").path).name == "elm.musicxml"


def test_a_recording_in_another_key_is_found_if_asked_for(files: Path) -> None:
    rate_hz = 16_000 * 2 ** (3 / 12)  # played three semitones higher
    higher = sine_recording(melody_notes(pitches_of("cedar"), NOTE_SEC), 16_000)
    found = best(files, (higher, round(rate_hz)), kind="score", transpose="auto")
    assert (Path(found.path).name, found.semitones) == ("cedar.musicxml", 3.0)


def test_the_answers_are_ranked_and_limited(files: Path) -> None:
    matches = fm.search(files / "index", files / "cedar.flac", model=files / "bundle", top=3)
    assert len(matches) == 3
    assert [match.probability for match in matches] == sorted((m.probability for m in matches), reverse=True)
    assert all(0 <= match.probability <= 1 for match in matches)


def test_silence_is_one_line(files: Path, tmp_path: Path) -> None:
    soundfile.write(tmp_path / "silence.wav", np.zeros(160_000), 16_000)
    with pytest.raises(fm.InputError, match="silent from start to end"):
        best(files, tmp_path / "silence.wav")


def test_an_index_of_another_model_is_refused_in_one_line(files: Path, tmp_path: Path) -> None:
    other = write_ink_bundle(tmp_path / "ink")
    with pytest.raises(fm.InputError, match=r"encoded by another model \(pitch, "):
        fm.search(files / "index", files / "cedar.flac", model=other)
    with pytest.raises(fm.InputError, match=r"encoded by another model \(pitch, "):
        fm.build_index([files / "cedar.flac"], files / "index", model=other)


def test_the_command_prints_a_table_or_json(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["search", str(files / "index"), str(files / "elm.flac"), "--model", str(files / "bundle")]
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--kind", "score", "--end", "0:10"])
    assert ended.value.code == 0
    head, first, *_ = capsys.readouterr().out.splitlines()
    assert head.split() == ["piece", "place", "probability"]
    assert "elm.musicxml" in first
    assert "page 1 system 1" in first
    with pytest.raises(SystemExit):
        main([*arguments, "--json", "--kind", "recording", "--top", "1"])
    (answer,) = json.loads(capsys.readouterr().out)
    assert set(answer) == {"path", "kind", "probability", "start_sec", "end_sec", "semitones"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kind": "opera"}, "kind is 'opera'"),
        ({"page": 0}, "the query is a recording"),
        ({"transpose": 99}, "transpose is 99"),
        ({"end_sec": 0.5}, "cedar.flac: 0.5 s of sound are too short"),
        ({"start_sec": 500.0}, "19.12 s long"),
    ],
)
def test_what_cannot_be_looked_for_is_one_line(files: Path, options: dict[str, object], said: str) -> None:
    with pytest.raises(fm.InputError, match=said):
        best(files, files / "cedar.flac", **options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"page": 7}, "page 8 of the query, expected one of its 1 pages"),
        ({"page": 0, "box": (1.0, 1.0, 2.0, 2.0)}, "has no music on it"),
        ({"start_sec": 1.0}, "the query is a score"),
    ],
)
def test_what_a_score_does_not_have_is_one_line(files: Path, options: dict[str, object], said: str) -> None:
    with pytest.raises(fm.InputError, match=said):
        best(files, files / "scores" / "ash.musicxml", **options)


def test_an_index_without_what_is_looked_for_is_one_line(files: Path, tmp_path: Path) -> None:
    fm.build_index(files / "scores" / "ash.musicxml", tmp_path / "index", model=files / "bundle")
    with pytest.raises(fm.InputError, match="index: no recordings in this index; add some"):
        fm.search(tmp_path / "index", files / "elm.flac", kind="recording", model=files / "bundle")


def test_an_answer_that_is_no_longer_there_is_not_opened(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(files / "scores" / "ash.musicxml", tmp_path)
    fm.build_index(tmp_path / "ash.musicxml", tmp_path / "index", model=files / "bundle")
    (tmp_path / "ash.musicxml").unlink()
    query = [
        str(tmp_path / "index"),
        str(files / "recordings" / "ash.flac"),
        "--model",
        str(files / "bundle"),
    ]
    with pytest.raises(SystemExit) as ended:
        main(["search", *query, "--open"])
    assert ended.value.code == 1
    assert "the best answer is no longer there" in capsys.readouterr().err


def test_open_aligns_the_query_with_the_best_answer_and_serves_the_view(files: Path, tmp_path: Path) -> None:
    query = ["search", files / "index", files / "elm.flac", "--open", "-o", "out"]
    code = (  # a shell that runs the tests in the background disables Ctrl-C
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from fusili_mir.cli.main import main; main()"
    )
    program = [sys.executable, "-c", code, *map(str, query)]
    serving = subprocess.Popen(
        [*program, "--model", str(files / "bundle"), "--kind", "score"],
        stdout=subprocess.PIPE,
        encoding="utf-8",
        cwd=tmp_path,
        env={**os.environ, "BROWSER": "true", "PYTHONUNBUFFERED": "1"},
    )
    assert serving.stdout is not None
    with serving:
        url = next(line for line in serving.stdout if line.startswith("http")).strip()
        with urllib.request.urlopen(url) as answer:
            assert "elm.musicxml" in answer.read().decode()
        serving.send_signal(signal.SIGINT)
    assert (tmp_path / "out" / "notes.csv").exists()
