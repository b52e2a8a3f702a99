from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from example_performances import axis_of
from example_scores import measure, note, score

from fusili_mir.alignment.frame_places import frames_of_notes, frames_of_places
from fusili_mir.alignment.note_places import NotePlaces
from fusili_mir.alignment.played import PlayedScore, play_pages
from fusili_mir.alignment.tempo_map import TempoMap
from fusili_mir.decoding.course import Course, reading_course
from fusili_mir.decoding.stop_times import StopTimes
from fusili_mir.decoding.warping_path import WarpingPath
from fusili_mir.geometry import FrameGrid
from fusili_mir.pages.engraving import EngravingOptions
from fusili_mir.pages.pages import Pages, render_pages
from fusili_mir.pages.score_axis import COLUMN_DTYPE, ScoreAxis

REST = "<note><rest measure='yes'/><duration>4</duration><voice>1</voice></note>"


def axis_over(pages: Pages) -> ScoreAxis:
    """Columns of 5 px over all systems."""
    columns = []
    for system in pages.systems:
        x0 = np.arange(system["x0"], system["x1"], 5.0)
        some = np.zeros(len(x0), COLUMN_DTYPE)
        some["page"], some["system"] = system["page"], system["system"]
        some["x0"], some["x1"], some["y0"], some["y1"] = x0, x0 + 5, system["y0"], system["y1"]
        columns.append(some)
    return ScoreAxis(np.concatenate(columns))


def frames_at_two_per_beat(pages: Pages, played: PlayedScore) -> np.ndarray:
    """One beat per second, frames of half a second whose middles fall on quarters of a beat: 0.25, 0.75, ..."""
    end = float(played.measures["end_beat"].max())
    grid = FrameGrid(int(2 * end), 0.5)
    ones, margin_sec = np.ones(len(grid), np.float32), np.full(len(grid), 0.3)
    path = WarpingPath(np.zeros(len(grid), np.int64), ones < 0, ones, ones, 0.5, margin_sec)
    tempo = TempoMap(np.array([0.0, end]), np.array([0.0, end]))
    return frames_of_notes(path, played, tempo, axis_over(pages), grid)


def heads(played: PlayedScore) -> np.ndarray:
    return (played.notes["x0"] + played.notes["x1"]) / 2


def test_the_place_moves_evenly_from_head_to_head_and_then_to_the_bar_line(tmp_path: Path) -> None:
    (tmp_path / "two.musicxml").write_text(score([measure(note("C5") + note("D5"), first=True)]))
    pages = render_pages(tmp_path / "two.musicxml")
    played = play_pages(pages)
    first, second = heads(played)
    end = float(pages.measures["x1"][0])
    places = [first + (second - first) / 4, first + 3 * (second - first) / 4]
    places += [second + (end - second) / 4, second + 3 * (end - second) / 4]
    assert frames_at_two_per_beat(pages, played)["x"] == pytest.approx(places, abs=0.01)


def test_a_measure_in_which_nothing_begins_is_entered_at_its_bar_line(tmp_path: Path) -> None:
    bars = [measure(note("C5", "half"), 1, first=True), measure(REST, 2), measure(note("D5", "half"), 3)]
    (tmp_path / "rest.musicxml").write_text(score(bars))
    pages = render_pages(tmp_path / "rest.musicxml")
    frames = frames_at_two_per_beat(pages, play_pages(pages))
    bar_line = float(pages.measures["x0"][1])
    assert frames["x"][3] < bar_line < frames["x"][4]


def test_at_a_line_break_the_place_jumps_to_the_next_system(tmp_path: Path) -> None:
    bars = [measure(note("C5") + note("D5"), number + 1, first=number == 0) for number in range(24)]
    (tmp_path / "long.musicxml").write_text(score(bars))
    pages = render_pages(tmp_path / "long.musicxml", EngravingOptions(page_height_mm=60))
    played = play_pages(pages)
    frames = frames_at_two_per_beat(pages, played)
    of_notes = frames[::2]  # the quarter of a beat after each onset
    assert of_notes["system"].tolist() == played.notes["system"].tolist()
    assert of_notes["page"].tolist() == played.notes["page"].tolist()
    assert np.all(of_notes["x"] > heads(played))
    breaks = np.flatnonzero(np.diff(frames["system"]))
    assert len(breaks) == len(pages.systems) - 1
    assert np.all(frames["x"][breaks] < pages.systems["x1"][frames["system"][breaks]] + 1)


def test_frames_are_as_sure_as_the_path(tmp_path: Path) -> None:
    (tmp_path / "one.musicxml").write_text(score([measure(note("C5", "half"), first=True)]))
    pages = render_pages(tmp_path / "one.musicxml")
    frames = frames_at_two_per_beat(pages, play_pages(pages))
    assert frames["confidence"].tolist() == [1.0] * 4
    # 0.3 s to either side of their middles at 0.25, 0.75, 1.25 and 1.75 s, within the recording
    assert frames["earliest_sec"] == pytest.approx([0.0, 0.45, 0.95, 1.45])
    assert frames["latest_sec"] == pytest.approx([0.55, 1.05, 1.55, 2.0])


PLACES = np.array([5, 15, 25, 35, 45, 55])
"""One column each, two in each system of 20, the first five of which are clefs."""


def frames_of_six_places(onset_sec: list[float], start_sec: float = 0.0) -> np.ndarray:
    """Fifty frames of 0.1 s; the systems are 20 columns of 10 px, from 50 px on."""
    axis = axis_of(20, n_systems=3)
    lengths = np.where(np.arange(60) % 20 < 5, 0.0, 1.0)
    course = Course(PLACES, np.arange(7), np.array([0.0, 10, 15, 25, 30, 40, 45]))
    times = StopTimes(np.array(onset_sec), 5.0, np.ones(6), np.ones(6), np.zeros(6))
    grid = FrameGrid(50, 0.1, start_sec)
    ones, margin_sec = np.ones(len(grid), np.float32), np.full(len(grid), 0.3)
    path = WarpingPath(np.zeros(len(grid), np.int64), ones < 0, ones, ones, 0.5, margin_sec)
    places = NotePlaces(course, PLACES, PLACES, lengths)
    return frames_of_places(path, places, times, reading_course(np.arange(len(axis))), axis, grid)


def test_clefs_take_no_time_where_only_images_are_known() -> None:
    frames = frames_of_six_places([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    in_second = frames[10:20]  # from the middle of column 15 to the end of the system it is 4.5 of 5 columns
    assert in_second["system"].tolist() == [0] * 9 + [1]
    assert in_second["x"] == pytest.approx([*(207.5 + 5.0 * np.arange(9)), 102.5], abs=1e-3)
    assert in_second["y"].tolist() == [150] * 9 + [350]
    assert frames["x"][frames["system"] == 1].min() >= 50 + 10 * 5


def test_the_music_is_left_of_the_first_place_before_it_and_right_of_the_last_one_after_it() -> None:
    frames = frames_of_six_places([np.nan, 1.0, 2.0, 3.0, np.nan, np.nan])
    first, last = 50 + 155.0, 50 + 155.0  # the middles of the columns 15 and 35, each the 15th of its system
    assert frames["x"][:10] == pytest.approx([first - 10] * 10)
    assert frames["x"][30:] == pytest.approx([last + 10] * 20)
    assert frames["system"][[0, 49]].tolist() == [0, 1]
