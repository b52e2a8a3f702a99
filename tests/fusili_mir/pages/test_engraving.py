from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from example_scores import VOLTAS, measure, melody, note, piano, score, song

from fusili_mir.errors import InputError
from fusili_mir.pages.engraving import EngravingOptions, engrave, engrave_excerpts
from fusili_mir.pages.raster import page_size_px, rasterise
from fusili_mir.scores.score_file import ScoreFile, read_score_file

FONTS = ["Leipzig", "Bravura", "Gootville", "Leland", "Petaluma"]


@pytest.fixture
def read(tmp_path: Path):
    def write_and_read(content: str, name: str = "score.musicxml") -> ScoreFile:
        (tmp_path / name).write_text(content)
        return read_score_file(tmp_path / name)

    return write_and_read


def ink(svg: str) -> np.ndarray:
    return rasterise(svg, "resvg") < 128


@pytest.mark.parametrize("font", FONTS)
def test_every_note_head_box_holds_ink_and_paper_lies_around_it(read, font) -> None:
    engraving = engrave(read(piano(3)), EngravingOptions(font=font))
    black = ink(engraving.svgs[0])
    assert len(engraving.notes) == 12
    for head in engraving.notes:
        inside = black[int(head["y0"]) : int(head["y1"]) + 1, int(head["x0"]) : int(head["x1"]) + 1]
        assert inside.mean() > 0.5  # filled quarter-note heads
        left = black[int(head["y0"]) + 2 : int(head["y1"]) - 1, int(head["x0"]) - 4 : int(head["x0"]) - 2]
        assert left.mean() < 0.5


def test_staff_boxes_run_from_the_top_line_to_the_bottom_line_of_the_raster(read) -> None:
    engraving = engrave(read(piano(2)), EngravingOptions(staff_space_px=20))
    black = ink(engraving.svgs[0])
    assert engraving.staves["space_px"] == pytest.approx([20, 20])
    for staff in engraving.staves:
        lines = staff["y0"] + 20 * np.arange(5)
        assert lines[-1] == pytest.approx(staff["y1"])
        middle = (int(staff["x0"]) + 2, int(staff["x1"]) - 2)
        for y in lines:
            assert black[int(y), middle[0] : middle[1]].mean() > 0.95
            assert black[int(y) + 10, middle[0] : middle[1]].mean() < 0.5


@pytest.mark.parametrize(("content", "n_staves"), [(melody(4), 1), (piano(4), 2), (song(4), 3)])
def test_a_system_is_the_union_of_its_staves_and_is_tiled_by_its_measures(read, content, n_staves) -> None:
    engraving = engrave(read(content))
    (system,) = engraving.systems
    assert system["n_staves"] == n_staves == len(engraving.staves)
    assert engraving.staves["staff"].tolist() == list(range(n_staves))
    assert system["y0"] == engraving.staves["y0"].min()
    assert system["y1"] == engraving.staves["y1"].max()
    assert engraving.measures["x0"][0] == system["x0"]
    assert engraving.measures["x1"][-1] == system["x1"]
    assert np.allclose(engraving.measures["x1"][:-1], engraving.measures["x0"][1:], atol=2)
    assert engraving.measures["number"].tolist() == ["1", "2", "3", "4"]


def test_notes_know_their_measure_and_their_staff(read) -> None:
    engraving = engrave(read(song(2)))
    rows = {str(row["id"]): (int(row["measure"]), int(row["staff"])) for row in engraving.notes}
    assert rows["n1"] == (0, 0)  # the voice
    assert rows["n5"] == (0, 1)  # right hand
    assert rows["n7"] == (0, 2)  # left hand
    assert rows["n12"] == (1, 2)


def test_a_note_that_crosses_to_the_other_staff_counts_there(read) -> None:
    back = "<backup><duration>4</duration></backup>"
    crossing = note("E3").replace("<staff>1</staff>", "<staff>2</staff>")
    low = note("C3", "half", staff=2)
    engraving = engrave(read(score([measure(note("G5") + crossing + back + low, 1, True, 2)])))
    assert dict(zip(engraving.notes["id"].tolist(), engraving.notes["staff"].tolist(), strict=True)) == {
        "n1": 0,
        "n2": 1,
        "n3": 1,
    }


def test_chords_grace_notes_and_tied_notes_have_a_box_each(read) -> None:
    chord = note("C5") + note("E5", extra="<chord/>") + note("G5", extra="<chord/>")
    engraving = engrave(read(score([measure(chord + note("C5"), first=True)])))
    heads = {str(head["id"]): head for head in engraving.notes}
    assert heads["n1"]["x0"] == pytest.approx(heads["n3"]["x0"])
    assert heads["n1"]["y0"] - heads["n2"]["y0"] == pytest.approx(10, abs=0.1)  # a third: one staff space

    voltas = {str(head["id"]): head for head in engrave(read(VOLTAS)).notes}
    assert list(voltas) == ["n1", "n2", "n3", "n4", "n5", "n6"]
    grace_px, quarter_px = (float(voltas[n]["x1"] - voltas[n]["x0"]) for n in ("n2", "n5"))
    assert grace_px == pytest.approx(0.75 * quarter_px, rel=0.05)
    assert [voltas[n]["measure"] for n in ("n1", "n3", "n4", "n6")] == [0, 1, 2, 3]


