from __future__ import annotations

import pickle

from example_scores import melody

from fusili_mir.scores.packed_score import PackedScore
from fusili_mir.scores.score_file import parse_score


def test_a_score_that_was_put_away_comes_back_as_it_was() -> None:
    given = parse_score(melody(40).encode(), "tune.musicxml")
    packed = PackedScore.of(given)
    back = packed.unpack()
    assert (back.filename, back.kind, back.to_bytes()) == ("tune.musicxml", "musicxml", given.to_bytes())
    assert len(packed.packed) < len(given.to_bytes()) / 5


def test_changing_what_was_unpacked_changes_nothing_that_is_unpacked_later() -> None:
    packed = PackedScore.of(parse_score(melody(2).encode(), "tune.musicxml"))
    packed.unpack().root.clear()
    assert list(packed.unpack().notes())


def test_a_score_that_was_put_away_can_be_sent_to_another_process() -> None:
    packed = PackedScore.of(parse_score(melody(2).encode(), "tune.musicxml"))
    assert pickle.loads(pickle.dumps(packed)) == packed
