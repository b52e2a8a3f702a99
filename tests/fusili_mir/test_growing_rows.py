from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from fusili_mir.growing_rows import GrowingRows


@pytest.mark.parametrize("n_expected", [0, 3, 10, 100])
def test_rows_come_out_in_the_order_in_which_they_went_in(n_expected: int) -> None:
    rows = GrowingRows(np.float32, (2,), n_expected)
    expected = np.zeros((10, 2), np.float32)
    expected[:3], expected[7:] = 1.5, np.arange(6).reshape(3, 2)
    rows.add(expected[:3])
    rows.pass_over(3)
    rows.add_sparse(expected[6:7])
    rows.add_sparse(expected[7:])
    assert len(rows) == 10
    np.testing.assert_array_equal(rows.array(), expected)


def test_rows_are_converted_to_the_type_that_was_asked_for() -> None:
    rows = GrowingRows(np.float16, n_expected=1)
    rows.add(np.array([0.1, 0.2], np.float32))
    assert rows.array().tolist() == np.array([0.1, 0.2], np.float16).tolist()


def test_no_rows_are_an_empty_array_of_the_right_shape() -> None:
    assert GrowingRows(np.float32, (4,), 7).array().shape == (0, 4)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_rows_that_are_passed_over_take_no_memory() -> None:
    rows = GrowingRows(np.float32, (128,), n_expected=2**20)  # half a gigabyte
    before_mb = resident_mb()
    rows.pass_over(2**20 - 1)
    rows.add(np.ones((1, 128), np.float32))
    assert rows.array()[-1, -1] == 1.0
    assert resident_mb() - before_mb < 50


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20
