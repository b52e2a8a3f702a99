"""Systems: on drawn pages, where each stroke is known, and on small engravings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fusili_mir.boxes import STAFF_DTYPE, SYSTEM_DTYPE
from fusili_mir.pages.engraving import EngravingOptions, engrave
from fusili_mir.pages.raster import rasterise
from fusili_mir.pages.systems import find_systems
from fusili_mir.scores.score_file import read_score_file

SPACE_PX = 10


class Drawing:
    """A page on which staves and strokes are drawn by hand."""

    def __init__(self, height_px: int = 1000, width_px: int = 900) -> None:
        self.page = np.full((height_px, width_px), 255, dtype=np.uint8)

    def staff(self, top: int, x0: int = 100, x1: int = 800) -> None:
        for line in range(5):
            self.page[top + line * SPACE_PX, x0:x1] = 0

    def stroke(self, x: int, top: int, bottom: int, thick_px: int = 2) -> None:
        self.page[top:bottom, x : x + thick_px] = 0


def test_staves_without_strokes_are_systems_of_their_own() -> None:
    drawing = Drawing()
    for top in (100, 220, 340, 460):
        drawing.staff(top)
        for bar_line in (100, 450, 798):
            drawing.stroke(bar_line, top, top + 41)
    layout = find_systems(drawing.page)
    assert layout.systems["n_staves"].tolist() == [1, 1, 1, 1]
    assert layout.staves["system"].tolist() == [0, 1, 2, 3]
    assert layout.staves["staff"].tolist() == [0, 0, 0, 0]


def test_the_left_line_alone_joins_voice_and_piano() -> None:
    drawing = Drawing()
    for top in (100, 550):
        for offset in (0, 130, 240):
            drawing.staff(top + offset)
        drawing.stroke(100, top, top + 281)
    layout = find_systems(drawing.page)
    assert layout.systems["n_staves"].tolist() == [3, 3]
    assert layout.staves["staff"].tolist() == [0, 1, 2, 0, 1, 2]


def test_a_system_reaches_from_its_first_line_to_its_last() -> None:
    drawing = Drawing()
    drawing.staff(100, x0=150)
    drawing.staff(220, x0=150)
    drawing.stroke(150, 100, 261)
    system = find_systems(drawing.page).systems[0]
    box = [float(system[name]) for name in ("x0", "y0", "x1", "y1")]
    assert box == pytest.approx([150, 100.5, 800, 260.5], abs=1)
    assert system["space_px"] == pytest.approx(SPACE_PX, abs=0.05)


def test_bar_lines_join_staves_whose_left_line_has_faded() -> None:
    drawing = Drawing()
    drawing.staff(100)
    drawing.staff(220)
    drawing.stroke(400, 100, 261)
    drawing.stroke(798, 100, 261)
    drawing.staff(500)
    assert find_systems(drawing.page).systems["n_staves"].tolist() == [2, 1]


def test_a_single_stem_between_staves_does_not_join_them() -> None:
    drawing = Drawing()
    drawing.staff(100)
    drawing.staff(220)
    drawing.stroke(400, 100, 261)
    assert find_systems(drawing.page).systems["n_staves"].tolist() == [1, 1]


def test_a_system_that_lost_its_strokes_is_completed_to_match_the_others() -> None:
    drawing = Drawing()
    for top in (60, 360, 660):
        drawing.staff(top)
        drawing.staff(top + 110)
        if top != 360:
            drawing.stroke(100, top, top + 151)
    assert find_systems(drawing.page).systems["n_staves"].tolist() == [2, 2, 2]


def test_systems_of_different_sizes_and_widths_stand_on_one_page() -> None:
    drawing = Drawing()
    drawing.staff(80, x0=200)  # indented
    drawing.staff(190, x0=200)
    drawing.stroke(200, 80, 231)
    for top in (400, 510, 620):
        drawing.staff(top)
    drawing.stroke(100, 400, 661)
    drawing.staff(860, x1=420)  # short
    layout = find_systems(drawing.page)
    assert layout.systems["n_staves"].tolist() == [2, 3, 1]
    assert layout.systems["x0"] == pytest.approx([200, 100, 100], abs=1)
    assert layout.systems["x1"] == pytest.approx([800, 800, 420], abs=1)


def test_an_ossia_over_a_staff_is_left_out() -> None:
    drawing = Drawing()
    drawing.staff(100, x0=400, x1=600)
    drawing.staff(180)
    drawing.staff(500)
    layout = find_systems(drawing.page)
    assert layout.systems["n_staves"].tolist() == [1, 1]
    assert layout.staves["y0"] == pytest.approx([180.5, 500.5], abs=0.2)


def test_a_page_without_music_has_empty_arrays() -> None:
    layout = find_systems(np.full((500, 400), 255, dtype=np.uint8))
    assert layout.systems.shape == (0,)
    assert layout.staves.shape == (0,)
    assert layout.systems.dtype == SYSTEM_DTYPE
    assert layout.staves.dtype == STAFF_DTYPE


def part_xml(part_id: str, n_measures: int, n_staves: int, lyric: bool) -> str:
    measures = []
    for number in range(1, n_measures + 1):
        attributes = ""
        if number == 1:
            attributes = (
                "<attributes><divisions>2</divisions><time><beats>4</beats><beat-type>4</beat-type></time>"
                f"<staves>{n_staves}</staves>"
                + "".join(
                    f"<clef number='{n}'><sign>{'GF'[n - 1]}</sign><line>{6 - 2 * (3 - n)}</line></clef>"
                    for n in range(1, n_staves + 1)
                )
                + "</attributes>"
            )
        text = "<lyric><syllabic>single</syllabic><text>long</text></lyric>" if lyric else ""
        notes = "".join(
            f"<note><pitch><step>{'CDEFGABC'[(number + n) % 8]}</step><octave>5</octave></pitch>"
            f"<duration>1</duration><voice>1</voice><type>eighth</type><staff>1</staff>{text}</note>"
            for n in range(8)
        )
        if n_staves == 2:
            notes += "<backup><duration>8</duration></backup>" + "".join(
                f"<note><pitch><step>{step}</step><octave>3</octave></pitch><duration>4</duration>"
                "<voice>5</voice><type>half</type><staff>2</staff></note>"
                for step in "CG"
            )
        measures.append(f"<measure number='{number}'>{attributes}{notes}</measure>")
    return f"<part id='{part_id}'>{''.join(measures)}</part>"


def write_score(folder: Path, staves_of_parts: list[int], n_measures: int = 16) -> Path:
    names = [f"P{number}" for number in range(len(staves_of_parts))]
    listed = "".join(f"<score-part id='{n}'><part-name>{n}</part-name></score-part>" for n in names)
    parts = "".join(
        part_xml(name, n_measures, n_staves, lyric=staves_of_parts == [1, 2] and n_staves == 1)
        for name, n_staves in zip(names, staves_of_parts, strict=True)
    )
    filename = folder / "score.musicxml"
    filename.write_text(
        f"<score-partwise version='4.0'><part-list>{listed}</part-list>{parts}</score-partwise>"
    )
    return filename


@pytest.mark.parametrize("staves_of_parts", [[1], [2], [1, 2], [1, 1, 1, 1]])
@pytest.mark.parametrize(
    ("font", "space_px"), [("Leipzig", 6.0), ("Bravura", 9.3), ("Leland", 14.0), ("Petaluma", 8.0)]
)
def test_the_systems_of_an_engraving_are_found_where_it_put_them(
    tmp_path: Path, staves_of_parts: list[int], font: str, space_px: float
) -> None:
    score_file = read_score_file(write_score(tmp_path, staves_of_parts))
    options = EngravingOptions(font=font, staff_space_px=space_px)  # type: ignore[arg-type]
    engraving = engrave(score_file, options)
    layout = find_systems(rasterise(engraving.svgs[0]))
    known = engraving.systems[engraving.systems["page"] == 0]
    assert layout.systems["n_staves"].tolist() == known["n_staves"].tolist()
    for name in ("y0", "y1"):
        assert np.abs(layout.systems[name] - known[name]).max() < 0.12 * space_px
    for name in ("x0", "x1"):
        assert np.abs(layout.systems[name] - known[name]).max() < 0.5 * space_px
    assert layout.systems["space_px"] == pytest.approx(known["space_px"], rel=0.02)
