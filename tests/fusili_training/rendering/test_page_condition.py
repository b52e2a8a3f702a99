from __future__ import annotations

from pathlib import Path

import example_scores
import numpy as np
import pytest

from fusili_mir.pages.engraving import Engraving, EngravingOptions, engrave
from fusili_mir.scores.score_file import read_score_file
from fusili_training.rendering.page_condition import condition_pages
from fusili_training.rendering.print_defects import DefectLimits
from fusili_training.rendering.render_recipe import PageOptions


@pytest.fixture(scope="module")
def engraving(tmp_path_factory: pytest.TempPathFactory) -> Engraving:
    path: Path = tmp_path_factory.mktemp("score") / "piano.musicxml"
    path.write_text(example_scores.piano(6))
    return engrave(read_score_file(path), EngravingOptions(page_height_mm=120))


def test_exact_pages_are_left_as_they_are(engraving: Engraving) -> None:
    options = PageOptions(degraded=0, staff_shift_spaces=0, staff_scale=0)
    pages = condition_pages(engraving, options, np.random.default_rng(0))
    for name in ("systems", "staves", "measures", "notes"):
        assert np.array_equal(getattr(pages, name), getattr(engraving, name))


def test_staves_are_found_a_little_off(engraving: Engraving) -> None:
    options = PageOptions(degraded=0, staff_shift_spaces=0.2, staff_scale=0.05)
    pages = condition_pages(engraving, options, np.random.default_rng(0))
    shift_px = pages.staves["y0"] - engraving.staves["y0"]
    assert np.allclose(shift_px, pages.staves["y1"] - engraving.staves["y1"], atol=1e-3)
    assert 0 < np.abs(shift_px).max() <= 0.2 * engraving.staves["space_px"].max() + 1e-3
    ratio = pages.staves["space_px"] / engraving.staves["space_px"]
    assert 0 < np.abs(ratio - 1).max() <= 0.0501
    assert np.array_equal(pages.notes, engraving.notes)


def test_boxes_follow_a_turned_page(engraving: Engraving) -> None:
    options = PageOptions(degraded=1, strength=0, rotation_deg=3.0, staff_shift_spaces=0, staff_scale=0)
    pages = condition_pages(engraving, options, np.random.default_rng(1))
    moved = np.abs(pages.notes["y0"] - engraving.notes["y0"]).max()
    assert moved > 2  # otherwise this test would prove nothing
    image = pages.images[0]
    for head in pages.notes:  # quarter notes: the middle of a head is ink
        x, y = round(float(head["x0"] + head["x1"]) / 2), round(float(head["y0"] + head["y1"]) / 2)
        assert image[y - 1 : y + 2, x - 1 : x + 2].min() < 100


def test_boxes_follow_the_curl_of_a_print(engraving: Engraving) -> None:
    curl_alone = DefectLimits(0, 0, 0, 0, 0, 0, curl=1, bitonal=0)
    options = PageOptions(staff_shift_spaces=0, staff_scale=0, printed=1, defects=curl_alone)
    moved = []
    for seed in (22, 28, 29):  # which curl by more than 0.8
        pages = condition_pages(engraving, options, np.random.default_rng(seed))
        moved.append(float(np.abs(pages.notes["y0"] - engraving.notes["y0"]).max()))
        image = pages.images[0]
        for head in pages.notes[pages.notes["page"] == 0]:
            x, y = round(float(head["x0"] + head["x1"]) / 2), round(float(head["y0"] + head["y1"]) / 2)
            assert image[y - 1 : y + 2, x - 1 : x + 2].min() < 100
    assert max(moved) > 1.5  # otherwise this test would prove nothing


def test_prints_change_neither_what_is_drawn_besides_nor_pages_of_recipes_without_them(
    engraving: Engraving,
) -> None:
    flat = DefectLimits(curl=0)
    clean, printed, again = (
        condition_pages(engraving, PageOptions(printed=share, defects=flat), np.random.default_rng(3))
        for share in (0, 1, 1)
    )
    for name in ("systems", "staves", "measures", "notes"):
        assert np.array_equal(getattr(clean, name), getattr(printed, name))
    assert not np.array_equal(clean.images[0], printed.images[0])
    assert np.array_equal(printed.images[0], again.images[0])
