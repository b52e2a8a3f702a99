"""How long the music stays on the columns of page images: a system of 24 columns of 10 px, worked out by hand."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from fusili_mir.alignment.column_order import column_lengths, measure_columns
from fusili_mir.boxes import MEASURE_DTYPE
from fusili_mir.pages.score_axis import COLUMN_DTYPE, ScoreAxis

AXIS = ScoreAxis(
    np.array([(0, 0, 10 * column, 0, 10 * column + 10, 40) for column in range(24)], COLUMN_DTYPE)
)


def pages_with_measures(*edges: float):
    rows = [
        (number, str(number + 1), 0, 0, first, 0, stop, 40)
        for number, (first, stop) in enumerate(itertools.pairwise(edges))
    ]
    return SimpleNamespace(measures=np.array(rows, MEASURE_DTYPE))


def test_measures_begin_with_the_column_of_their_bar_line() -> None:
    assert measure_columns(pages_with_measures(0, 80, 120, 240), AXIS).tolist() == [0, 8, 12, 24]


def test_columns_of_wide_measures_are_passed_faster() -> None:
    lengths = column_lengths(pages_with_measures(0, 80, 120, 240), AXIS)
    assert lengths[:8] == pytest.approx(1.0)  # the usual width
    assert lengths[8:12] == pytest.approx(np.sqrt(8 / 4))
    assert lengths[12:] == pytest.approx(np.sqrt(8 / 12))


def test_a_very_wide_measure_counts_as_several() -> None:
    lengths = column_lengths(pages_with_measures(0, 20, 40, 60, 240), AXIS)
    assert lengths[6:] == pytest.approx(np.sqrt(1 / 2.5))


def test_without_measures_all_columns_are_alike() -> None:
    assert set(column_lengths(pages_with_measures(0), AXIS).tolist()) == {1.0}
