from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fusili_mir.arrays import GreyImage
from fusili_mir.boxes import STAFF_DTYPE, SYSTEM_DTYPE
from fusili_mir.errors import InputError
from fusili_mir.model import score_segments
from fusili_mir.model.manifest import ImageSpec
from fusili_mir.model.score_segments import ScoreSegment, cut_image, halve_systems, segment_pages
from fusili_mir.pages.pages import PageImages, Pages

STRIPS = ImageSpec(
    "i.onnx",
    "",
    "x",
    "l",
    "g",
    "staff_strips",
    None,
    128,
    8.0,
    6.0,
    rows=1,
    patch_width_px=4,
    patch_height_px=128,
)
SQUARES = ImageSpec(
    "i.onnx", "", "x", "l", "g", "square", 224, 224, None, None, rows=7, patch_width_px=32, patch_height_px=32
)


class OnePage:
    """A page image in memory."""

    def __init__(self, image: GreyImage) -> None:
        self.image = image

    def read(self) -> GreyImage:
        return self.image


def pages_with(*systems: tuple[float, float, float, int, float], image: GreyImage | None = None) -> Pages:
    """Pages with systems of (x0, y0, width, number of staves, space), their staves 8 spaces apart."""
    system_rows, staff_rows = [], []
    for number, (x0, y0, width, n_staves, space) in enumerate(systems):
        y1 = y0 + (4 * n_staves + 8 * (n_staves - 1)) * space
        system_rows.append((0, number, n_staves, x0, y0, x0 + width, y1, space))
        for staff in range(n_staves):
            top = y0 + 12 * staff * space
            staff_rows.append((0, number, staff, x0, top, x0 + width, top + 4 * space, space))
    page = image if image is not None else np.full((600, 800), 255, np.uint8)
    return Pages(
        "test.png",
        PageImages([OnePage(page)]),
        np.array(system_rows, SYSTEM_DTYPE),
        np.array(staff_rows, STAFF_DTYPE),
    )


def check_columns(pages: Pages, segments: tuple[ScoreSegment, ...], spec: ImageSpec) -> None:
    """Every place of a system is covered by one column, and the column is where its patch is."""
    for system in pages.systems:
        mine = [s for s in segments if s.columns["system"][0] == system["system"]]
        columns = np.concatenate([segment.columns for segment in mine])
        assert columns["x0"][0] == pytest.approx(system["x0"], abs=1e-3)
        assert columns["x0"][1:] == pytest.approx(columns["x1"][:-1], abs=1e-2)
        assert columns["x1"][-1] >= system["x1"] - 1e-2
        assert columns["x0"][-1] < system["x1"]
        assert set(columns["page"].tolist()) == {0}
        for segment in mine:
            inside = segment.keep_from + np.arange(len(segment.columns)) + 0.5
            centre_x = (segment.columns["x0"] + segment.columns["x1"]) / 2
            staff_y = system["y0"] + 2 * system["space_px"]
            x, _ = segment.segment.from_page(0, centre_x, np.full(len(centre_x), staff_y))
            assert x == pytest.approx(inside * spec.patch_width_px, abs=0.05)
            assert segment.segment.width_px % spec.patch_width_px == 0


systems = st.lists(
    st.tuples(
        st.floats(0, 300), st.floats(20, 500), st.floats(5, 8_000), st.integers(1, 5), st.floats(4, 30)
    ),
    min_size=1,
    max_size=3,
)


@settings(deadline=None, max_examples=40)
@example([(68.07879159637397, 20, 60, 1, 4)], STRIPS)  # 60.000008 px wide in float32
@given(
    systems, st.sampled_from([STRIPS, SQUARES, replace(STRIPS, width_px=400), replace(SQUARES, space_px=3.0)])
)
def test_each_place_of_a_system_is_covered_by_one_column(layout: list, spec: ImageSpec) -> None:
    pages = pages_with(*layout)
    check_columns(pages, segment_pages(pages, spec), spec)


def test_a_system_is_one_segment_of_staff_strips() -> None:
    pages = pages_with((50, 100, 400, 2, 10))
    (segment,) = segment_pages(pages, STRIPS)
    assert (segment.n_strips, segment.keep_from, len(segment.columns)) == (2, 0, 80)  # 400 px at 8/10, by 4
    assert (segment.segment.width_px, segment.segment.height_px) == (320, 256)
    assert segment.columns[0].tolist() == (0, 0, 50.0, 100.0, 55.0, 260.0)


def test_a_system_too_wide_for_one_segment_is_divided_at_the_middle_of_the_overlaps(monkeypatch) -> None:
    monkeypatch.setattr(score_segments, "_MAX_COLUMNS", 40)
    pages = pages_with((0, 100, 500, 1, 10))  # 100 columns
    segments = segment_pages(pages, STRIPS)
    assert [round(s.columns["x0"][0] / 5) for s in segments] == [0, 30, 50, 70]
    assert [len(s.columns) for s in segments] == [30, 20, 20, 30]
    assert [s.keep_from for s in segments] == [0, 10, 10, 10]


