from __future__ import annotations

import numpy as np
import pytest
from example_performances import axis_of
from hypothesis import given
from hypothesis import strategies as st

from fusili_mir.errors import InputError
from fusili_mir.pages.score_axis import COLUMN_DTYPE, ScoreAxis


def test_the_middle_of_a_column_lies_in_that_column() -> None:
    axis = axis_of(n_columns=7, n_systems=3)
    columns = np.arange(len(axis))
    assert axis.index(*axis.centre(columns)).tolist() == columns.tolist()


@given(st.integers(0, 2), st.floats(-500, 500, allow_nan=False))
def test_a_place_goes_to_the_column_that_holds_it_or_to_the_nearest_one_of_its_system(
    system: int, x: float
) -> None:
    axis = axis_of(n_columns=7, n_systems=3)
    slow = 7 * system + min(max(int((x - 50) // 10), 0), 6)
    assert axis.index_in_system(system, x) == slow


def test_a_place_between_two_systems_goes_to_the_nearer_one() -> None:
    axis = axis_of(n_columns=2, n_systems=2)  # boxes end at y = 200 and begin at y = 300
    assert axis.index(0, 55, [240, 260]).tolist() == [0, 2]


def test_a_page_without_music_has_no_column() -> None:
    assert axis_of(3).index([0, 1], 60, 150).tolist() == [1, -1]


def test_a_system_without_columns_has_none_at_any_place() -> None:
    assert axis_of(3).index_in_system([0, 5], 60).tolist() == [1, -1]


def test_columns_out_of_reading_order_are_refused() -> None:
    columns = axis_of(3).columns
    with pytest.raises(InputError, match="reading order"):
        ScoreAxis(columns[::-1].copy())
    with pytest.raises(InputError, match="at least one row"):
        ScoreAxis(np.zeros(0, COLUMN_DTYPE))


def test_a_column_outside_the_axis_is_refused() -> None:
    with pytest.raises(InputError, match=r"column 3 is outside the score axis \(0..2\)"):
        axis_of(3).centre([0, 3])
