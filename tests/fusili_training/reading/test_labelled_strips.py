from pathlib import Path

import numpy as np
from example_scores import BASS, measure, note, piano, score

from fusili_mir.hearing.note_reading import ALTERATIONS, COLUMN_PX, LOWEST_MIDDLE, N_ROWS, STEP_PX
from fusili_mir.pages.pages import render_pages
from fusili_training.reading.labelled_strips import LabelledStrip, label_strips, print_strip
from fusili_training.rendering.print_defects import DefectLimits


def strips_of(tmp_path: Path, xml: str) -> list[LabelledStrip]:
    file = tmp_path / "piece.musicxml"
    file.write_text(xml)
    return list(label_strips(render_pages(file)))


def meant(strip: LabelledStrip) -> list[tuple[int, int, int, bool]]:
    """Return (steps above the middle line, meaning of that line, alteration, struck) of heads, left to right."""
    heads = np.sort(strip.heads, order=["column", "row"])
    return [
        (N_ROWS // 2 - int(head["row"]), int(head["middle"]) + LOWEST_MIDDLE, ALTERATIONS[head["alteration"]],
         bool(head["is_struck"]))
        for head in heads
    ]  # fmt: skip


def test_heads_are_labelled_by_row_clef_and_sign(tmp_path: Path) -> None:
    (strip,) = strips_of(tmp_path, score([measure(note("B4") + note("F#5"), first=True)]))
    assert meant(strip) == [(0, 34, 0, True), (4, 34, 1, True)]


def test_a_change_of_clef_changes_what_the_middle_line_means(tmp_path: Path) -> None:
    changed = f"<attributes>{BASS.format(n=1)}</attributes>"
    bars = [measure(note("B4", "half"), first=True), measure(changed + note("D3", "half"), 2)]
    (strip,) = strips_of(tmp_path, score(bars))
    assert meant(strip) == [(0, 34, 0, True), (0, 22, 0, True)]


def test_a_tied_head_is_not_struck(tmp_path: Path) -> None:
    bars = [
        measure(note("C5", "half", "<tie type='start'/>"), first=True),
        measure(note("C5", "half", "<tie type='stop'/>"), 2),
    ]
    (strip,) = strips_of(tmp_path, score(bars))
    assert [each[3] for each in meant(strip)] == [True, False]


def test_each_staff_has_a_strip_of_its_own(tmp_path: Path) -> None:
    strips = strips_of(tmp_path, piano(2))
    assert {each[1] for each in meant(strips[0])} == {34}
    assert {each[1] for each in meant(strips[1])} == {22}


def test_there_is_ink_where_heads_are_labelled(tmp_path: Path) -> None:
    for strip in strips_of(tmp_path, piano(2)):
        assert strip.image.shape[0] == 128
        middle = strip.image.shape[0] // 2
        for head in strip.heads:
            y, x = middle + (int(head["row"]) - N_ROWS // 2) * STEP_PX, int(head["column"]) * COLUMN_PX
            assert strip.image[y - 3 : y + 3, x : x + COLUMN_PX].min() < 128


def test_printed_strips_keep_their_labels_and_the_ink_of_their_heads(tmp_path: Path) -> None:
    first, second = strips_of(tmp_path, piano(2))
    middle, n_heads, n_dark = first.image.shape[0] // 2, 0, 0
    for seed in range(6):
        strip = print_strip(first, DefectLimits(curl=1), np.random.default_rng(seed), second)
        again = print_strip(first, DefectLimits(curl=1), np.random.default_rng(seed), second)
        assert np.array_equal(strip.image, again.image)
        assert strip.image.shape == first.image.shape
        assert np.array_equal(strip.heads, first.heads)
        for head in strip.heads:
            y, x = middle + (int(head["row"]) - N_ROWS // 2) * STEP_PX, int(head["column"]) * COLUMN_PX
            n_heads += 1
            n_dark += bool(strip.image[y - 3 : y + 3, x : x + COLUMN_PX].min() < 128)
    assert n_dark == n_heads
