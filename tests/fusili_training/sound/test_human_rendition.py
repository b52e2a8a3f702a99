from __future__ import annotations

from pathlib import Path

import example_scores
import numpy as np
import pytest

from fusili_mir.errors import InputError
from fusili_mir.scores.score_file import read_score_file
from fusili_training.sound.human_rendition import follow_performance
from fusili_training.sound.notes import PERFORMED_DTYPE
from fusili_training.sound.sounding_score import SoundingScore, read_sounding_score


@pytest.fixture
def score(tmp_path: Path) -> SoundingScore:
    path = tmp_path / "tune.musicxml"
    path.write_text(example_scores.melody(2))  # n1 n2 | n3 n4, one quarter each
    return read_sounding_score(read_score_file(path))


def _performed(*rows: tuple[str, int, float]) -> np.ndarray:
    return np.array([(i, pitch, sec, 0.5, 0.5, 64, 0) for i, pitch, sec in rows], PERFORMED_DTYPE)


def test_left_out_notes_are_gone_and_added_notes_have_a_place_but_no_head(score: SoundingScore) -> None:
    played = follow_performance(
        score, _performed(("n1", 72, 1.0), ("", 61, 1.5), ("n3", 76, 3.0), ("n4", 77, 4.0))
    )
    assert played.score.notes["id"].tolist() == ["n1", "n3", "n4", ""]
    assert played.performed["onset_sec"].tolist() == [1.0, 3.0, 4.0, 1.5]
    assert played.score.notes["onset_quarter"].tolist() == [0, 2, 3, 0.5]
    heads = played.score.heads
    assert heads["id"].tolist() == ["n1", "n3", "n4"]
    assert played.score.notes["id"][heads["note"]].tolist() == ["n1", "n3", "n4"]


def test_another_piece_is_refused(score: SoundingScore) -> None:
    with pytest.raises(InputError, match="another piece"):
        follow_performance(score, _performed(("x", 60, 0.0)))