def test_a_pick_up_measure_keeps_its_number(read) -> None:
    assert engrave(read(VOLTAS)).measures["number"].tolist() == ["0", "1", "2", "3"]


def test_an_excerpt_is_a_piece_of_its_own_with_the_measures_of_the_whole(read) -> None:
    content = read(melody(6))
    whole = engrave(content)
    first, second, overlapping = engrave_excerpts(content, [(0, 1), (2, 5), (4, 5)])
    assert first.measures["measure"].tolist() == [0, 1]
    assert overlapping.measures["measure"].tolist() == [4, 5]
    for excerpt, measures in ((first, (0, 1)), (second, (2, 3, 4, 5)), (overlapping, (4, 5))):
        expected = whole.notes["id"][np.isin(whole.notes["measure"], measures)]
        assert excerpt.notes["id"].tolist() == expected.tolist()
        assert excerpt.measures["x1"].max() == pytest.approx(excerpt.systems["x1"].max(), abs=1)
        # clef and key stand before the first note, as at the beginning of the piece
        assert excerpt.notes["x0"].min() > excerpt.systems["x0"][0] + 4 * excerpt.systems["space_px"][0]


def test_measures_hidden_in_a_multi_measure_rest_share_its_box(read) -> None:
    rest = "<note><rest measure='yes'/><duration>4</duration><voice>1</voice></note>"
    multi = "<attributes><measure-style><multiple-rest>3</multiple-rest></measure-style></attributes>"
    bars = [
        measure(note("C5", "half"), 1, True),
        measure(multi + rest, 2),
        measure(rest, 3),
        measure(rest, 4),
    ]
    measures = engrave(read(score([*bars, measure(note("D5", "half"), 5)]))).measures
    assert measures["measure"].tolist() == [0, 1, 2, 3, 4]
    assert measures["number"].tolist() == ["1", "2", "3", "4", "5"]
    widths = measures["x1"] - measures["x0"]
    assert widths[1] == pytest.approx(widths[2], rel=1e-3) == pytest.approx(widths[3], rel=1e-3)
    assert measures["x1"][3] == pytest.approx(measures["x0"][4], abs=2)


def test_systems_and_measures_are_numbered_through_all_pages(read) -> None:
    options = EngravingOptions(page_width_mm=120, page_height_mm=60)
    engraving = engrave(read(piano(24)), options)
    assert len(engraving.svgs) > 2
    assert engraving.systems["system"].tolist() == list(range(len(engraving.systems)))
    assert engraving.measures["measure"].tolist() == list(range(24))
    assert (np.diff(engraving.systems["page"]) >= 0).all()
    assert len(engraving.notes) == 24 * 4
    for page, svg in enumerate(engraving.svgs):
        width_px, height_px = page_size_px(svg)
        on_page = engraving.notes[engraving.notes["page"] == page]
        assert len(on_page)
        assert on_page["x1"].max() < width_px
        assert on_page["y1"].max() < height_px


def test_without_breaks_there_is_one_system(read) -> None:
    engraving = engrave(read(piano(30)), EngravingOptions(breaks="none"))
    assert len(engraving.svgs) == len(engraving.systems) == 1
    assert page_size_px(engraving.svgs[0])[0] > engraving.systems["x1"][0]


def test_dpi_and_staff_space_are_two_ways_to_say_the_same(read) -> None:
    score_file = read(melody(2))
    by_space = engrave(score_file, EngravingOptions(staff_height_mm=8, staff_space_px=10))
    by_dpi = engrave(
        score_file, EngravingOptions(staff_height_mm=8, dpi=127)
    )  # 5 px per millimetre, 2 mm per space
    assert by_space.svgs == by_dpi.svgs
    assert page_size_px(by_dpi.svgs[0]) == (1050, 1485)


def test_engraving_the_same_score_twice_gives_the_same_pages(read) -> None:
    score_file = read(song(6))
    first, second = engrave(score_file), engrave(score_file)
    assert first.svgs == second.svgs
    assert (first.notes == second.notes).all()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"font": "Comic"}, "font is 'Comic', expected one of Leipzig"),
        ({"breaks": "sometimes"}, "breaks is 'sometimes'"),
        ({"staff_height_mm": 40.0}, "staff_height_mm is 40, expected 3.6 to 9.6"),
        ({"page_width_mm": float("nan")}, "page_width_mm is nan"),
        ({"dpi": 100.0, "staff_space_px": 10.0}, "expected one of them"),
        ({"dpi": 5.0}, "dpi is 5, expected 20 to 1200"),
    ],
)
def test_options_out_of_range_are_named(options, said) -> None:
    with pytest.raises(InputError, match=said):
        EngravingOptions(**options)
