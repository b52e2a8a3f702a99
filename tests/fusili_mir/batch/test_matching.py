from __future__ import annotations

from pathlib import Path

import pytest
import soundfile
from example_collections import NAMES, write_collection

from fusili_mir import InputError, align_many, build_index
from fusili_mir.batch import matching
from fusili_mir.batch.matching import match_recordings
from fusili_mir.cli.main import main
from fusili_mir.collection.searching import search
from fusili_mir.model.bundle import load_bundle
from fusili_mir.model.encoder import Encoder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection with its index, of which two recordings are a part, and two more recordings."""
    folder = tmp_path_factory.mktemp("matching")
    write_collection(folder)
    (folder / "scores" / "bad.mxl").unlink()
    build_index([folder / "scores", folder / "recordings"], folder / "archive", model=folder / "bundle")
    (folder / "tapes").mkdir()
    for name in NAMES[2:]:
        (folder / f"{name}.flac").rename(folder / "tapes" / f"{name}.flac")
    return folder


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Encoder:
    return Encoder(load_bundle(folder / "bundle"))


def test_each_recording_of_an_index_finds_its_own_score(
    folder: Path, encoder: Encoder, tmp_path: Path
) -> None:
    pairs, unmatched = match_recordings((), folder / "archive", encoder, tmp_path)
    assert [(pair.score[0].stem, pair.recording.stem) for pair in pairs] == [(n, n) for n in NAMES[:2]]
    assert unmatched == []


def test_recordings_outside_the_index_are_found_in_it_and_what_matches_nothing_is_said(
    folder: Path, encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.wav").write_text("no sound")
    soundfile.write(tmp_path / "short.wav", [0.1] * 100, 16_000)
    given = [folder / "tapes", tmp_path / "broken.wav", tmp_path / "short.wav"]
    pairs, failed = match_recordings(given, folder / "archive", encoder, tmp_path)
    assert [(pair.score[0].stem, pair.recording.stem) for pair in pairs] == [(n, n) for n in NAMES[2:]]
    assert [(report.name, report.status) for report in failed] == [
        ("broken.wav", "failed"),
        ("short.wav", "failed"),
    ]
    assert "not a sound file" in failed[0].message
    looked: list[object] = []

    def count(index: object, query: object, **options: object) -> object:
        looked.append(query)
        return search(index, query, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(matching, "search", count)
    again, _ = match_recordings(given, folder / "archive", encoder, tmp_path)
    assert again == pairs
    assert looked == given[1:]  # only what failed is looked for again


def test_a_recording_whose_score_is_not_probable_enough_is_unmatched(
    folder: Path, encoder: Encoder, tmp_path: Path
) -> None:
    pairs, unmatched = match_recordings(
        folder / "tapes", folder / "archive", encoder, tmp_path, least_probability=1.0
    )
    assert pairs == []
    assert [report.status for report in unmatched] == ["unmatched"] * 2
    assert f"the most probable is {folder / 'scores' / NAMES[2]}.musicxml" in unmatched[0].message


def test_no_recordings_are_one_line(folder: Path, encoder: Encoder, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no recordings; expected some, or folders of them"):
        match_recordings(folder / "scores", folder / "archive", encoder, tmp_path)


def test_what_is_found_is_aligned(folder: Path, tmp_path: Path) -> None:
    reports = align_many(
        folder / "tapes",
        tmp_path / "out",
        folder / "bundle",
        match=folder / "archive",
        formats=["notes"],
        jobs=1,
    )
    assert [(report.name, report.status) for report in reports] == [
        (f"{name}--{name}", "aligned") for name in NAMES[2:]
    ]
    assert (tmp_path / "out" / "matches.csv").is_file()


def test_the_command_wants_a_table_or_an_index(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["align-many", "-o", str(tmp_path / "out")])
    assert ended.value.code == 2
    assert "0 tables of pairs; expected one, or --match INDEX" in capsys.readouterr().err
