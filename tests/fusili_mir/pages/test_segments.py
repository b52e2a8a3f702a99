from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusili_mir.boxes import STAFF_DTYPE, SYSTEM_DTYPE
from fusili_mir.errors import InputError
from fusili_mir.pages.segments import Box, Piece, Segment, cut_segment, staff_strips, system_strip

# One page, one system of two staves: lines 8 and 12 pixels apart, as on a warped scan.
SYSTEMS = np.array([(0, 0, 2, 50, 100, 450, 300, 10)], SYSTEM_DTYPE)
STAVES = np.array([(0, 0, 0, 50, 100, 450, 132, 8), (0, 0, 1, 50, 252, 450, 300, 12)], STAFF_DTYPE)


def page() -> np.ndarray:
    """The page of `SYSTEMS`, with its ten staff lines, one pixel thick, and a mark."""
    image = np.full((400, 500), 255, np.uint8)
    for staff in STAVES:
        for line in range(5):
            y = int(staff["y0"] + line * staff["space_px"])
            image[y, int(staff["x0"]) : int(staff["x1"])] = 0
    return image


def test_a_system_strip_is_the_system_with_its_margins_at_the_requested_size() -> None:
    strip = system_strip(SYSTEMS, 0, space_px=5, margin_spaces=4)
    assert (strip.width_px, strip.height_px) == (200, 140)  # half of 400 x (200 + 2 * 40)
    x, y = strip.from_page(0, [50, 450, 250], [100, 300, 200])
    assert x.tolist()[::2] == [0, 100]
    assert np.isnan(x[1])  # the right edge is already outside
    assert y[[0, 2]].tolist() == [20, 70]


def test_staff_strips_put_the_five_lines_of_every_staff_at_the_same_rows() -> None:
    strips = staff_strips(SYSTEMS, STAVES, 0, space_px=16, margin_spaces=3)
    assert (strips.width_px, strips.height_px) == (640, 320)  # 400 * 1.6, two strips of (4 + 2 * 3) * 16
    for staff, top in zip(STAVES, (0, 160), strict=True):
        lines = staff["y0"] + np.arange(5) * staff["space_px"]
        _, y = strips.from_page(0, 60, lines)
        assert y == pytest.approx(top + 80 + 16 * np.arange(-2, 3))
    ink = cut_segment(strips, [page()]) < 200
    for top in (0, 160):
        rows = np.flatnonzero(ink[top : top + 160].mean(axis=1) > 0.9)
        groups = np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)
        # a line drawn in the pixel row at y has its middle at y + 0.5 of the page
        assert [group.mean() + 0.5 for group in groups] == pytest.approx(80 + 16 * np.arange(-2, 3), abs=1.1)


def test_a_part_of_a_system_starts_where_it_is_cut() -> None:
    strip = system_strip(SYSTEMS, 0, space_px=10, x_range=(100, 200))
    assert strip.width_px == 100
    assert strip.from_page(0, 100, 200)[0] == 0


def test_a_place_between_two_staves_goes_to_the_nearer_one() -> None:
    strips = staff_strips(SYSTEMS, STAVES, 0, space_px=10, margin_spaces=20)
    _, y = strips.from_page(0, 60, [190.0, 205.0])  # the middles of the staves are at 116 and 276
    assert y[0] < strips.height_px / 2 < y[1]


def test_a_cut_that_leaves_the_page_shows_paper_there() -> None:
    black = np.zeros((100, 100), np.uint8)
    segment = Segment(20, 20, (Piece(0, Box(-10, 90, 10, 110), Box(0, 0, 20, 20)),))
    image = cut_segment(segment, [black])
    assert (image[:9, 11:] == 0).all()
    assert (image[:, :9] == 255).all()
    assert (image[11:, :] == 255).all()
    far = Segment(5, 5, (Piece(0, Box(500, 500, 505, 505), Box(0, 0, 5, 5)),))
    assert (cut_segment(far, [black]) == 255).all()


coordinates = st.floats(-2000, 2000)
sizes = st.floats(1, 3000)


@st.composite
def segments(draw: st.DrawFn) -> Segment:
    pieces = []
    top = 0
    for page_number in range(draw(st.integers(1, 3))):
        x0, y0 = draw(coordinates), draw(coordinates)
        width_px, height_px = draw(st.integers(1, 500)), draw(st.integers(1, 200))
        on_page = Box(x0, y0, x0 + draw(sizes), y0 + draw(sizes))
        pieces.append(Piece(page_number, on_page, Box(0, top, width_px, top + height_px)))
        top += height_px
    return Segment(500, top, tuple(pieces))


@settings(deadline=None)
@given(segments(), st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=20))
def test_places_go_to_the_page_and_come_back(segment: Segment, places: list[tuple[float, float]]) -> None:
    x, y = (np.array(values) for values in zip(*places, strict=True))
    x, y = x * segment.width_px * 0.999, y * segment.height_px * 0.999
    page_number, page_x, page_y = segment.to_page(x, y)
    shown = page_number >= 0
    assert np.isnan(page_x[~shown]).all()
    back_x, back_y = segment.from_page(page_number, page_x, page_y)
    # rounding may push a place over the far edge of its piece, where nothing is shown, but never to another place
    found = shown & ~np.isnan(back_x)
    assert found.sum() >= shown.sum() - 1
    assert back_x[found] == pytest.approx(x[found], abs=1e-6)
    assert back_y[found] == pytest.approx(y[found], abs=1e-6)


def test_what_a_segment_does_not_show_is_nowhere() -> None:
    strip = system_strip(SYSTEMS, 0, space_px=10)
    assert np.isnan(strip.from_page(1, 60, 200)[0])  # another page
    assert strip.to_page(-1, 5)[0] == -1


def test_a_system_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match="there is no system 3; the score has 1"):
        system_strip(SYSTEMS, 3, space_px=10)


def test_an_empty_box_is_refused() -> None:
    with pytest.raises(InputError, match="an empty box"):
        Box(3, 0, 3, 5)
