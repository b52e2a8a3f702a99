from __future__ import annotations

import numpy as np
import pytest

from fusili_mir.errors import InputError
from fusili_training.sound.notes import PERFORMED_DTYPE, SCORE_NOTE_DTYPE
from fusili_training.sound.score_clock import ScoreClock, read_score_clock


def _clock(rows: list[tuple[float, float, int]]) -> ScoreClock:
    notes = np.zeros(len(rows), SCORE_NOTE_DTYPE)
    performed = np.zeros(len(rows), PERFORMED_DTYPE)
    notes["onset_quarter"], performed["onset_sec"], notes["grace"] = zip(*rows, strict=True)
    return read_score_clock(notes, performed)


def test_a_chord_counts_with_its_mean_and_grace_notes_do_not() -> None:
    clock = _clock([(0, 1.0, 0), (0, 1.2, 0), (2, 3.1, 0), (2, 2.5, 1)])
    assert clock.seconds([0, 1, 2]).tolist() == pytest.approx([1.1, 2.1, 3.1])


def test_outside_of_the_notes_time_runs_on_at_the_mean_pace() -> None:
    clock = _clock([(0, 0.0, 0), (1, 2.0, 0), (4, 4.0, 0)])  # one second per quarter on average
    assert clock.seconds([-1, 6]).tolist() == pytest.approx([-1.0, 6.0])


def test_the_clock_never_runs_back() -> None:
    clock = _clock([(0, 0.0, 0), (1, 1.0, 0), (2, 0.9, 0), (3, 2.0, 0)])
    assert np.all(np.diff(clock.seconds(np.linspace(-1, 4, 101))) >= 0)


def test_grace_notes_alone_have_no_clock() -> None:
    with pytest.raises(InputError, match="grace"):
        _clock([(0, 0.0, 1)])
