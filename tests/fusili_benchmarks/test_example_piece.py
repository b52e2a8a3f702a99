from __future__ import annotations

import numpy as np
import pytest

from fusili_benchmarks.example_piece import engrave_example, example_truth, perform_example
from fusili_mir.demo.example import load_example
from fusili_mir.pages.pages import Pages


@pytest.fixture(scope="module")
def pages() -> Pages:
    return engrave_example(load_example().score)


def test_the_truth_in_the_package_can_be_made_again(pages: Pages) -> None:
    stored, made = load_example().truth, example_truth(pages, perform_example(pages))
    assert made["id"].tolist() == stored["id"].tolist()
    assert np.abs(made["onset_sec"] - stored["onset_sec"]).max() < 1e-4
    assert max(np.abs(made[axis] - stored[axis]).max() for axis in "xy") < 1


def test_everything_but_the_first_ending_is_played_once(pages: Pages) -> None:
    played = set(perform_example(pages)["id"].tolist())
    (first_ending,) = pages.measures[pages.measures["number"] == "18"]
    left_out = {str(note["id"]) for note in pages.notes if note["measure"] == first_ending["measure"]}
    assert len(left_out) == 7
    assert played == {str(note["id"]) for note in pages.notes} - left_out


def test_the_second_ending_follows_without_a_gap(pages: Pages) -> None:
    played = perform_example(pages)
    onsets_sec = np.sort(played["onset_sec"])
    assert onsets_sec[0] == pytest.approx(0.8)
    assert np.diff(onsets_sec).max() < 2.0
