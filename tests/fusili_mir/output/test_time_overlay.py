from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from fusili_mir.alignment.results import Alignment
from fusili_mir.output.overlay_legend import LegendEntry, add_legend
from fusili_mir.output.time_overlay import draw_times, overlaid_pages
from fusili_mir.pages.original_pages import original_image


def pixels(image: Image.Image) -> np.ndarray:
    return np.asarray(image).astype(int)


def is_blue(shown: np.ndarray) -> np.ndarray:
    return (shown[..., 2] - shown[..., 0] > 60) & (shown[..., 2] - shown[..., 1] > 20)


def test_a_line_marks_the_start_of_each_measure_and_a_grey_one_those_that_were_not_heard(
    cut_short: Alignment,
) -> None:
    shown = pixels(draw_times(cut_short, 0))
    heard = np.isfinite(cut_short.measures["start_sec"])
    assert 0 < heard.sum() < len(heard)
    system = cut_short.pages.systems[0]
    rows = slice(int(system["y0"]), int(system["y1"]))
    for measure, is_heard in zip(cut_short.pages.measures, heard, strict=True):
        x = round(float(measure["x0"]))
        blue = is_blue(shown[rows, x - 2 : x + 3]).any(axis=1)
        assert blue.all() if is_heard else not blue.any()


def test_heads_have_the_colour_of_their_second(cut_short: Alignment) -> None:
    shown = pixels(draw_times(cut_short, 0))
    for note in cut_short.notes:
        x, y = round(float(note["x0"] + note["x1"]) / 2), round(float(note["y0"] + note["y1"]) / 2)
        red, green, _ = shown[y, x]
        if np.isnan(note["onset_sec"]):
            assert abs(red - green) < 10
        else:
            assert (red > green + 20) == (int(note["onset_sec"]) % 2 == 0)


def test_lines_on_a_tilted_page_follow_its_tilt_and_paper_keeps_its_colour(
    of_tilted_images: Alignment,
) -> None:
    image = draw_times(of_tilted_images, 0)
    original = pixels(original_image(of_tilted_images.pages, 0))
    height_px, width_px = original.shape[:2]
    assert image.width == width_px
    shown = pixels(image)[:height_px]
    assert shown[5, 5].tolist() == [255, 255, (127 + 255) // 2]  # yellow, faded
    second = 3.0
    place = of_tilted_images.frames[np.searchsorted(of_tilted_images.frames["onset_sec"], second)]
    x, y, space_px = (
        float(place["x"]),
        float(place["y"]),
        float(of_tilted_images.pages.systems["space_px"][0]),
    )
    tops = []
    for down in (-2 * space_px, 0.0, 2 * space_px):
        row = round(y + down)
        near = np.flatnonzero(is_blue(shown[row, round(x) - 12 : round(x) + 13]))
        assert len(near)
        tops.append(near.mean())
    # The page is turned counter-clockwise, so upright lines lean to the left at their top.
    lean = (tops[2] - tops[0]) / (4 * space_px)
    assert lean == pytest.approx(np.tan(np.deg2rad(1.3)), abs=0.03)
    assert lean > 0


def test_only_pages_that_the_recording_reaches_are_drawn(of_images: Alignment) -> None:
    assert overlaid_pages(of_images) == [0]
    frames = of_images.frames.copy()
    frames["page"][50:] = 3
    assert overlaid_pages(replace(of_images, frames=frames)) == [0, 3]


def test_the_legend_is_below_the_page_whose_pixels_stay_in_place(of_images: Alignment) -> None:
    page = Image.new("RGB", (300, 100), (10, 20, 30))
    entries = [LegendEntry(((0, 114, 178),), "12   reached at 12 s"), LegendEntry(((1, 2, 3),), "x" * 60)]
    shown = pixels(add_legend(page, "a title", entries, font_px=12))
    assert shown.shape[1] == 300
    assert (shown[:100] == [10, 20, 30]).all()
    legend = shown[100:]
    assert (legend == [0, 114, 178]).all(axis=-1).any()
    assert (legend.sum(axis=-1) < 100).any()  # text
    assert (legend[:, -1] > 150).all()  # nothing is cut off at the right
