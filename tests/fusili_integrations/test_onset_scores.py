from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fusili_integrations.onset_scores import reference_onsets, score_onsets
from fusili_mir.errors import InputError


def match(score_id: str, seconds: float) -> dict[str, object]:
    return {
        "label": "match",
        "score_id": score_id,
        "performance_id": f"n{score_id}",
        "performance_time": seconds,
    }


def test_errors_are_counted_by_tolerance_and_agree_with_mir_eval() -> None:
    alignment: list[dict[str, Any]] = [
        match("a", 1.0),
        match("b", 2.03),
        match("c", 2.9),
        match("d", 4.6),
        {"label": "deletion", "score_id": "e"},
    ]
    scores = score_onsets(alignment, {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0, "e": 5.0})
    assert scores.n_onsets == 4
    assert scores.median_sec == pytest.approx((0.03 + 0.1) / 2)
    assert scores.within == {25: 0.25, 50: 0.5, 100: 0.75, 250: 0.75, 500: 0.75, 1000: 1.0}
    assert scores.mir_eval["mae"] == pytest.approx(scores.median_sec)
    assert scores.mir_eval["pc"] == 0.75  # within 0.3 s


def test_nothing_in_common_is_refused() -> None:
    with pytest.raises(InputError, match="no note in common"):
        score_onsets([match("a", 1.0)], {"b": 1.0})


def test_a_missing_reference_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not found"):
        reference_onsets(tmp_path / "none.match")
