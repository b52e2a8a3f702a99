"""Every file is read back by the program that it is for."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import partitura as pt
import pytest
from example_performances import PITCHES, perform, record, tune
from PIL import Image

from fusili_mir.alignment.aligning import align_recording
from fusili_mir.alignment.played import play_pages
from fusili_mir.alignment.results import Alignment
from fusili_mir.errors import InputError, OutputError
from fusili_mir.model.encoder import Encoder
from fusili_mir.output.alignment_files import ALIGNMENT_FORMATS, save_alignment
from fusili_mir.pages.pages import render_pages


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory, repeated: Alignment) -> Path:
    folder = tmp_path_factory.mktemp("out") / "all"
    save_alignment(repeated, folder)
    return folder


def rows_of(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def test_partitura_reads_the_match_file_with_all_ids_beats_and_seconds(
    out: Path, repeated: Alignment
) -> None:
    performance, alignment, score = pt.load_match(out / "alignment.match", create_score=True)
    assert [(entry["label"], entry["score_id"], entry["performance_id"]) for entry in alignment] == [
        ("match", str(note["id"]), f"n{note['id']}") for note in repeated.notes
    ]
    onsets = dict(zip(performance.note_array()["id"], performance.note_array()["onset_sec"], strict=True))
    for note in repeated.notes:
        assert onsets[f"n{note['id']}"] == pytest.approx(note["onset_sec"], abs=0.0003)
    beats = dict(zip(score.note_array()["id"], score.note_array()["onset_beat"], strict=True))
    assert beats == {str(note["id"]): pytest.approx(note["onset_beat"]) for note in repeated.notes}


def test_partitura_reads_deletions_from_the_match_file(tmp_path: Path, cut_short: Alignment) -> None:
    save_alignment(cut_short, tmp_path / "out", ["match"])
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["alignment.match"]
    _, alignment = pt.load_match(tmp_path / "out" / "alignment.match")
    assert sorted(entry["label"] for entry in alignment) == ["deletion"] * 6 + ["match"] * 10


def test_partitura_reads_the_parangonada_tables(out: Path, repeated: Alignment) -> None:
    alignment = pt.io.importparangonada.load_parangonada_alignment(out / "align.csv")
    assert [(entry["score_id"], entry["performance_id"]) for entry in alignment] == [
        (str(note["id"]), f"n{note['id']}") for note in repeated.notes
    ]
    assert {row["id"] for row in rows_of(out / "part.csv")} == set(repeated.notes["id"])
    assert len(rows_of(out / "ppart.csv")) == len(repeated.notes)


def test_the_table_of_notes_has_a_row_for_each_with_its_head(out: Path, repeated: Alignment) -> None:
    rows = rows_of(out / "notes.csv")
    assert list(rows[0]) == [
        "id", "measure", "onset_beat", "pitch", "onset_sec", "offset_sec",
        "page", "x0", "y0", "x1", "y1", "confidence", "earliest_sec", "latest_sec",
    ]  # fmt: skip
    for row in rows:
        assert float(row["earliest_sec"]) <= float(row["onset_sec"]) <= float(row["latest_sec"])
    assert [row["id"] for row in rows] == repeated.notes["id"].tolist()
    assert [row["measure"] for row in rows] == ["0", "1", "1", "2", "1", "1", "3"]
    assert [float(row["x0"]) for row in rows] == pytest.approx(repeated.notes["x0"].tolist(), abs=1e-3)


def test_notes_that_were_not_heard_have_no_seconds_in_the_table(tmp_path: Path, cut_short: Alignment) -> None:
    save_alignment(cut_short, tmp_path / "out", ["notes", "measures"])
    rows = rows_of(tmp_path / "out" / "notes.csv")
    for name in ("onset_sec", "earliest_sec", "latest_sec"):
        assert [row[name] == "" for row in rows] == [False] * 10 + [True] * 6
    rows = rows_of(tmp_path / "out" / "measures.csv")
    assert [row["start_sec"] == "" for row in rows] == [False] * 5 + [True] * 3


def test_the_table_of_measures_lists_each_time_a_measure_is_played(out: Path) -> None:
    rows = rows_of(out / "measures.csv")
    assert list(rows[0]) == [
        "measure", "start_sec", "end_sec", "page", "x0", "y0", "x1", "y1",
        "confidence", "earliest_sec", "latest_sec", "beats_per_minute", "measures_per_minute",
    ]  # fmt: skip
    for row in rows:
        assert float(row["earliest_sec"]) <= float(row["start_sec"]) <= float(row["latest_sec"])
    assert [row["measure"] for row in rows] == ["0", "1", "2", "1", "3"]
    assert [float(row["start_sec"]) for row in rows] == pytest.approx(
        [0.48, 0.96, 1.92, 2.88, 3.84], abs=0.04
    )


def test_the_table_of_measures_gives_their_tempo(out: Path, repeated: Alignment) -> None:
    beats = (repeated.measures["end_beat"] - repeated.measures["start_beat"]).tolist()
    for row, n_beats in zip(rows_of(out / "measures.csv"), beats, strict=True):
        lasting_sec = float(row["end_sec"]) - float(row["start_sec"])
        assert float(row["measures_per_minute"]) == pytest.approx(60 / lasting_sec, rel=1e-3)
        assert float(row["beats_per_minute"]) == pytest.approx(60 * n_beats / lasting_sec, rel=1e-3)


def test_the_table_of_frames_can_be_read_by_numpy(out: Path, repeated: Alignment) -> None:
    table = np.genfromtxt(out / "frames.csv", delimiter=",", names=True)
    assert table.dtype.names == ("onset_sec", "page", "x", "y", "confidence", "earliest_sec", "latest_sec")
    assert np.all(table["earliest_sec"] <= table["latest_sec"])
    assert table["x"] == pytest.approx(repeated.frames["x"], abs=1e-3)


def test_audacity_labels_are_seconds_and_text_separated_by_tabs(out: Path) -> None:
    labels = [line.split("\t") for line in (out / "labels.txt").read_text().splitlines()]
    assert [text for _, _, text in labels] == [f"measure {number}" for number in (0, 1, 2, 1, 3)]
    assert all(float(start) < float(end) for start, end, _ in labels)


def test_sonic_visualiser_gets_a_note_layer(out: Path, repeated: Alignment) -> None:
    rows = rows_of(out / "sonic-visualiser.csv")
    assert list(rows[0]) == ["TIME", "VALUE", "DURATION", "LEVEL", "LABEL"]
    assert [int(row["VALUE"]) for row in rows] == repeated.notes["pitch"].tolist()


def test_the_picture_shows_the_path_in_red_from_top_left_to_bottom_right(out: Path) -> None:
    with Image.open(out / "similarity.png") as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)
    red = (pixels[..., 0] > 240) & (np.abs(pixels[..., 1] - 60) < 12) & (np.abs(pixels[..., 2] - 60) < 12)
    y, x = np.nonzero(red)
    assert len(x) > 100
    assert np.corrcoef(x, y)[0, 1] > 0.9


def test_by_default_all_that_applies_is_written(out: Path, tmp_path: Path, of_images: Alignment) -> None:
    assert {file.name for file in out.iterdir()} == {
        "alignment.match", "align.csv", "zalign.csv", "feature.csv", "part.csv", "ppart.csv", "performance.mid",
        "recording.mei", "timemap.json", "alphatab-sync.json", "piano-precision.csv", "notes.csv", "measures.csv",
        "frames.csv", "labels.txt", "sonic-visualiser.csv", "measures.svl", "notes.svl", "alignment.json",
        "similarity.png", "overlay-001.png", "view.html",
    }  # fmt: skip
    save_alignment(of_images, tmp_path / "images")
    assert {file.name for file in (tmp_path / "images").iterdir()} == {
        "frames.csv", "labels.txt", "sonic-visualiser.csv", "systems.svl", "alignment.json", "similarity.png",
        "overlay-001.png", "view.html",
    }  # fmt: skip
    assert (tmp_path / "images" / "labels.txt").read_text().split("\t")[2] == "page 1 system 1\n"
    assert rows_of(tmp_path / "images" / "sonic-visualiser.csv")[0]["LABEL"] == "page 1 system 1"


def test_the_measures_of_images_are_written_with_their_seconds(
    tmp_path: Path, of_read_images: Alignment
) -> None:
    save_alignment(of_read_images, tmp_path / "out")
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert {"measures.csv", "measures.svl", "alphatab-sync.json", "overlay-001.png"} <= names
    rows = rows_of(tmp_path / "out" / "measures.csv")
    assert [row["measure"] for row in rows] == [str(number) for number in range(1, 9)]
    starts = [float(row["start_sec"]) for row in rows]
    assert starts == sorted(starts)
    assert {row["beats_per_minute"] for row in rows} == {""}
    assert all(float(row["measures_per_minute"]) > 0 for row in rows)
    assert (tmp_path / "out" / "labels.txt").read_text().split("\t")[2].startswith("measure 1\n")


@pytest.mark.parametrize(
    "name", ["match", "parangonada", "midi", "mei", "timemap", "piano-precision", "notes"]
)
def test_formats_that_need_notes_are_refused_for_images_with_the_reason(
    tmp_path: Path, of_images: Alignment, name: str
) -> None:
    with pytest.raises(InputError, match=rf"page\.png: a score of images has no notes to write as {name}"):
        save_alignment(of_images, tmp_path / "out", [name])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["measures", "alphatab"])
def test_formats_that_need_measures_are_refused_for_images_without_them(
    tmp_path: Path, of_images: Alignment, name: str
) -> None:
    with pytest.raises(
        InputError, match=f"has no measures to write as {name}; .*ask for html, overlay, pages"
    ):
        save_alignment(of_images, tmp_path / "out", [name])


def test_images_with_measures_have_a_list_of_measures_and_seconds(
    tmp_path: Path, of_images: Alignment, cut_short: Alignment
) -> None:
    measures = cut_short.measures[np.isfinite(cut_short.measures["start_sec"])]
    save_alignment(replace(of_images, measures=measures), tmp_path / "out")
    rows = rows_of(tmp_path / "out" / "measures.csv")
    assert [(row["measure"], float(row["start_sec"])) for row in rows] == [
        (str(row["number"]), pytest.approx(row["start_sec"], abs=1e-4)) for row in measures
    ]
    assert (tmp_path / "out" / "labels.txt").read_text().splitlines()[0].endswith("\tmeasure 1")
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert {"alphatab-sync.json", "measures.svl"} <= names
    assert not {"notes.csv", "systems.svl"} & names


def test_an_unknown_format_is_refused(tmp_path: Path, of_images: Alignment) -> None:
    with pytest.raises(
        InputError, match=r"format 'mid', expected some of html, overlay, pages, match, .*similarity"
    ):
        save_alignment(of_images, tmp_path / "out", ["mid"])
    assert len(ALIGNMENT_FORMATS) == 17


def test_a_folder_that_is_not_empty_is_only_written_to_by_force(tmp_path: Path, of_images: Alignment) -> None:
    (tmp_path / "frames.csv").write_text("mine")
    with pytest.raises(OutputError, match="force=True"):
        save_alignment(of_images, tmp_path, ["frames"])
    assert (tmp_path / "frames.csv").read_text() == "mine"
    save_alignment(of_images, tmp_path, ["frames"], force=True)
    assert (tmp_path / "frames.csv").read_text().startswith("onset_sec")


def test_after_an_interruption_nothing_is_left(
    tmp_path: Path, repeated: Alignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("partitura.save_match", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_alignment(repeated, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_score_of_a_single_note_has_all_its_files(tmp_path: Path, encoder: Encoder) -> None:
    (tmp_path / "one.musicxml").write_text(tune(PITCHES[:1]))
    pages = render_pages(tmp_path / "one.musicxml")
    with pytest.warns(UserWarning, match="hardly explains"):  # a single note has no order
        alignment = align_recording(pages, record(perform(play_pages(pages))), model=encoder)
    assert alignment.notes["onset_sec"].tolist() == pytest.approx([0.48], abs=0.04)
    save_alignment(alignment, tmp_path / "out", [name for name in ALIGNMENT_FORMATS if name != "match"])


def test_places_in_the_tables_of_a_tilted_scan_are_pixels_of_the_scan(
    tmp_path: Path, of_tilted_images: Alignment
) -> None:
    save_alignment(of_tilted_images, tmp_path / "out", ["frames"])
    table = np.genfromtxt(tmp_path / "out" / "frames.csv", delimiter=",", names=True)
    first = table[of_tilted_images.frames["system"] == 0]
    slope = np.polyfit(first["x"], first["y"], 1)[0]
    assert slope == pytest.approx(-np.tan(np.deg2rad(1.3)), abs=0.001)


def test_pages_are_written_as_they_are_in_their_files_and_only_if_asked_for(
    tmp_path: Path, of_tilted_images: Alignment
) -> None:
    save_alignment(of_tilted_images, tmp_path / "out", ["pages"])
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["page-001.png"]
    with (
        Image.open(tmp_path / "out" / "page-001.png") as page,
        Image.open(of_tilted_images.pages.filename) as original,
    ):
        assert page.mode == original.mode == "RGB"
        assert np.array_equal(np.asarray(page), np.asarray(original))


def test_engraved_pages_state_their_resolution(tmp_path: Path, repeated: Alignment) -> None:
    save_alignment(repeated, tmp_path / "out", ["pages"])
    with Image.open(tmp_path / "out" / "page-001.png") as page:
        assert page.size == repeated.pages.images[0].shape[::-1]
        assert page.info["dpi"][0] == pytest.approx(10 / (7.2 / 4) * 25.4, abs=0.1)  # 10 px per staff space


def test_without_its_notation_a_score_is_written_in_all_other_formats(
    tmp_path: Path, repeated: Alignment
) -> None:
    without = replace(repeated, pages=replace(repeated.pages, score_file=None))
    with pytest.raises(OutputError, match="its notation is not known"):
        save_alignment(without, tmp_path / "out", ["mei"])
    save_alignment(without, tmp_path / "out")
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert "recording.mei" not in names
    assert "timemap.json" in names
