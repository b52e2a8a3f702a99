from __future__ import annotations

import numpy as np
import pytest

from fusili_mir.decoding.stop_pins import StopPin, Stretch, stretches_between
from fusili_mir.errors import InputError


def test_without_pins_there_is_one_stretch() -> None:
    assert stretches_between([], 5) == [Stretch(0, 5)]


def test_pins_cut_a_course_in_their_order_in_the_music() -> None:
    late, early = StopPin(6, 9.0), StopPin(2, 3.0, is_onset=False)
    assert stretches_between([late, early], 8) == [
        Stretch(0, 2, -np.inf, 3.0, False, False),
        Stretch(2, 6, 3.0, 9.0, False, True),
        Stretch(6, 8, 9.0, np.inf, True, False),
    ]


def test_a_pin_on_the_first_stop_leaves_nothing_before_it() -> None:
    assert stretches_between([StopPin(0, 1.0)], 3) == [Stretch(0, 3, 1.0, np.inf, True, False)]


def test_pins_against_the_order_of_the_music_are_refused() -> None:
    pins = [StopPin(2, 5.0, name="measure 3"), StopPin(4, 4.5, name="measure 5")]
    with pytest.raises(InputError, match=r"measure 3 is anchored at 5 s, measure 5 at 4\.5 s, but it"):
        stretches_between(pins, 8)


def test_two_pins_on_one_stop_are_refused() -> None:
    pins = [StopPin(2, 5.0, name="measure 3"), StopPin(2, 5.5, name="note n7")]
    with pytest.raises(InputError, match="but they begin together; expected one anchor"):
        stretches_between(pins, 8)
