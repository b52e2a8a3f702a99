"""Every file is read back by the program that it is for."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import mido
import numpy as np
import partitura as pt
import pytest
from example_bundles import write_pitch_bundle
from example_performances import PITCHES, perform, record, tune
from example_scores import VOLTAS
from PIL import Image

from fusili_mir.alignment.aligning import Alignment, align_recording
from fusili_mir.alignment.played import play_pages
from fusili_mir.errors import InputError, OutputError
from fusili_mir.model.encoder import Encoder
from fusili_mir.output.alignment_files import ALIGNMENT_FORMATS, save_alignment
from fusili_mir.pages.pages import load_pages, render_pages


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    return Encoder(write_pitch_bundle(tmp_path_factory.mktemp("bundle") / "pitch"))


@pytest.fixture(scope="module")
def repeated(tmp_path_factory: pytest.TempPathFactory, encoder: Encoder) -> Alignment:
    """A pick-up, a repeat with two endings, grace notes and a tie."""
    file = tmp_path_factory.mktemp("score") / "voltas.musicxml"
    file.write_text(VOLTAS)
    pages = render_pages(file)
    return align_recording(pages, record(perform(play_pages(pages, "maximal"))), encoder)


@pytest.fixture(scope="module")
def cut_short(tmp_path_factory: pytest.TempPathFactory, encoder: Encoder) -> Alignment:
    """A recording that ends before the last six notes of the score."""
    file = tmp_path_factory.mktemp("score") / "tune.musicxml"
    file.write_text(tune())
    pages = render_pages(file)
    performed = perform(play_pages(pages))
    return align_recording(pages, record(performed, end_sec=float(performed["onset_sec"][10])), encoder)


@pytest.fixture(scope="module")
def of_images(tmp_path_factory: pytest.TempPathFactory, encoder: Encoder) -> Alignment:
    folder = tmp_path_factory.mktemp("score")
    (folder / "tune.musicxml").write_text(tune())
    pages = render_pages(folder / "tune.musicxml")
    Image.fromarray(pages.images[0]).save(folder / "page.png")
    return align_recording(load_pages(folder / "page.png"), record(perform(play_pages(pages))), encoder)


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


def test_a_midi_reader_plays_the_notes_at_their_seconds(out: Path, repeated: Alignment) -> None:
    seconds, played = 0.0, []
    for message in mido.MidiFile(out / "performance.mid"):
        seconds += message.time
        if message.type == "note_on" and message.velocity > 0:
            played.append((seconds, message.note))
    assert [pitch for _, pitch in played] == repeated.notes["pitch"].tolist()
    assert [second for second, _ in played] == pytest.approx(repeated.notes["onset_sec"], abs=0.001)


def test_the_table_of_notes_has_a_row_for_each_with_its_head(out: Path, repeated: Alignment) -> None:
    rows = rows_of(out / "notes.csv")
    assert list(rows[0]) == [
        "id", "measure", "onset_beat", "pitch", "onset_sec", "offset_sec",
        "page", "x0", "y0", "x1", "y1", "confidence",
    ]  # fmt: skip
    assert [row["id"] for row in rows] == repeated.notes["id"].tolist()
    assert [row["measure"] for row in rows] == ["0", "1", "1", "2", "1", "1", "3"]
    assert [float(row["x0"]) for row in rows] == pytest.approx(repeated.notes["x0"].tolist(), abs=1e-3)


def test_notes_that_were_not_heard_have_no_seconds_in_the_table(tmp_path: Path, cut_short: Alignment) -> None:
    save_alignment(cut_short, tmp_path / "out", ["notes", "measures"])
    rows = rows_of(tmp_path / "out" / "notes.csv")
    assert [row["onset_sec"] == "" for row in rows] == [False] * 10 + [True] * 6
    rows = rows_of(tmp_path / "out" / "measures.csv")
    assert [row["start_sec"] == "" for row in rows] == [False] * 5 + [True] * 3


def test_the_table_of_measures_lists_each_time_a_measure_is_played(out: Path) -> None:
    rows = rows_of(out / "measures.csv")
    assert list(rows[0]) == ["measure", "start_sec", "end_sec", "page", "x0", "y0", "x1", "y1", "confidence"]
    assert [row["measure"] for row in rows] == ["0", "1", "2", "1", "3"]
    assert [float(row["start_sec"]) for row in rows] == pytest.approx(
        [0.48, 0.96, 1.92, 2.88, 3.84], abs=0.04
    )


def test_the_table_of_frames_can_be_read_by_numpy(out: Path, repeated: Alignment) -> None:
    table = np.genfromtxt(out / "frames.csv", delimiter=",", names=True)
    assert table.dtype.names == ("onset_sec", "page", "x", "y", "confidence")
    assert table["x"] == pytest.approx(repeated.frames["x"], abs=1e-3)


def test_audacity_labels_are_seconds_and_text_separated_by_tabs(out: Path) -> None:
    labels = [line.split("\t") for line in (out / "labels.txt").read_text().splitlines()]
    assert [text for _, _, text in labels] == [f"measure {number}" for number in (0, 1, 2, 1, 3)]
    assert all(float(start) < float(end) for start, end, _ in labels)


def test_sonic_visualiser_gets_a_note_layer(out: Path, repeated: Alignment) -> None:
    rows = rows_of(out / "sonic-visualiser.csv")
    assert list(rows[0]) == ["TIME", "VALUE", "DURATION", "LEVEL", "LABEL"]
    assert [int(row["VALUE"]) for row in rows] == repeated.notes["pitch"].tolist()


def test_the_json_file_holds_everything_and_its_version(out: Path, repeated: Alignment) -> None:
    content = json.loads((out / "alignment.json").read_text())
    assert content["format"] == 1
    assert content["unfold"] == "maximal"
    assert content["is_reliable"] is True
    assert content["notes"]["id"] == repeated.notes["id"].tolist()
    assert content["notes"]["onset_sec"] == pytest.approx(repeated.notes["onset_sec"].tolist(), abs=1e-4)
    assert content["measures"]["number"] == ["0", "1", "2", "1", "3"]
    assert len(content["frames"]["x"]) == len(repeated.frames)


def test_json_has_null_where_nothing_is_known(tmp_path: Path, cut_short: Alignment) -> None:
    save_alignment(cut_short, tmp_path / "out", ["json"])
    content = json.loads((tmp_path / "out" / "alignment.json").read_text())
    assert content["notes"]["onset_sec"][10:] == [None] * 6


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
        "notes.csv", "measures.csv", "frames.csv", "labels.txt", "sonic-visualiser.csv", "alignment.json",
        "similarity.png",
    }  # fmt: skip
    save_alignment(of_images, tmp_path / "images")
    assert {file.name for file in (tmp_path / "images").iterdir()} == {
        "frames.csv", "labels.txt", "sonic-visualiser.csv", "alignment.json", "similarity.png"
    }  # fmt: skip
    assert (tmp_path / "images" / "labels.txt").read_text().split("\t")[2] == "page 1 system 1\n"
    assert rows_of(tmp_path / "images" / "sonic-visualiser.csv")[0]["LABEL"] == "page 1 system 1"


@pytest.mark.parametrize("name", ["match", "parangonada", "midi", "notes", "measures"])
def test_formats_that_need_notes_are_refused_for_images_with_the_reason(
    tmp_path: Path, of_images: Alignment, name: str
) -> None:
    with pytest.raises(InputError, match=rf"page\.png: a score of images has no notes to write as {name}"):
        save_alignment(of_images, tmp_path / "out", [name])
    assert not (tmp_path / "out").exists()


def test_an_unknown_format_is_refused(tmp_path: Path, of_images: Alignment) -> None:
    with pytest.raises(InputError, match=r"format 'mid', expected some of match, .*similarity"):
        save_alignment(of_images, tmp_path / "out", ["mid"])
    assert len(ALIGNMENT_FORMATS) == 10


def test_a_folder_that_is_not_empty_is_only_written_to_by_force(tmp_path: Path, of_images: Alignment) -> None:
    (tmp_path / "frames.csv").write_text("mine")
    with pytest.raises(OutputError, match="--force"):
        save_alignment(of_images, tmp_path, ["frames"])
    assert (tmp_path / "frames.csv").read_text() == "mine"
    save_alignment(of_images, tmp_path, ["frames"], force=True)
    assert (tmp_path / "frames.csv").read_text().startswith("onset_sec")


def test_after_an_interruption_nothing_is_left(
    tmp_path: Path, repeated: Alignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("partitura.save_performance_midi", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_alignment(repeated, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_score_of_a_single_note_has_all_its_files(tmp_path: Path, encoder: Encoder) -> None:
    (tmp_path / "one.musicxml").write_text(tune(PITCHES[:1]))
    pages = render_pages(tmp_path / "one.musicxml")
    with pytest.warns(UserWarning, match="hardly explains"):  # a single note has no order
        alignment = align_recording(pages, record(perform(play_pages(pages))), encoder)
    assert alignment.notes["onset_sec"].tolist() == pytest.approx([0.48], abs=0.04)
    save_alignment(alignment, tmp_path / "out", [name for name in ALIGNMENT_FORMATS if name != "match"])
