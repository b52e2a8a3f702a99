"""Staves on drawn pages, where every line is known to a fraction of a pixel."""

from __future__ import annotations

import time

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from fusili_mir.pages.staves import find_staves

FINE = 16  # rows that each pixel is averaged from


def draw_lines(page: np.ndarray, centres: list[float], thick_px: float, x0: int, x1: int) -> None:
    fine = np.zeros(page.shape[0] * FINE)
    for centre in centres:
        fine[round((centre - thick_px / 2) * FINE) : round((centre + thick_px / 2) * FINE)] = 1
    ink = fine.reshape(-1, FINE).mean(axis=1)
    page[:, x0:x1] = np.minimum(page[:, x0:x1], np.rint(255 * (1 - ink))[:, None])


def draw_staff(page: np.ndarray, top: float, space_px: float, x0: int, x1: int, n_lines: int = 5) -> None:
    draw_lines(page, [top + line * space_px for line in range(n_lines)], max(1.0, 0.1 * space_px), x0, x1)


def white(height_px: int = 700, width_px: int = 900) -> np.ndarray:
    return np.full((height_px, width_px), 255, dtype=np.uint8)


@pytest.mark.parametrize("space_px", [5.0, 6.4, 10.0, 13.7, 22.5, 40.0])
@pytest.mark.parametrize("part_px", [0.0, 0.25, 0.5, 0.8])
def test_the_lines_are_placed_to_a_tenth_of_a_pixel(space_px: float, part_px: float) -> None:
    page = white()
    tops = [60 + part_px, 380 + part_px]
    for top in tops:
        draw_staff(page, top, space_px, 100, 800)
    staves = find_staves(page)
    assert len(staves) == 2
    assert staves["y0"] == pytest.approx(tops, abs=0.12)
    assert staves["y1"] == pytest.approx([top + 4 * space_px for top in tops], abs=0.12)
    assert staves["space_px"] == pytest.approx(space_px, abs=0.06)
    assert staves["x0"] == pytest.approx(100, abs=1)
    assert staves["x1"] == pytest.approx(800, abs=1)


def test_the_fields_that_only_a_system_can_fill_are_left_open() -> None:
    page = white()
    draw_staff(page, 100, 10, 100, 800)
    staff = find_staves(page)[0]
    assert (staff["page"], staff["system"], staff["staff"]) == (0, -1, -1)


@pytest.mark.parametrize("rise_px", [0, 4, 8])
@pytest.mark.parametrize("thick_px", [4, 5])
def test_five_long_beams_are_no_staff(rise_px: int, thick_px: int) -> None:
    page = white()
    for top in (80, 240, 500, 600):
        draw_staff(page, top, 10, 100, 800)
    image = Image.fromarray(page)
    for beam in range(5):
        y = 380 + 7.5 * beam
        corners = [(150, y), (700, y + rise_px), (700, y + rise_px + thick_px), (150, y + thick_px)]
        ImageDraw.Draw(image).polygon(corners, fill=0)
    assert find_staves(np.asarray(image))["y0"] == pytest.approx([80, 240, 500, 600], abs=0.12)


def test_staves_come_from_top_to_bottom_and_may_differ_in_size() -> None:
    page = white()
    draw_staff(page, 80, 7, 100, 800)
    draw_staff(page, 200, 10, 60, 840)
    draw_staff(page, 330, 10, 60, 840)
    draw_staff(page, 460, 10, 60, 840)
    staves = find_staves(page)
    assert staves["y0"] == pytest.approx([80, 200, 330, 460], abs=0.12)
    assert staves["space_px"] == pytest.approx([7, 10, 10, 10], abs=0.1)


def test_staves_that_touch_the_borders_of_the_page_are_found() -> None:
    page = white(400, 600)
    draw_staff(page, 2, 10, 0, 600)
    draw_staff(page, 356, 10, 0, 600)
    staves = find_staves(page)
    assert staves["y0"] == pytest.approx([2, 356], abs=0.15)
    assert staves["x0"].tolist() == [0, 0]
    assert staves["x1"].tolist() == [600, 600]


def test_a_bent_staff_is_followed() -> None:
    page = white(500, 1200)
    for x in range(100, 1100):
        draw_staff(page, 200 + 6 * np.sin((x - 100) / 1000 * np.pi), 10, x, x + 1)
    staff = find_staves(page)
    assert len(staff) == 1
    assert staff["y0"][0] == pytest.approx(200 + 6 * 2 / np.pi, abs=0.3)  # mean of the half wave
    assert staff["x1"][0] - staff["x0"][0] == pytest.approx(1000, abs=3)


