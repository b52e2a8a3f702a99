import threading
import time
from collections.abc import Iterator

import pytest

from fusili_mir.sessions.runs_at_once import map_at_once


@pytest.mark.parametrize("n_at_once", [1, 2, 5])
def test_results_come_in_order_however_long_each_takes(n_at_once) -> None:
    def slow(number: int) -> int:
        time.sleep(0.001 * (7 - number))
        return number * number

    assert list(map_at_once(slow, range(7), n_at_once)) == [0, 1, 4, 9, 16, 25, 36]


def test_so_many_run_at_the_same_time() -> None:
    meeting = threading.Barrier(3, timeout=10)  # opens when three are there
    assert list(map_at_once(lambda _: meeting.wait() >= 0, range(6), 3)) == 6 * [True]


def test_one_at_a_time_runs_in_the_same_thread() -> None:
    assert list(map_at_once(lambda _: threading.get_ident(), range(2), 1)) == 2 * [threading.get_ident()]


def test_items_are_not_drawn_far_ahead() -> None:
    drawn: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100):
            drawn.append(number)
            yield number

    results = map_at_once(lambda number: number, items(), 2)
    assert next(results) == 0
    assert len(drawn) <= 3


def test_an_error_is_raised_where_its_result_would_be() -> None:
    results = map_at_once(lambda number: 1 / number, (2, 0, 4, 5), 2)
    assert next(results) == 0.5
    with pytest.raises(ZeroDivisionError):
        next(results)
