"""How far a score sounds from where it is written."""

from pathlib import Path

import pytest
from example_performances import tune

from fusili_mir.alignment.written_pitch import semitones_above_pages
from fusili_mir.pages.pages import Pages, render_pages

B_FLAT = "<transpose><diatonic>-1</diatonic><chromatic>-2</chromatic></transpose>"
GUITAR = (
    "<transpose><diatonic>0</diatonic><chromatic>0</chromatic><octave-change>-1</octave-change></transpose>"
)
EIGHT_BELOW = "<clef-octave-change>-1</clef-octave-change>"


def pages_with(folder: Path, inside_clef: str, after_clef: str) -> Pages:
    file = folder / "tune.musicxml"
    text = tune(["C4", "E4", "G4", "C5"])
    assert "</clef>" in text
    file.write_text(text.replace("</clef>", f"{inside_clef}</clef>{after_clef}", 1))
    return render_pages(file)


@pytest.mark.parametrize(
    ("inside_clef", "after_clef", "semitones"),
    [("", "", 0), ("", B_FLAT, -2), ("", GUITAR, -12), (EIGHT_BELOW, "", -12), (EIGHT_BELOW, B_FLAT, -14)],
)
def test_instruments_and_clefs_that_transpose_add_up(
    tmp_path: Path, inside_clef: str, after_clef: str, semitones: int
) -> None:
    assert semitones_above_pages(pages_with(tmp_path, inside_clef, after_clef)) == semitones