def test_beams_over_most_of_the_upper_lines_move_a_staff_by_a_tenth_of_a_space_at_most() -> None:
    page = white()
    draw_staff(page, 200, 12, 100, 800)
    for left in range(220, 780, 90):
        page[197:203, left : left + 80] = 0
        page[206:212, left : left + 80] = 0
        for stem in range(left, left + 81, 20):
            page[200:260, stem : stem + 2] = 0
    staves = find_staves(page)
    assert staves["y0"] == pytest.approx([200], abs=1.2)
    assert staves["y1"] == pytest.approx([248], abs=1.2)


def test_ledger_lines_all_along_do_not_make_a_sixth_line() -> None:
    page = white()
    draw_staff(page, 200, 10, 100, 800)
    for left in range(180, 780, 24):
        draw_lines(page, [250.0], 1.0, left, left + 16)
    assert find_staves(page)["y0"] == pytest.approx([200], abs=0.2)


def test_a_bracket_before_the_lines_is_not_part_of_them() -> None:
    page = white()
    draw_staff(page, 200, 10, 100, 800)
    page[190:250, 88:93] = 0
    assert find_staves(page)["x0"] == pytest.approx([100], abs=1)


def test_grain_blur_and_shadow_leave_the_staves_in_place() -> None:
    page = white()
    for top in (100, 250, 400, 550):
        draw_staff(page, top, 8, 60, 840)
    spoilt = page * np.linspace(0.5, 0.95, page.shape[0])[:, None]
    spoilt += np.random.default_rng(0).normal(0, 18, page.shape)
    staves = find_staves(np.clip(spoilt, 0, 255).astype(np.uint8))
    assert staves["y0"] == pytest.approx([100, 250, 400, 550], abs=0.3)


def break_lines(page: np.ndarray, tops: list[int], gone: float, seed: int) -> None:
    """Take a share of each line of staves with spaces of 10 px away, in stretches of 15 to 90 px."""
    rng = np.random.default_rng(seed)
    for top in tops:
        for line in range(5):
            x, rows = 100, slice(top + 10 * line - 2, top + 10 * line + 3)
            while x < 800:
                length = int(rng.integers(15, 90))
                if rng.uniform() < gone:
                    page[rows, x : x + length] = 255
                x += length


@pytest.mark.parametrize("seed", [3, 5])
def test_staves_with_broken_lines_are_found_nearly_from_end_to_end(seed: int) -> None:
    page, tops = white(), [60, 180, 300, 420, 540]
    for top in tops:
        draw_staff(page, top, 10, 100, 800)
        page[top : top + 41, [100, 300, 550, 799]] = 0  # bar lines
    break_lines(page, tops, 0.15, seed)
    staves = find_staves(page)
    assert staves["y0"] == pytest.approx(tops, abs=0.5)
    assert (staves["x1"] - staves["x0"]).min() > 0.85 * 700  # before, fragments of a third to a half


@pytest.mark.parametrize("n_lines", [1, 4, 6, 12])
def test_other_numbers_of_lines_are_not_a_staff(n_lines: int) -> None:
    page = white()
    draw_staff(page, 150, 14, 100, 800, n_lines=n_lines)
    assert len(find_staves(page)) == 0


def test_a_page_of_text_has_no_staves() -> None:
    image = Image.fromarray(white(1200, 850))
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(18)
    words = "the quick brown fox jumps over the lazy dog and runs away from it as fast as it can "
    for line in range(45):
        draw.text((60, 60 + 24 * line), (words * 3)[line : line + 80], fill=0, font=font)
    assert len(find_staves(np.asarray(image))) == 0


def test_a_ruled_table_has_no_staves() -> None:
    page = white(1000, 800)
    draw_lines(page, [100.0 + 22 * row for row in range(35)], 1.5, 60, 740)
    page[100:849, [60, 200, 500, 739]] = 0
    assert len(find_staves(page)) == 0


@pytest.mark.parametrize(
    "page",
    [
        white(),
        np.zeros((400, 300), dtype=np.uint8),
        np.random.default_rng(1).integers(150, 256, (900, 700), dtype=np.uint8),
        white(1, 1),
        white(12, 2000),
        white(2000, 12),
    ],
    ids=["white", "black", "grain", "one pixel", "flat", "narrow"],
)
def test_a_page_without_music_has_no_staves(page: np.ndarray) -> None:
    assert len(find_staves(page)) == 0


def test_a_large_scan_is_searched_in_bounded_time_and_still_to_a_fraction_of_a_pixel() -> None:
    page = white(7000, 5000)
    tops = [400.3 + 700 * staff for staff in range(9)]
    for top in tops:
        draw_staff(page, top, 40, 300, 4700)
    start = time.process_time()
    staves = find_staves(page)
    assert time.process_time() - start < 4.0
    assert staves["y0"] == pytest.approx(tops, abs=0.5)
    assert staves["x1"] == pytest.approx(4700, abs=5)
