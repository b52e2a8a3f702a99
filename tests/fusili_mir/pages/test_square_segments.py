from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusili_mir.arrays import Table
from fusili_mir.boxes import MEASURE_DTYPE, SYSTEM_DTYPE
from fusili_mir.errors import InputError
from fusili_mir.pages.segments import Box, cut_segment
from fusili_mir.pages.square_segments import square_segment

# Two systems on one page and one on the next, two measures each; clef and key take the first 50 px.
SYSTEMS = np.array(
    [
        (0, 0, 1, 20, 100, 420, 140, 10),
        (0, 1, 1, 20, 300, 420, 340, 10),
        (1, 2, 1, 20, 100, 420, 140, 10),
    ],
    SYSTEM_DTYPE,
)


def _measures() -> Table:
    rows: list[tuple] = []
    for system in SYSTEMS:
        for x0, x1 in ((70, 245), (245, 420)):
            rows.append((len(rows), "", system["page"], system["system"], x0, system["y0"], x1, system["y1"]))
    return np.array(rows, MEASURE_DTYPE)


def test_lines_are_stacked_at_one_scale_in_the_middle() -> None:
    segment = square_segment(SYSTEMS, _measures(), 0, 3, side_px=200, margin_spaces=3)
    assert (segment.width_px, segment.height_px) == (200, 200)
    first, second = segment.pieces
    # 400 px wide with clef and key: scale 1/2; 100 px high with margins
    assert first.in_segment == Box(0, 50, 200, 100)
    assert (second.in_segment.y0, second.in_segment.y1) == (100, 150)
    assert (first.on_page.y0, second.on_page.y0) == (70, 270)


def test_a_span_that_begins_within_a_line_leaves_out_the_measures_before_it() -> None:
    segment = square_segment(SYSTEMS, _measures(), 1, 2, side_px=200)
    assert segment.pieces[0].on_page.x0 == 245
    assert segment.pieces[1].on_page.x0 == 20


def test_high_music_is_scaled_by_its_height() -> None:
    segment = square_segment(SYSTEMS, _measures(), 1, 5, side_px=100)
    assert segment.pieces[-1].in_segment.y1 <= 100
    assert [piece.page for piece in segment.pieces] == [0, 0, 1]


@given(st.integers(0, 5), st.integers(0, 5), st.integers(40, 300))
def test_places_map_to_the_page_and_back(first: int, last: int, side_px: int) -> None:
    first, last = sorted((first, last))
    segment = square_segment(SYSTEMS, _measures(), first, last, side_px)
    for piece in segment.pieces:
        box = piece.in_segment
        x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
        page, page_x, page_y = segment.to_page(x, y)
        assert page == piece.page
        assert segment.from_page(page, page_x, page_y) == pytest.approx((x, y))
        scale = [
            (b.x1 - b.x0) / (p.x1 - p.x0) for q in segment.pieces for b, p in [(q.in_segment, q.on_page)]
        ]
        assert np.ptp(scale) < 1e-9


def test_the_image_shows_the_measures() -> None:
    page = np.full((400, 500), 255, np.uint8)
    page[100:141, 245:420] = 0  # measure 1
    segment = square_segment(SYSTEMS, _measures(), 1, 1, side_px=175, margin_spaces=3)
    image = cut_segment(segment, [page, page])
    top = (175 - 100) // 2  # 40 px of staff with margins of 30, in the middle
    assert image[top + 32 : top + 70, 2:173].max() == 0
    assert image[: top + 28].min() == 255
    assert image[top + 73 :].min() == 255


def test_narrow_music_has_as_much_paper_on_the_left_as_on_the_right() -> None:
    high = SYSTEMS.copy()
    high["y0"] -= 80
    segment = square_segment(high, _measures(), 1, 1, side_px=100)  # 175 px wide, 180 px high
    (box,) = [piece.in_segment for piece in segment.pieces]
    assert (box.y0, box.y1) == (0, 100)
    assert abs(box.x0 - (100 - box.x1)) <= 1
    assert box.x0 > 0


def test_measures_that_are_not_there_are_refused() -> None:
    with pytest.raises(InputError, match="no measures 8 to 9"):
        square_segment(SYSTEMS, _measures(), 8, 9)
