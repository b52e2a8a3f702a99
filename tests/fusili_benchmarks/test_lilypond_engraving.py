"""Two systems of two staves, as LilyPond 2.25 writes them, and the tables that are made of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fusili_benchmarks.held_out_lilypond import read_lilypond_score, read_svg_page
from fusili_benchmarks.lilypond_engraving import EngravedScore, engraved_score
from fusili_mir.pages.raster import page_size_px, rasterise

# Upper staff: C5 B5 C6 | D5, tied over the line to its next measure | F5. Lower staff: C3 | rests | rests.
TABLE = (
    """\
head 0 1 0.0 0.0 1.0 72 upper
head 0 2 1.0 0.0 1.0 83 upper
head 0 4 2.0 0.0 2.0 84 upper
head 0 3 0.0 0.0 4.0 48 lower
head 0 5 4.0 0.0 4.0 74 upper
head 0 6 8.0 0.0 4.0 74 upper
head 0 7 16.0 0.0 4.0 77 upper
tie 0 5 6
""".replace(" ", "\t")
    + "".join(f"box\t0\t{number}\t0.0\t1.0\t-0.5\t0.5\n" for number in range(1, 8))
)


def staff(name: str, x: float, y: float, length: float = 90.0) -> str:
    lines = "".join(
        f'<g transform="translate({x}, {y + line})"><line x1="0" y1="0" x2="{length}" y2="0"/></g>'
        for line in range(5)
    )
    return f'<g id="{name}">{lines}</g>'


def sign(name: str, x: float, y: float) -> str:
    return f'<g id="{name}"><g transform="translate({x}, {y})"><rect width="1" height="0.5"/></g></g>'


def page_of(*content: str) -> str:
    size = 'width="210.00mm" height="297.00mm" viewBox="0.0000 -0.0000 120.0000 170.0000"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(content)}</svg>'


SVG = page_of(
    staff("staff0-2", 10, 20),
    staff("staff0-4", 10, 30),
    staff("staff0-2", 10, 50),
    staff("staff0-4", 10, 60),
    *(sign("bar .|:", 15, y) for y in (22, 32)),  # before the first head
    *(sign("bar |", 50, y) for y in (22, 32)),
    *(sign("bar |", 99, y) for y in (22, 32)),  # at the end of the system
    *(sign("bar |", 40, y) for y in (52, 62)),
    *(sign("bar |", 60, y) for y in (52, 62)),  # the measure before has rests only
    sign("head1", 20, 27.5),  # nearer to the lower staff
    sign("head2", 30, 19),
    sign("head4", 40, 21),
    sign("head3", 20, 31),
    sign("head5", 60, 21),
    sign("head6", 20, 51),
    sign("head7", 70, 52),
)


@pytest.fixture
def engraved(tmp_path: Path) -> EngravedScore:
    (tmp_path / "heads.tsv").write_text(TABLE)
    score = read_lilypond_score(tmp_path / "heads.tsv")
    return engraved_score([SVG], [read_svg_page(SVG, score.boxes)], score, space_px=8.0)


def test_boxes_are_in_pixels_and_staves_counted_within_their_system(engraved: EngravedScore) -> None:
    engraving = engraved.engraving
    assert engraving.systems[["system", "n_staves", "x0", "y0", "x1", "y1", "space_px"]].tolist() == [
        (0, 2, 80, 160, 800, 272, 8),
        (1, 2, 80, 400, 800, 512, 8),
    ]
    assert engraving.staves[["system", "staff", "y0"]].tolist() == [
        (0, 0, 160),
        (0, 1, 240),
        (1, 0, 400),
        (1, 1, 480),
    ]


def test_a_measure_has_heads_and_begins_with_the_first_of_them(engraved: EngravedScore) -> None:
    measures = engraved.engraving.measures
    assert measures[["measure", "system", "x0", "x1"]].tolist() == [
        (0, 0, 80, 400),
        (1, 0, 400, 800),
        (2, 1, 80, 320),
        (3, 1, 320, 800),
    ]
    assert engraved.score.measure_quarters.tolist() == [0.0, 4.0, 8.0, 16.0, 20.0]


def test_a_head_belongs_to_the_staff_of_most_heads_that_are_written_with_it(engraved: EngravedScore) -> None:
    found = engraved.engraving.notes[["notated_id", "measure", "staff"]].tolist()
    in_first = [("1", 0, 0), ("2", 0, 0), ("3", 0, 1), ("4", 0, 0)]
    assert sorted(found) == [*in_first, ("5", 1, 0), ("6", 2, 0), ("7", 3, 0)]


def test_the_second_head_of_a_tie_stands_for_the_rest_of_its_note(engraved: EngravedScore) -> None:
    heads = engraved.score.heads
    tied = heads[np.isin(heads["id"], ["5", "6"])]
    assert tied[["note", "onset_quarter", "end_quarter", "first", "last"]].tolist() == [
        (4, 4.0, 8.0, True, False),
        (4, 8.0, 12.0, False, True),
    ]


def test_a_page_is_drawn_where_its_tables_say(engraved: EngravedScore) -> None:
    (svg,) = engraved.engraving.svgs
    assert page_size_px(svg) == (960, 1360)
    rows, columns = np.nonzero(rasterise(svg) < 128)
    at_head = (rows >= 168) & (rows < 172) & (columns >= 480) & (columns < 488)  # head 5, (60, 21) in spaces
    assert at_head.sum() == 4 * 8


def test_another_score_begins_another_system_and_a_staff_that_begins_again_is_one() -> None:
    page = read_svg_page(
        page_of(staff("staff0-2", 10, 20, 30), staff("staff0-9", 45, 20, 55), staff("staff1-12", 10, 40)),
        {},
    )
    assert [len(staves) for staves in page.staves] == [1, 1]
    assert [(box.x0, box.x1) for box in page.systems] == [(10, 100), (10, 100)]
