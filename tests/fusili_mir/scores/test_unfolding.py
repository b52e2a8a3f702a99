from __future__ import annotations

import io

import partitura as pt
import pytest
from example_scores import VOLTAS

from fusili_mir.errors import InputError
from fusili_mir.scores.score_file import read_score_file
from fusili_mir.scores.unfolding import unfold_score, unfolded_stretches


@pytest.fixture
def voltas(tmp_path):
    (tmp_path / "voltas.musicxml").write_text(VOLTAS)
    score_file = read_score_file(tmp_path / "voltas.musicxml")
    return pt.load_musicxml(io.BytesIO(score_file.to_bytes()), quiet=True)


def heads(unfolded):
    return {note.id: note.notated_ids for note in unfolded.notes}


def test_as_notated_a_tied_note_has_two_heads_and_one_sound(voltas) -> None:
    assert heads(unfold_score(voltas, "none")) == {
        "n1": ("n1",),
        "n2": ("n2",),
        "n3": ("n3", "n4"),
        "n5": ("n5",),
        "n6": ("n6",),
    }


def test_maximally_the_repeated_measure_sounds_twice_and_the_tie_holds_in_the_first_ending(voltas) -> None:
    unfolded = unfold_score(voltas, "maximal")
    assert heads(unfolded) == {
        "n1-1": ("n1",),
        "n2-1": ("n2",),
        "n3-1": ("n3", "n4"),
        "n5-1": ("n5",),
        "n2-2": ("n2",),
        "n3-2": ("n3",),
        "n6-1": ("n6",),
    }
    notes = unfolded.score.note_array()
    onset = dict(zip(notes["id"].tolist(), notes["onset_beat"].tolist(), strict=True))
    length = dict(zip(notes["id"].tolist(), notes["duration_beat"].tolist(), strict=True))
    assert onset == {"n1-1": -1, "n2-1": 0, "n3-1": 0, "n5-1": 3, "n2-2": 4, "n3-2": 4, "n6-1": 6}
    assert (length["n3-1"], length["n3-2"]) == (3, 2)


def test_minimally_only_the_last_ending_is_played(voltas) -> None:
    assert [note.notated_ids for note in unfold_score(voltas, "minimal").notes] == [
        ("n1",),
        ("n2",),
        ("n3",),
        ("n6",),
    ]


def test_the_score_as_notated_is_left_unchanged(voltas) -> None:
    before = voltas.note_array().tolist()
    unfold_score(voltas, "maximal")
    assert voltas.note_array().tolist() == before


def test_another_way_to_unfold_is_refused(voltas) -> None:
    with pytest.raises(InputError, match="unfold is 'all', expected one of none, maximal, minimal"):
        unfold_score(voltas, "all")  # type: ignore[arg-type]


def test_a_first_ending_whose_second_has_no_length_is_played_by_those_who_repeat(tmp_path) -> None:
    before, _, after = VOLTAS.rpartition("<duration>4</duration>")
    (tmp_path / "endless.musicxml").write_text(before + after)
    score_file = read_score_file(tmp_path / "endless.musicxml")
    score = pt.load_musicxml(io.BytesIO(score_file.to_bytes()), quiet=True)
    assert unfolded_stretches(score, "maximal") == ((0, 3), (1, 2), (3, 4))


def test_stretches_of_measures_are_played_in_their_order(voltas) -> None:
    played = unfold_score(voltas, ((1, 2), (0, 1))).notes
    assert [note.id for note in played] == ["n2-1", "n3-1", "n1-1"]


def test_a_measure_beyond_the_last_one_is_refused(voltas) -> None:
    with pytest.raises(InputError, match="measure 9 is to be played; part P1 has 4 measures"):
        unfold_score(voltas, ((0, 9),))
