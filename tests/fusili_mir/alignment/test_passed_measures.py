from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from example_bundles import write_pitch_bundle
from example_performances import FRAME_SEC, perform, record, tune
from PIL import Image

from fusili_mir.alignment.aligning import align_recording
from fusili_mir.alignment.passed_measures import passed_measures
from fusili_mir.alignment.played import play_pages
from fusili_mir.alignment.results import Alignment
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.engraving import EngravingOptions
from fusili_mir.pages.pages import Pages, load_pages, render_pages


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("passed")


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Encoder:
    return Encoder(write_pitch_bundle(folder / "bundle"))


def as_image_with_measures(engraved: Pages, file: Path) -> Pages:
    """The page as an image on which the measures are known, as if they had been found."""
    Image.fromarray(engraved.images[0]).save(file)
    return replace(load_pages(file), measures=engraved.measures)


@pytest.fixture(scope="module")
def two_systems(folder: Path, encoder: Encoder) -> Alignment:
    (folder / "tune.musicxml").write_text(tune())
    options = EngravingOptions(page_width_mm=90, page_height_mm=120, header=False)
    engraved = render_pages(folder / "tune.musicxml", options)
    pages = as_image_with_measures(engraved, folder / "tune.png")
    return align_recording(pages, record(perform(play_pages(engraved))), model=encoder)


def test_each_measure_begins_with_its_first_note(two_systems: Alignment) -> None:
    measures = two_systems.measures
    assert set(two_systems.pages.systems["system"].tolist()) > {0}
    assert measures["number"].tolist() == [str(number) for number in range(1, 9)]
    assert measures["start_sec"] == pytest.approx(0.48 + 0.96 * np.arange(8), abs=FRAME_SEC)
    assert measures["end_sec"][:-1].tolist() == measures["start_sec"][1:].tolist()
    assert np.isnan(measures["start_beat"]).all()
    assert measures["confidence"].min() > 0.3
    assert measures["x0"] == pytest.approx(two_systems.pages.measures["x0"], abs=1.0)


def test_each_note_head_on_an_image_has_a_probability_and_an_interval_of_its_own(
    two_systems: Alignment,
) -> None:
    moments = two_systems.moments
    assert moments is not None
    y = np.interp(moments.system, two_systems.pages.systems["system"], two_systems.pages.systems["y0"] + 1)
    page, x = np.zeros(len(y), np.int64), (moments.x0 + moments.x1) / 2
    found = two_systems.certainty_at(page, x, y)
    assert found.confidence.tolist() == moments.confidence.tolist()
    seconds = two_systems.position_maps.position_to_seconds(page, x, y)
    assert np.all((found.earliest_sec <= seconds) & (seconds <= found.latest_sec))


def test_places_off_the_played_systems_are_not_sure_at_all(two_systems: Alignment) -> None:
    first, second = two_systems.pages.systems[:2]
    on_first = float(first["x0"] + first["x1"]) / 2, float(first["y0"] + first["y1"]) / 2
    only_second = replace(
        two_systems, frames=two_systems.frames[two_systems.frames["system"] == 1], moments=None
    )
    whole = [two_systems.grid.audio_start_sec, two_systems.grid.end_sec]
    for alignment, (x, y) in (
        (only_second, on_first),  # a system that is not played
        (two_systems, (float(second["x1"]) + 300, float(second["y0"]))),  # beside the page
        (two_systems, (float(second["x0"]), float(second["y1"]) + 20 * float(second["space_px"]))),
    ):
        confidence, *interval = alignment.certainty_at(0, x, y)
        assert confidence == 0
        assert [float(second) for second in interval] == whole
    assert two_systems.certainty_at(0, *on_first).confidence > 0.3


def test_a_measure_that_is_played_again_is_listed_again(two_systems: Alignment) -> None:
    first = two_systems.frames[two_systems.frames["system"] == 0]
    frames = np.concatenate((first, first))
    frames["onset_sec"] = FRAME_SEC * np.arange(len(frames))
    path = replace(two_systems.path, is_filler=np.zeros(len(frames), bool))
    grid = replace(two_systems.grid, n_frames=len(frames), audio_sec=None)
    twice = replace(two_systems, frames=frames, path=path, grid=grid, moments=None)
    measures = passed_measures(twice)
    once = [str(number) for number in np.unique(first_numbers(two_systems))]
    assert measures["number"].tolist() == once * 2
    assert measures["start_sec"][len(once)] == pytest.approx(FRAME_SEC * len(first))
    assert measures["end_sec"][-1] == pytest.approx(FRAME_SEC * len(frames))


def first_numbers(alignment: Alignment) -> np.ndarray:
    measures = alignment.pages.measures
    return np.asarray(measures["number"][measures["system"] == 0])


def test_without_measures_on_the_pages_there_are_none(folder: Path, two_systems: Alignment) -> None:
    engraved = render_pages(folder / "tune.musicxml")
    Image.fromarray(engraved.images[0]).save(folder / "plain.png")
    encoder = Encoder(write_pitch_bundle(folder / "other"))
    read = load_pages(folder / "plain.png")
    pages = replace(read, measures=read.measures[:0], bar_lines=read.bar_lines[:0], repeats=None)
    alignment = align_recording(pages, record(perform(play_pages(engraved))), model=encoder)
    assert len(alignment.measures) == 0
    assert alignment.repeats is None
