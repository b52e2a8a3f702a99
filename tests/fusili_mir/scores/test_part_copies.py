from __future__ import annotations

import io

import partitura as pt
from example_scores import VOLTAS
from partitura import score as ps

from fusili_mir.scores.part_copies import copy_elements, copy_part


def voltas() -> ps.Part:
    score = pt.load_musicxml(io.BytesIO(VOLTAS.encode()), quiet=True)
    ps.assign_note_ids(score.parts)
    return score.parts[0]


def test_a_copy_has_the_same_notes_ties_repeats_and_measures() -> None:
    part = voltas()
    copied = copy_part(part, "other")
    assert copied.id == "other"
    assert (copied.note_array(include_grace_notes=True) == part.note_array(include_grace_notes=True)).all()
    for kind in (ps.Measure, ps.Repeat, ps.Ending, ps.GraceNote):
        own, theirs = (
            [(e.start.t, e.end and e.end.t) for e in each.iter_all(kind)] for each in (copied, part)
        )
        assert own == theirs
    tied = next(note for note in copied.notes if note.tie_next is not None)
    assert tied.tie_next in copied.notes


def test_changing_a_copy_leaves_the_original_as_it_was() -> None:
    part = voltas()
    before = part.note_array()
    copied = copy_part(part, "other")
    for note in copied.notes:
        note.id = "changed"
        copied.remove(note)
    assert (part.note_array() == before).all()
    assert all(note.start is not None for note in part.notes)


def test_references_to_what_is_skipped_are_dropped() -> None:
    part = voltas()
    target = ps.Part("P1", quarter_duration=2)
    copies = copy_elements(part, target, int, skipped=(ps.GraceNote, ps.Measure))
    assert not list(target.iter_all(ps.Measure))
    assert not [copied for copied in copies if isinstance(copied, ps.GraceNote)]
    assert len(target.notes) == len(part.notes) - 1
