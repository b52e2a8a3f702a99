"""Tables and pages as LilyPond 2.25 writes them, cut down to a few heads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fusili_benchmarks.held_out_lilypond import (
    LilypondScore,
    read_lilypond_score,
    read_svg_page,
)
from fusili_benchmarks.held_out_tree import save_msmd_piece
from fusili_benchmarks.lilypond_run import is_only_scheme
from fusili_mir.errors import InputError
from fusili_mir.pages.segments import Box
from fusili_training.evaluation.msmd import MsmdTree
from fusili_training.sound.notes import PERFORMED_DTYPE

# A first score: C5, then grace notes D5 E5 before F5, which is tied; C3 below. A second score: G4 alone.
TABLE = """\
tempo 0 0.0 90.0
head 0 1 0.0 0.0 1.0 72 upper
head 0 3 0.0 0.0 1.0 48 lower
head 0 5 1.0 -0.125 0.25 74 upper
head 0 6 1.0 -0.0625 0.25 76 upper
head 0 7 1.0 0.0 2.0 77 upper
head 0 9 3.0 0.0 1.0 77 upper
box 0 1 0.0 1.3 -0.5 0.5
box 0 3 0.0 1.3 -0.5 0.5
box 0 7 0.0 1.4 -0.5 0.5
box 0 9 0.0 1.3 -0.5 0.5
tie 0 7 9
head 1 10 0.0 0.0 4.0 67 other
box 1 10 0.0 2.0 -0.5 0.5
""".replace(" ", "\t")


def staff(name: str, x: float, y: float) -> str:
    lines = "".join(
        f'<g transform="translate({x:.4f}, {y + line:.4f})"><line x1="0.05" y1="0" x2="90" y2="0"/></g>'
        for line in range(5)
    )
    return f'<g id="{name}">{lines}</g>'


def head(number: int, x: float, y: float) -> str:
    return f'<g id="head{number}"><g transform="translate({x:.4f}, {y:.4f})"><path d="M0 0"/></g></g>'


SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="210.00mm" height="297.00mm" viewBox="0.0 -0.0 120.0 170.0">'
    + staff("staff2", 10, 20)
    + staff("staff4", 10, 30)
    + staff("staff2", 5, 50)
    + staff("staff4", 5, 60)
    + head(1, 20, 21.5)
    + head(3, 20, 31)
    + head(7, 25, 48)  # above the second system, on ledger lines
    + head(9, 40, 52)
    + "</svg>"
)


@pytest.fixture
def score(tmp_path: Path) -> LilypondScore:
    (tmp_path / "heads.tsv").write_text(TABLE)
    return read_lilypond_score(tmp_path / "heads.tsv")


def test_tied_heads_are_one_note_and_grace_notes_count_the_steps_to_the_main_note(
    score: LilypondScore,
) -> None:
    columns = ["pitch", "onset_quarter", "duration_quarter", "grace", "staff"]
    assert score.notes[columns].tolist() == [
        (72, 0.0, 1.0, 0, 0),
        (48, 0.0, 1.0, 0, 1),
        (74, 1.0, 0.0, 2, 0),
        (76, 1.0, 0.0, 1, 0),
        (77, 1.0, 3.0, 0, 0),
        (67, 8.0, 4.0, 0, 2),  # the first score lasts 4 quarters, and 4 are silent
    ]
    assert score.row_of_head == {1: 0, 3: 1, 5: 2, 6: 3, 7: 4, 10: 5}


def test_the_tempo_is_the_marked_one_or_a_default(score: LilypondScore, tmp_path: Path) -> None:
    assert (score.tempo.quarters, score.tempo.qpm) == ((0.0,), (90.0,))
    unmarked = tmp_path / "unmarked.tsv"
    unmarked.write_text(TABLE.split("\n", 1)[1])
    assert read_lilypond_score(unmarked).tempo.qpm == (120.0,)


def test_a_system_begins_where_a_staff_comes_again(score: LilypondScore) -> None:
    page = read_svg_page(SVG, score.boxes)
    assert (page.width, page.height) == (120.0, 170.0)
    assert page.systems == (Box(10, 20, 100, 34), Box(5, 50, 95, 64))
    assert page.heads[7] == Box(25.0, 47.5, 26.4, 48.5)
    assert set(page.heads) == {1, 3, 7, 9}


def test_a_written_piece_is_read_as_one_of_msmd(score: LilypondScore, tmp_path: Path) -> None:
    performed = np.zeros(len(score.notes), PERFORMED_DTYPE)
    performed["pitch"] = score.notes["pitch"]
    performed["onset_sec"] = [0.5, 0.51, 1.0, 1.1, 1.2, 3.0]
    performed["duration_sec"] = 0.4
    page = read_svg_page(SVG, score.boxes)
    image = np.full((1700, 1200), 255, np.uint8)  # 10 px per staff space
    save_msmd_piece(
        tmp_path / "tree" / "piece", score, [(page, image)], performed, np.zeros(8000, np.float32), 2000
    )
    tree = MsmdTree(tmp_path / "tree")
    assert tree.pieces == ["piece"]
    (read,) = tree.read_pages("piece")
    assert [(box.x0, box.y0) for box in read.systems] == [(100, 200), (50, 500)]
    found = [[(int(h["pitch"]), round(h["onset_sec"], 3)) for h in heads] for heads in read.heads]
    assert found == [[(72, 0.5), (48, 0.51)], [(77, 1.2)]]  # the tied head is not struck
    assert read.heads[1]["x0"].tolist() == [250.0]
    assert tree.read_sound("piece").duration_sec == 4.0


@pytest.mark.parametrize(
    ("content", "message"), [("", "no note heads"), ("head\t0\t1", "line 1 is 'head 0 1'")]
)
def test_a_broken_table_is_refused_in_one_line(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "broken.tsv").write_text(content)
    with pytest.raises(InputError, match=message):
        read_lilypond_score(tmp_path / "broken.tsv")


@pytest.mark.parametrize(
    ("complaints", "expected"),
    [
        (
            "a.ly:190:2: error: Guile signaled an error for the expression beginning here\nSyntax error:\n",
            True,
        ),
        ("share/ly/init.ly:66:2: error: Guile signaled an error for the expression beginning here\n", False),
        ("a.ly:3:1: error: syntax error, unexpected '}'\n", False),
        ("", False),
    ],
)
def test_old_settings_in_scheme_are_no_reason_to_leave_a_piece_out(complaints: str, expected: bool) -> None:
    assert is_only_scheme(complaints) == expected
