from __future__ import annotations

import io

import partitura as pt
import pytest
from example_scores import measure, note, score, song

from fusili_mir.scores.merging import merge_score
from fusili_mir.scores.unfolding import unfold_score


def load(xml: str) -> pt.score.Score:
    return pt.load_musicxml(io.BytesIO(xml.encode()), quiet=True)


def test_a_score_of_one_part_stays_as_it_is() -> None:
    one = load(score([measure(note("C5") + note("D5"), first=True)]))
    assert merge_score(one) is one


def test_every_note_of_every_part_keeps_its_id_and_its_beat() -> None:
    two = load(song(3))
    before = {
        (str(row["id"]), float(row["onset_beat"]), float(row["duration_beat"]), int(row["pitch"]))
        for part in two.parts
        for row in part.note_array()
    }
    merged = merge_score(two)
    assert len(merged.parts) == 1
    after = {
        (str(row["id"]), float(row["onset_beat"]), float(row["duration_beat"]), int(row["pitch"]))
        for row in merged.note_array()
    }
    assert after == before
    assert len(list(merged[0].iter_all(pt.score.Measure))) == 3


def test_the_score_that_was_merged_is_left_unchanged() -> None:
    two = load(song(2))
    before = [part.note_array(include_staff=True).tolist() for part in two.parts]
    merge_score(two)
    assert [part.note_array(include_staff=True).tolist() for part in two.parts] == before


def test_parts_with_different_and_with_changing_divisions_are_brought_together() -> None:
    fine = [measure(note("C5") + note("D5"), 1, first=True), measure(note("E5") + note("F5"), 2)]
    coarse = [measure(note("C4") + note("D4"), 1, first=True), measure(note("E4") + note("F4"), 2)]
    # from its second measure on, the lower part has 4 divisions per quarter instead of 2
    coarse[1] = coarse[1].replace(
        "<measure number='2'>", "<measure number='2'><attributes><divisions>4</divisions></attributes>"
    )
    coarse[1] = coarse[1].replace("<duration>2</duration>", "<duration>4</duration>")
    notes = merge_score(load(score(fine, coarse))).note_array()
    assert sorted(zip(notes["onset_beat"].tolist(), notes["pitch"].tolist(), strict=True)) == [
        (0, 60), (0, 72), (1, 62), (1, 74), (2, 64), (2, 76), (3, 65), (3, 77)
    ]  # fmt: skip


def test_staves_and_voices_of_parts_do_not_mix() -> None:
    notes = merge_score(load(song(1))).note_array(include_staff=True)
    staff_of = dict(zip(notes["pitch"].tolist(), notes["staff"].tolist(), strict=True))
    assert [staff_of[pitch] for pitch in (69, 79, 48)] == [1, 2, 3]  # voice, right hand, left hand
    assert len(set(notes["voice"])) == 3


def test_ties_hold_within_the_merged_part() -> None:
    tied = [
        measure(note("C5", "half", "<tie type='start'/>"), 1, first=True),
        measure(note("C5", "half", "<tie type='stop'/>"), 2),
    ]
    plain = [measure(note("E4", "half"), 1, first=True), measure(note("F4", "half"), 2)]
    notes = merge_score(load(score(tied, plain))).note_array()
    assert notes["duration_beat"][notes["pitch"] == 72].tolist() == [pytest.approx(4)]


def test_slurs_that_a_repeat_cuts_do_not_keep_parts_from_being_merged() -> None:
    slur = "<notations><slur type='{}' number='1'/></notations></note>"
    start, stop = (
        note(pitch).replace("</note>", slur.format(kind)) for pitch, kind in (("C5", "start"), ("D5", "stop"))
    )
    begin = "<barline location='left'><repeat direction='forward'/></barline>"
    end = "<barline location='right'><repeat direction='backward'/></barline>"
    bars = [
        measure(note("E5") + start, 1, first=True),
        measure(begin + stop + note("F5") + end, 2),
        measure(note("G5") + note("A5"), 3),
    ]
    two = load(score(bars, bars))
    for index, part in enumerate(two.parts):
        for number, one in enumerate(part.notes):
            one.id = f"p{index}n{number}"
    for unfold in ("maximal", "minimal"):
        merged = merge_score(unfold_score(two, unfold).score)
        assert len(merged.note_array()) == {"maximal": 16, "minimal": 12}[unfold]
