from __future__ import annotations

from pathlib import Path

import numpy as np
import partitura as pt
import pytest
from example_performances import axis_of
from example_scores import VOLTAS, measure, melody, note, score, song

from fusili_mir.alignment.played import play_pages
from fusili_mir.alignment.playing_course import playing_course
from fusili_mir.boxes import MEASURE_DTYPE
from fusili_mir.errors import InputError
from fusili_mir.pages.pages import PageImages, Pages, render_pages
from fusili_mir.pages.score_axis import COLUMN_DTYPE, ScoreAxis


@pytest.fixture
def voltas(tmp_path: Path) -> Pages:
    (tmp_path / "voltas.musicxml").write_text(VOLTAS)
    return render_pages(tmp_path / "voltas.musicxml")


def fine_axis(pages: Pages, width_px: float) -> ScoreAxis:
    """Cut the only system of some pages into columns."""
    (system,) = pages.systems
    x0 = np.arange(system["x0"], system["x1"], width_px)
    columns = np.zeros(len(x0), COLUMN_DTYPE)
    columns["x0"], columns["x1"], columns["y0"], columns["y1"] = x0, x0 + width_px, system["y0"], system["y1"]
    return ScoreAxis(columns)


def test_notes_come_in_playing_order_with_the_heads_that_print_them(voltas: Pages) -> None:
    notes = play_pages(voltas, "maximal").notes
    assert notes["notated_id"].tolist() == ["p0n0", "p0n1", "p0n2", "p0n4", "p0n1", "p0n2", "p0n5"]
    assert notes["onset_beat"].tolist() == [-1, 0, 0, 3, 4, 4, 6]
    assert notes["is_grace"].tolist() == [False, True, False, False, True, False, False]
    assert notes["duration_beat"].tolist() == [1, 0, 3, 1, 0, 2, 2]  # the tie is into the first ending only


@pytest.mark.parametrize("unfold", ["none", "maximal"])
def test_notes_are_those_of_partituras_note_array(voltas: Pages, unfold: str) -> None:
    played = play_pages(voltas, unfold)  # type: ignore[arg-type]
    expected = played.score.parts[0].note_array(include_grace_notes=True)
    row_of = {note["id"]: note for note in played.notes}
    assert set(row_of) == set(expected["id"])
    for note_ in expected:
        row = row_of[note_["id"]]
        assert [row[name] for name in ("onset_beat", "duration_beat", "pitch", "is_grace")] == [
            note_[name] for name in ("onset_beat", "duration_beat", "pitch", "is_grace")
        ]


@pytest.mark.parametrize(
    ("unfold", "numbers", "starts"),
    [
        ("none", ["0", "1", "2", "3"], [-1, 0, 2, 4]),
        ("maximal", ["0", "1", "2", "1", "3"], [-1, 0, 2, 4, 6]),
        ("minimal", ["0", "1", "3"], [-1, 0, 2]),
    ],
)
def test_measures_are_listed_each_time_they_are_played(
    voltas: Pages, unfold: str, numbers: list[str], starts: list[float]
) -> None:
    measures = play_pages(voltas, unfold).measures  # type: ignore[arg-type]
    assert measures["number"].tolist() == numbers
    assert measures["start_beat"].tolist() == starts


def test_ids_are_those_of_the_unfolded_score_of_one_part(tmp_path: Path) -> None:
    (tmp_path / "song.musicxml").write_text(song(2))
    played = play_pages(render_pages(tmp_path / "song.musicxml"), "maximal")
    assert sorted(played.notes["id"]) == sorted(played.score.note_array()["id"])
    assert len(played.score.parts) == 1


def test_the_measures_of_an_unfolded_score_are_renumbered_and_keep_their_names(voltas: Pages) -> None:
    part = play_pages(voltas, "maximal").score[0]
    measures = list(part.iter_all(pt.score.Measure))
    assert [measure.number for measure in measures] == [1, 2, 3, 4, 5]
    assert [measure.name for measure in measures] == ["0", "1", "2", "1", "3"]


def test_images_cannot_be_played() -> None:
    empty = np.empty(0, MEASURE_DTYPE)
    with pytest.raises(InputError, match=r"scan\.png: only images are known"):
        play_pages(Pages("scan.png", PageImages([]), empty, empty))


def test_pages_that_are_already_unfolded_are_refused(tmp_path: Path) -> None:
    (tmp_path / "voltas.musicxml").write_text(VOLTAS)
    with pytest.raises(InputError, match="expected pages from render_pages with unfold none"):
        play_pages(render_pages(tmp_path / "voltas.musicxml", unfold="maximal"), "maximal")


def test_every_onset_is_a_stop_at_the_columns_of_its_heads(voltas: Pages) -> None:
    played, axis = play_pages(voltas, "maximal"), fine_axis(voltas, 5.0)
    on_course = playing_course(played, axis)
    assert on_course.stop_of_note.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert on_course.begins_stop.all()
    assert on_course.course.start.tolist() == [-1, 0, 0, 3, 4, 4, 6, 8]
    columns = axis.columns[on_course.course.columns]
    middle = (played.notes["x0"] + played.notes["x1"]) / 2
    assert np.all((columns["x0"] <= middle) & (middle < columns["x1"]))


def test_onsets_in_the_same_column_share_a_stop(tmp_path: Path) -> None:
    (tmp_path / "melody.musicxml").write_text(melody(2))
    pages = render_pages(tmp_path / "melody.musicxml")
    played = play_pages(pages)
    on_course = playing_course(played, fine_axis(pages, 10_000.0))
    assert len(on_course.course) == 1
    assert on_course.begins_stop.tolist() == [True, False, False, False]


def test_notes_of_a_chord_share_a_stop(tmp_path: Path) -> None:
    chord = note("C5") + note("E5", extra="<chord/>") + note("D5")
    (tmp_path / "chord.musicxml").write_text(score([measure(chord, first=True)]))
    pages = render_pages(tmp_path / "chord.musicxml")
    on_course = playing_course(play_pages(pages), fine_axis(pages, 5.0))
    assert on_course.stop_of_note.tolist() == [0, 0, 1]


def test_notes_without_a_head_have_no_stop(voltas: Pages) -> None:
    played = play_pages(voltas, "minimal")
    played.notes["page"][1], played.notes["system"][1] = -1, -1
    on_course = playing_course(played, fine_axis(voltas, 5.0))
    assert on_course.stop_of_note.tolist() == [0, -1, 1, 2]


def test_a_score_without_any_head_on_the_pages_is_refused(voltas: Pages) -> None:
    played = play_pages(voltas)
    played.notes["page"], played.notes["system"] = -1, -1
    with pytest.raises(InputError, match="none of the notes"):
        playing_course(played, axis_of(3))
