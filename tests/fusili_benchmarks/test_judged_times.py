from __future__ import annotations

import numpy as np
import pytest

from fusili_benchmarks.judged_times import JudgedTimes, moments_of_heads
from fusili_mir.alignment.position_maps import PlaceCertainty


def test_a_head_beside_its_chord_begins_where_the_chord_is() -> None:
    middle, seconds = np.array([413.0, 413, 424, 450]), np.array([138.03, 138.01, 138.01, 138.7])
    places, begin_sec = moments_of_heads(middle, seconds, head_px=10.0)
    assert places.tolist() == [413, 450]
    assert begin_sec == pytest.approx([138.02, 138.7])


def test_heads_close_together_that_sound_one_after_another_are_two_places() -> None:
    places, begin_sec = moments_of_heads(np.array([100.0, 112]), np.array([1.0, 1.06]), head_px=10.0)
    assert places.tolist() == [100, 112]
    assert begin_sec.tolist() == [1.0, 1.06]


def test_heads_that_sound_together_far_apart_are_two_places() -> None:
    places, _ = moments_of_heads(np.array([100.0, 116]), np.array([1.0, 1.0]), head_px=10.0)
    assert places.tolist() == [100, 116]


def test_only_times_that_were_found_and_are_known_are_judged() -> None:
    found, true = np.array([1.0, 2.0, np.nan, 4.0]), np.array([1.05, np.nan, 3.0, 4.2])
    sure = PlaceCertainty(np.array([0.9, 0.8, 0.7, 0.4]), found - 0.1, found + 0.1)
    judged = JudgedTimes.of(found, sure, true, reliability=0.5)
    assert judged.said.tolist() == [0.9, 0.4]
    assert judged.if_right_piece.tolist() == [1.8, 0.8]
    assert judged.is_right.tolist() == [True, False]  # 0.05 and 0.2 s off
    assert judged.holds.tolist() == [True, False]
