"""Scores that partitura wrote come back with the same notes, engraved on the right staves."""

from __future__ import annotations

import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import partitura as pt
from example_parts import random_scores
from hypothesis import HealthCheck, given, settings
from partitura import score as ps

from fusili_mir.pages.engraving import EngravingOptions
from fusili_mir.pages.pages import Pages, render_pages
from fusili_mir.scores.score_warning import ScoreWarning

ON_ONE_LINE = EngravingOptions(breaks="none")
few_examples = settings(
    max_examples=20, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


def engrave(source: Path | ps.Score) -> Pages:
    """Engrave without a word of warning: what partitura writes is in order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", ScoreWarning)
        return render_pages(source, ON_ONE_LINE)


def staves_of(part: ps.Part) -> int:
    notes = part.iter_all(ps.GenericNote, include_subclasses=True)
    return max([1, *(note.staff or 1 for note in notes), *(clef.staff for clef in part.iter_all(ps.Clef))])


def check_places(pages: Pages, score: ps.Score) -> None:
    """Check that exactly the notes of a score have heads, in their measures and on their staves."""
    heads = {str(row["notated_id"]): row for row in pages.notes}
    assert heads.keys() == {note.id for part in score.parts for note in part.notes}
    above = 0
    for part in score.parts:
        starts = [measure.start.t for measure in part.iter_all(ps.Measure)]
        for note in part.notes:
            head = heads[note.id]
            assert head["staff"] == above + (note.staff or 1) - 1
            assert head["measure"] == np.searchsorted(starts, note.start.t, "right") - 1
        above += staves_of(part)
    assert pages.systems["n_staves"].tolist() == [above]


def sounding(score: ps.Score) -> list[tuple[str, float, float, int]]:
    return sorted(
        (
            str(row["id"]),
            round(float(row["onset_quarter"]), 4),
            round(float(row["duration_quarter"]), 4),
            int(row["pitch"]),
        )
        for part in score.parts
        for row in part.note_array(include_grace_notes=True)
    )


@few_examples
@given(random_scores())
def test_what_save_musicxml_writes_is_engraved_on_the_right_staves(score: ps.Score) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "score.musicxml"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pt.save_musicxml(score, str(file))
            reference = pt.load_score(str(file), quiet=True)
        pages = engrave(file)
    check_places(pages, reference)
    assert pages.score is not None
    assert sounding(pages.score) == sounding(reference)


@few_examples
@given(random_scores(with_ids=True))
def test_a_score_of_partitura_is_engraved_on_the_right_staves_and_stays_unchanged(score: ps.Score) -> None:
    before = sounding(score)
    pages = engrave(score)
    check_places(pages, score)
    assert pages.score is not None
    assert sounding(pages.score) == sounding(score) == before
