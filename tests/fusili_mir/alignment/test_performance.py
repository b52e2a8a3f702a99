from __future__ import annotations

import io

import numpy as np
import partitura as pt
import pytest
from example_scores import VOLTAS, melody

from fusili_mir.alignment.performance import (
    anchors_from_alignment,
    note_alignment,
    performance_from_alignment,
    performance_from_notes,
)
from fusili_mir.errors import InputError

NOTES = np.array(
    [("a", 60, 1.0, 1.5, 0.9), ("b", 62, 0.5, 1.0, 0.8), ("c", 64, np.nan, np.nan, 0.0)],
    [("id", "U8"), ("pitch", "i4"), ("onset_sec", "f8"), ("offset_sec", "f8"), ("confidence", "f4")],
)


def load(xml: str) -> pt.score.Score:
    return pt.load_musicxml(io.BytesIO(xml.encode()), force_note_ids=True, quiet=True)


def matches(score: pt.score.Score, seconds_per_beat: float) -> list[dict[str, object]]:
    rows = score[0].note_array(include_grace_notes=True)
    return [
        {
            "label": "match",
            "score_id": str(row["id"]),
            "performance_id": f"n{row['id']}",
            "performance_time": 2.0
            + seconds_per_beat * float(row["onset_beat"])
            - 0.1 * float(row["is_grace"]),
        }
        for row in rows
    ]


def test_heard_notes_are_matches_and_the_others_deletions() -> None:
    entries = note_alignment(NOTES)
    assert [entry["label"] for entry in entries] == ["match", "match", "deletion"]
    assert entries[0] == {
        "label": "match",
        "score_id": "a",
        "performance_id": "na",
        "performance_time": 1.0,
        "confidence": pytest.approx(0.9),
    }
    assert entries[2] == {"label": "deletion", "score_id": "c"}
    assert {type(value) for entry in entries for value in entry.values()} == {str, float}


def test_the_performance_holds_the_heard_notes_in_the_order_in_which_they_begin() -> None:
    rows = performance_from_notes(NOTES).note_array()
    assert rows["id"].tolist() == ["nb", "na"]
    assert rows["onset_sec"] == pytest.approx([0.5, 1.0])
    assert rows["duration_sec"] == pytest.approx([0.5, 0.5])


def test_a_performance_follows_its_alignment() -> None:
    score = load(melody(2))
    performance = performance_from_alignment(matches(score, 0.25), score)
    rows = performance.note_array()
    assert rows["onset_sec"] == pytest.approx([2.0, 2.25, 2.5, 2.75])
    assert rows["duration_sec"] == pytest.approx([0.25] * 4)


def test_anchors_are_the_beats_and_seconds_of_onsets_without_grace_notes() -> None:
    score = load(VOLTAS)
    anchors = anchors_from_alignment(matches(score, 0.5), score)
    assert anchors.tolist() == [[-1, 1.5], [0, 2.0], [3, 3.5], [4, 4.0]]


def test_anchors_can_be_spaced_out() -> None:
    score = load(melody(4))
    assert anchors_from_alignment(matches(score, 0.5), score, spacing_beat=3)[:, 0].tolist() == [0, 3, 6]


def test_an_alignment_of_another_score_is_refused() -> None:
    alignment = [{"label": "match", "score_id": "zz", "performance_id": "nzz", "performance_time": 1.0}]
    with pytest.raises(InputError, match="1 notes of the alignment are not in the score"):
        anchors_from_alignment(alignment, load(melody(1)))


def test_an_alignment_without_matches_or_times_is_refused() -> None:
    score = load(melody(1))
    with pytest.raises(InputError, match="no matches"):
        performance_from_alignment([{"label": "deletion", "score_id": "n1"}], score)
    entry = {key: value for key, value in matches(score, 1.0)[0].items() if key != "performance_time"}
    with pytest.raises(InputError, match="performance_time"):
        performance_from_alignment([entry], score)
