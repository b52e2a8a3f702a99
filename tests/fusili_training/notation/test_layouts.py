from __future__ import annotations

from collections import Counter
from pathlib import Path

import example_scores
import numpy as np
import pytest

from fusili_mir.errors import InputError
from fusili_mir.pages.engraving import engrave
from fusili_mir.scores.score_file import ScoreFile, read_score_file
from fusili_training.notation.layouts import draw_layouts, lay_out, possible_layouts


@pytest.fixture
def song(tmp_path: Path) -> ScoreFile:
    return _read(example_scores.song(3), tmp_path)


def _read(content: str, folder: Path) -> ScoreFile:
    path = folder / "score.musicxml"
    path.write_text(content)
    return read_score_file(path)


def test_only_scores_with_both_kinds_of_parts_can_be_reduced(song: ScoreFile, tmp_path: Path) -> None:
    assert possible_layouts(song) == ("whole", "piano", "voice")
    assert possible_layouts(_read(example_scores.piano(2), tmp_path)) == ("whole",)
    with pytest.raises(InputError, match="voice"):
        lay_out(_read(example_scores.piano(2), tmp_path), "voice")


@pytest.mark.parametrize(
    ("layout", "n_staves", "n_heads"), [("whole", 3, 18), ("piano", 2, 12), ("voice", 1, 6)]
)
def test_a_layout_is_engraved_with_its_own_staves(
    song: ScoreFile, layout: str, n_staves: int, n_heads: int
) -> None:
    engraving = engrave(lay_out(song, layout).score_file)  # type: ignore[arg-type]
    assert set(engraving.systems["n_staves"]) == {n_staves}
    assert len(engraving.notes) == n_heads


def test_measures_keep_their_places_when_the_first_part_goes(song: ScoreFile) -> None:
    engraving = engrave(lay_out(song, "piano").score_file)
    assert engraving.measures["measure"].tolist() == [0, 1, 2]
    assert set(engraving.notes["measure"]) == {0, 1, 2}
    assert len(song.root.findall("part")) == 2  # the score itself is unchanged


def test_layouts_are_drawn_by_their_weights(song: ScoreFile) -> None:
    rng = np.random.default_rng(0)
    weights = {"whole": 0.0, "piano": 3.0, "voice": 1.0}
    drawn = Counter(draw_layouts(song, weights, 1, rng)[0] for _ in range(400))
    assert drawn["whole"] == 0
    assert 260 < drawn["piano"] < 340  # 300 expected, with a standard deviation of 9
    assert sorted(draw_layouts(song, weights, 3, rng)) == ["piano", "voice"]


def test_a_score_of_one_kind_is_taken_whole_whatever_the_weights(tmp_path: Path) -> None:
    piano = _read(example_scores.piano(2), tmp_path)
    assert draw_layouts(piano, {"voice": 1.0}, 1, np.random.default_rng(0)) == ["whole"]
