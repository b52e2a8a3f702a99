"""Damaged scores that once ended with a traceback, shrunk to what it takes; found by benchmarks/fuzz.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusili_mir.errors import InputError
from fusili_mir.pages.pages import render_pages

HOSTILE = {
    "kern-without-lengths.krn": b"**kern\t**kern\n*\tD\n=\t=",  # a part without any time
    "abc-half-a-character.abc": b"X:1\nT\xed\nK:C",  # Verovio answers with half a character
}


@pytest.mark.filterwarnings("ignore::fusili_mir.scores.score_warning.ScoreWarning")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_score_that_once_ended_with_a_traceback_is_one_line(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(HOSTILE[name])
    with pytest.raises(InputError) as refused:
        render_pages(tmp_path / name)
    assert "\n" not in str(refused.value)
