from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusili_mir.arrays import Table
from fusili_mir.boxes import MEASURE_DTYPE, STAFF_DTYPE, SYSTEM_DTYPE
from fusili_training.rendering.render_recipe import SegmentOptions
from fusili_training.rendering.segment_spans import Span, list_spans, segment_of


def _systems(n: int, width: float) -> Table:
    return np.array(
        [(0, s, 1, 10, 100 + 200 * s, 10 + width, 140 + 200 * s, 10) for s in range(n)], SYSTEM_DTYPE
    )


def _staves(systems: Table) -> Table:
    return np.array([(*row.item()[:2], 0, *row.item()[3:]) for row in systems], STAFF_DTYPE)


def _measures(systems: Table, widths: list[float]) -> Table:
    """Each system has measures of these widths."""
    rows: list[tuple] = []
    for system in systems:
        x = float(system["x0"])
        for width in widths:
            rows.append((len(rows), "", 0, system["system"], x, system["y0"], x + width, system["y1"]))
            x += width
    return np.array(rows, MEASURE_DTYPE)


def test_a_narrow_system_is_one_strip_and_a_wide_one_is_cut_at_measures() -> None:
    systems = _systems(2, 400)
    measures = _measures(systems, [100, 100, 100, 100])
    at_full_size = SegmentOptions(space_px=10, max_width_px=400)
    assert list_spans(systems, measures, at_full_size) == [Span(0, 3), Span(4, 7)]
    narrower = SegmentOptions(space_px=10, max_width_px=250)
    assert list_spans(systems, measures, narrower) == [Span(0, 1), Span(2, 3), Span(4, 5), Span(6, 7)]


@given(
    st.lists(st.floats(20, 300), min_size=1, max_size=12),
    st.integers(100, 900),
)
def test_strips_cover_each_measure_once_and_are_too_wide_only_alone(
    widths: list[float], limit_px: int
) -> None:
    systems = _systems(1, sum(widths))
    measures = _measures(systems, widths)
    spans = list_spans(systems, measures, SegmentOptions(space_px=10, max_width_px=limit_px))
    assert [m for span in spans for m in range(span.first, span.last + 1)] == list(range(len(widths)))
    for span in spans:
        assert sum(widths[span.first : span.last + 1]) <= limit_px + 0.1 or span.first == span.last


def test_squares_overlap_by_half_and_a_short_piece_has_one() -> None:
    options = SegmentOptions(shape="square", n_measures=8, hop_measures=4)
    systems = _systems(4, 400)
    measures = _measures(systems, [100] * 4)
    assert list_spans(systems, measures, options) == [Span(0, 7), Span(4, 11), Span(8, 15)]
    assert list_spans(systems, measures[:3], options) == [Span(0, 2)]


def test_a_strip_within_a_system_begins_and_ends_at_its_measures() -> None:
    systems = _systems(1, 440)
    measures = _measures(systems, [100, 100, 100, 100])  # 40 px after the last measure
    options = SegmentOptions(space_px=10, max_width_px=500)
    segment = segment_of(Span(1, 2), systems, _staves(systems), measures, options)
    assert segment is not None
    assert (segment.pieces[0].on_page.x0, segment.pieces[0].on_page.x1) == (110, 310)
    last = segment_of(Span(2, 3), systems, _staves(systems), measures, options)
    assert last is not None
    assert last.pieces[0].on_page.x1 == 450


def test_measures_of_two_lines_make_no_strip() -> None:
    systems = _systems(2, 200)
    measures = _measures(systems, [100, 100])
    assert segment_of(Span(1, 2), systems, _staves(systems), measures, SegmentOptions()) is None
    assert (
        segment_of(Span(3, 4), systems, _staves(systems), measures, SegmentOptions()) is None
    )  # not engraved
    square = segment_of(Span(1, 2), systems, _staves(systems), measures, SegmentOptions(shape="square"))
    assert square is not None
    assert len(square.pieces) == 2
    assert square.width_px == pytest.approx(224)
