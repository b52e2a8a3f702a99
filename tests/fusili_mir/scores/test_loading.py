from __future__ import annotations

from pathlib import Path

import pytest
from example_scores import measure, note, score

from fusili_mir.errors import InputError
from fusili_mir.pages.pages import render_pages
from fusili_mir.scores.loading import load_score


def test_grace_notes_in_the_middle_of_a_tie_keep_their_heads(tmp_path: Path) -> None:
    """Rolled chords are written so; partitura ties such a note to itself."""
    tied = [
        note("C5", "eighth", "<grace/>" + "".join(f"<tie type='{kind}'/>" for kind in kinds))
        for kinds in (["start"], ["stop", "start"])
    ]
    bar = "".join(tied) + note("C5", "half", "<tie type='stop'/>")
    (tmp_path / "score.musicxml").write_text(score([measure(bar, first=True)]))
    pages = render_pages(tmp_path / "score.musicxml")
    assert set(pages.notes["notated_id"].tolist()) == {"p0n0", "p0n1", "p0n2"}


def test_what_is_no_score_is_named() -> None:
    with pytest.raises(InputError, match="found a int, expected a score: a file, or a Score, Part or list"):
        load_score(7)  # type: ignore[arg-type]
