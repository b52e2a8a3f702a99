from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from example_bundles import write_pitch_bundle
from example_performances import FRAME_SEC, perform, record, tune
from PIL import Image

from fusili_mir.alignment.aligning import align_recording
from fusili_mir.alignment.played import play_pages
from fusili_mir.alignment.results import Alignment
from fusili_mir.alignment.retrieval import point_at_spot, point_at_time
from fusili_mir.arrays import GreyImage
from fusili_mir.errors import InputError
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import PageImages, load_pages, render_pages
from fusili_mir.pages.skew import Skew

PITCHES = ("C4", "E4", "G4", "C5", "A4", "E4", "D5", "B4")  # E4 comes in the first and in the third measure


@pytest.fixture(scope="module")
def alignment(tmp_path_factory: pytest.TempPathFactory) -> Alignment:
    folder: Path = tmp_path_factory.mktemp("retrieval")
    (folder / "tune.musicxml").write_text(tune(PITCHES))
    pages = render_pages(folder / "tune.musicxml")
    recording = record(perform(play_pages(pages), start_sec=0.48, beat_sec=0.48))
    return align_recording(pages, recording, model=Encoder(write_pitch_bundle(folder / "bundle")))


@dataclass(frozen=True)
class Blank:
    """A page of paper."""

    shape: tuple[int, ...]

    def read(self) -> GreyImage:
        return np.full(self.shape, 255, np.uint8)


def head(alignment: Alignment, note: int) -> tuple[float, float]:
    row = alignment.notes[note]
    return float(row["x0"] + row["x1"]) / 2, float(row["y0"] + row["y1"]) / 2


def test_a_second_points_at_the_note_that_sounds_and_then_at_those_that_sound_alike(
    alignment: Alignment,
) -> None:
    first, second = point_at_time(alignment, 0.48 + 0.48 + 0.02, n_spots=2)  # just after the first E4 begins
    assert (first.page, first.measure) == (0, "1")
    assert first.x == pytest.approx(head(alignment, 1)[0], abs=10)
    assert first.similarity == pytest.approx(1.0, abs=1e-5)
    assert (second.page, second.measure) == (0, "3")  # the other E4
    assert second.x == pytest.approx(head(alignment, 5)[0], abs=10)
    assert second.similarity == pytest.approx(1.0, abs=1e-5)


def test_a_spot_points_at_the_second_when_it_sounds_and_then_at_those_that_sound_alike(
    alignment: Alignment,
) -> None:
    first, second = point_at_spot(alignment, 0, *head(alignment, 5), n_moments=2)
    assert first.seconds == pytest.approx(0.48 + 5 * 0.48, abs=FRAME_SEC)
    assert second.seconds == pytest.approx(0.48 + 1 * 0.48, abs=FRAME_SEC)
    assert [first.similarity, second.similarity] == pytest.approx([1.0, 1.0], abs=1e-5)


def test_spots_and_seconds_lead_back_to_each_other(alignment: Alignment) -> None:
    for note in range(len(PITCHES)):
        (moment,) = point_at_spot(alignment, 0, *head(alignment, note), n_moments=1)
        (spot,) = point_at_time(alignment, moment.seconds, n_spots=1)
        assert spot.x == pytest.approx(head(alignment, note)[0], abs=2)


def test_answers_come_best_first_and_never_more_than_requested(alignment: Alignment) -> None:
    spots = point_at_time(alignment, 1.0, n_spots=4)
    assert len(spots) == 4
    similarities = [spot.similarity for spot in spots[1:]]
    assert similarities == sorted(similarities, reverse=True)
    assert len(point_at_time(alignment, 1.0, n_spots=1)) == 1


@pytest.fixture(scope="module", params=[-0.3, 0.0, 0.3])
def dated(alignment: Alignment, request: pytest.FixtureRequest) -> Alignment:
    """The alignment with frames that begin before, with or after the recording."""
    shift_sec: float = request.param
    frames = alignment.frames.copy()
    frames["onset_sec"] += shift_sec
    return replace(alignment, grid=replace(alignment.grid, start_sec=shift_sec), frames=frames)


def test_the_recording_extends_from_0_to_its_end_however_frames_are_dated(dated: Alignment) -> None:
    end_sec = len(dated.grid) * FRAME_SEC
    for seconds in (0.0, end_sec):
        assert point_at_time(dated, seconds, n_spots=1)[0].page == 0
    for seconds in (-0.001, end_sec + 0.001, 99.0, np.nan):
        with pytest.raises(InputError, match=rf"s is outside the recording \(0 to {end_sec:.2f} s\)"):
            point_at_time(dated, seconds)