def test_the_last_of_several_segments_ends_with_the_system(monkeypatch) -> None:
    monkeypatch.setattr(score_segments, "_MAX_COLUMNS", 40)
    segments = segment_pages(pages_with((0, 100, 225, 1, 10)), STRIPS)  # 45 columns: 0-40 and 5-45
    assert [s.segment.width_px for s in segments] == [160, 160]
    assert [len(s.columns) for s in segments] == [22, 23]


def test_a_printed_system_fills_the_width_of_a_square() -> None:
    (segment,) = segment_pages(pages_with((50, 100, 448, 1, 10)), SQUARES)
    (piece,) = segment.segment.pieces
    # the staff and 3 spaces above and below are 100 px of the page, at half size
    assert (piece.on_page.x0, piece.on_page.y0, piece.on_page.x1, piece.on_page.y1) == (50, 70, 498, 170)
    assert (piece.in_segment.x1, piece.in_segment.y0, piece.in_segment.y1) == (224, 87, 137)
    assert segment.rows_shown.tolist() == [False, False, True, True, True, False, False]
    assert len(segment.columns) == 7


def test_a_high_system_fills_the_height_of_a_square() -> None:
    segments = segment_pages(pages_with((50, 100, 400, 5, 10)), SQUARES)  # 52 + 6 spaces high, 40 wide
    (piece,) = segments[0].segment.pieces
    assert (piece.on_page.y0, piece.on_page.y1) == (70, 70 + 580)
    assert piece.in_segment.y1 == 224
    assert segments[0].rows_shown.all()
    assert [len(segment.columns) for segment in segments] == [5]  # 400 px are 154 px, 32 per column


def test_an_endless_system_is_shown_in_parts_of_the_size_of_printed_ones() -> None:
    segments = segment_pages(pages_with((0, 100, 3600, 1, 10)), SQUARES)  # three times 120 spaces
    assert sum(len(segment.columns) for segment in segments) == 21
    assert [segment.segment.width_px for segment in segments] == [224] * 5  # 7 columns, overlapping by 3


def test_a_requested_staff_size_decides_what_a_square_shows() -> None:
    image = np.zeros((600, 800), np.uint8)  # ink everywhere
    pages = pages_with((50, 200, 640, 1, 10), image=image)
    segments = segment_pages(pages, replace(SQUARES, space_px=4.0))  # 256 px, 8 columns
    shown = cut_image(segments[0], pages.images)
    assert shown.shape == (1, 224, 224)
    assert (shown[0, 92:132] == 0).all()  # 10 spaces of 4 px, in the middle
    assert (shown[0, :92] == 1).all()  # paper, not the systems above and below
    assert (shown[0, 132:] == 1).all()
    assert [len(segment.columns) for segment in segments] == [4, 4]


def test_an_image_is_one_at_paper_and_zero_at_ink_staff_by_staff() -> None:
    image = np.full((600, 800), 255, np.uint8)
    image[260:300] = 0  # about the second staff
    pages = pages_with((50, 140, 400, 2, 10), image=image)
    (segment,) = segment_pages(pages, STRIPS)
    cut = cut_image(segment, pages.images)
    assert (cut.shape, cut.dtype) == ((2, 128, 320), np.float32)
    assert (cut[1, 50:78] == 0).all()
    assert (cut[0, :100] == 1).all()
    assert cut[1, 20].tolist() == [1.0] * 320


def test_pages_without_systems_are_refused() -> None:
    with pytest.raises(InputError, match=r"test.png: no systems on its pages"):
        segment_pages(replace(pages_with((0, 0, 10, 1, 5)), systems=np.empty(0, SYSTEM_DTYPE)), STRIPS)


def test_the_halves_of_a_system_overlap_by_half_and_reach_both_ends() -> None:
    pages, spec = pages_with((20, 50, 700, 2, 8.0), (20, 300, 700, 2, 8.0)), STRIPS
    whole, second = segment_pages(pages, spec)
    left, middle, right, *others = halve_systems(pages, spec)
    assert left.columns["x0"][0] == whole.columns["x0"][0]
    assert abs(right.columns["x1"][-1] - whole.columns["x1"][-1]) < 1e-3
    assert abs(len(left.columns) - len(whole.columns) / 2) <= 2
    assert np.intersect1d(left.columns["x0"], middle.columns["x0"]).size == len(left.columns) // 2
    assert [int(each.columns["system"][0]) for each in others] == [int(second.columns["system"][0])] * 3
    assert halve_systems(pages, SQUARES) == ()
