"""What the sync points say; `benchmarks/read_back.py` gives them to alphaTab itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fusili_mir.alignment.results import Alignment
from fusili_mir.output.alphatab_sync import sync_points


def test_each_measure_has_its_bar_its_occurrence_and_its_milliseconds(repeated: Alignment) -> None:
    starts = [point for point in sync_points(repeated) if point["barPosition"] == 0]
    assert [(point["barIndex"], point["barOccurence"]) for point in starts] == [
        (0, 0), (1, 0), (2, 0), (1, 1), (3, 0)
    ]  # fmt: skip
    seconds = [point["millisecondOffset"] / 1000 for point in starts]
    assert seconds == pytest.approx(repeated.measures["start_sec"].tolist(), abs=1e-3)


def test_times_grow_and_end_with_the_last_measure(duet: Alignment) -> None:
    points = sync_points(duet)
    times = [point["millisecondOffset"] for point in points]
    assert times == sorted(set(times))
    assert points[-1]["barPosition"] == 1
    assert times[-1] / 1000 == pytest.approx(duet.measures["end_sec"][-1], abs=1e-3)
    assert [point["barPosition"] for point in points[:4]] == [0, 0.5, 0, 0.5]  # quarters of 2/4


def test_measures_that_were_not_heard_have_no_point(cut_short: Alignment) -> None:
    heard = np.flatnonzero(np.isfinite(cut_short.measures["start_sec"]))
    assert {point["barIndex"] for point in sync_points(cut_short)} == set(heard.tolist())


def test_of_images_with_measures_the_starts_are_known(of_images: Alignment, cut_short: Alignment) -> None:
    with_measures = replace(of_images, measures=cut_short.measures)
    assert {point["barPosition"] for point in sync_points(with_measures)} == {0.0, 1.0}