def test_no_moment_lies_outside_the_recording(dated: Alignment) -> None:
    height_px, width_px = dated.pages.images[0].shape
    moments = [
        moment.seconds
        for x in (0, head(dated, 0)[0], head(dated, -1)[0], width_px)
        for moment in point_at_spot(dated, 0, x, height_px / 2, n_moments=50)
    ]
    assert min(moments) >= 0
    assert max(moments) <= len(dated.grid) * FRAME_SEC


def test_a_spot_is_on_the_page_up_to_its_edges(alignment: Alignment) -> None:
    height_px, width_px = alignment.pages.images[0].shape
    for x, y in ((0, 0), (width_px, height_px)):
        assert point_at_spot(alignment, 0, x, y, n_moments=1)
    off_page: list[tuple[float, float]] = [
        (-1, 5),
        (5, -0.5),
        (width_px + 1, 5),
        (5, height_px + 0.5),
        (np.nan, 5),
    ]
    for at_x, at_y in off_page:
        with pytest.raises(
            InputError, match=f"is off page 1, which is {width_px} pixels wide and {height_px}"
        ):
            point_at_spot(alignment, 0, at_x, at_y)


@pytest.mark.parametrize("page", [-1, 1, 3])
def test_a_page_that_does_not_exist_is_refused(alignment: Alignment, page: int) -> None:
    with pytest.raises(InputError, match=rf"page {page + 1} does not exist: .*tune\.musicxml has 1 page"):
        point_at_spot(alignment, page, 10.0, 10.0)


def test_a_page_without_music_is_refused(alignment: Alignment) -> None:
    image = alignment.pages.images[0]
    with_title = replace(
        alignment, pages=replace(alignment.pages, images=PageImages([Blank(image.shape)] * 2))
    )
    with pytest.raises(InputError, match="page 2 has no music on it"):
        point_at_spot(with_title, 1, 10.0, 10.0)


TILT_DEG = 1.3
LONG_TUNE = PITCHES * 12


@pytest.fixture(scope="module")
def upright_and_tilted(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Alignment, np.ndarray]]:
    """A page as it is and turned, aligned from its image; with (x, y, onset_sec) of all heads."""
    folder: Path = tmp_path_factory.mktemp("tilted")
    (folder / "tune.musicxml").write_text(tune(LONG_TUNE))
    pages = render_pages(folder / "tune.musicxml")
    performed = perform(play_pages(pages))
    encoder = Encoder(write_pitch_bundle(folder / "bundle"))
    image = Image.fromarray(pages.images[0])
    heads = [(pages.notes[f"{axis}0"] + pages.notes[f"{axis}1"]) / 2 for axis in "xy"]
    found = []
    for degrees in (0.0, TILT_DEG):
        file = folder / f"{degrees}.png"
        image.rotate(degrees, Image.Resampling.BICUBIC, fillcolor=255).save(file)
        turned = Skew(degrees, *image.size).to_original(*heads)
        truth = np.stack((*turned, performed["onset_sec"]), axis=1)
        found.append((align_recording(load_pages(file), record(performed), model=encoder), truth))
    return found


def errors_sec(alignment: Alignment, truth: np.ndarray) -> np.ndarray:
    found = [point_at_spot(alignment, 0, x, y, n_moments=1)[0].seconds for x, y, _ in truth]
    return np.abs(np.array(found) - truth[:, 2])


def test_on_a_tilted_page_spots_are_asked_for_in_its_own_pixels(upright_and_tilted) -> None:
    (_, truth), (tilted, turned_truth) = upright_and_tilted
    assert len(tilted.pages.systems) > 3
    assert tilted.pages.skews[0].angle_deg == pytest.approx(TILT_DEG, abs=0.05)
    assert np.abs(turned_truth - truth)[:, :2].max() > 15  # farther than a note head is wide
    right = [float(np.mean(errors_sec(*each) < 0.1)) for each in upright_and_tilted]
    assert right[0] > 0.95
    assert right[1] >= right[0] - 1 / len(LONG_TUNE)


def test_on_a_tilted_page_seconds_are_answered_in_its_own_pixels(upright_and_tilted) -> None:
    for alignment, truth in upright_and_tilted:
        for x, y, second in truth[::3]:
            spot = point_at_time(alignment, second + 0.02, n_spots=1)[0]
            assert abs(spot.x - x) < 15
            system_px = 60  # heads lie around the middle of their system
            assert abs(spot.y - y) < system_px


def test_frames_follow_the_tilt_of_their_system(upright_and_tilted) -> None:
    _, (tilted, _) = upright_and_tilted
    first = tilted.frames[tilted.frames["system"] == 0]
    slope = np.polyfit(first["x"], first["y"], 1)[0]
    assert slope == pytest.approx(-np.tan(np.deg2rad(TILT_DEG)), abs=0.001)  # lines rise to the right
