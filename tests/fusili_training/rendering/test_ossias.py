from __future__ import annotations

from pathlib import Path

import example_scores
import numpy as np
import pytest

from fusili_mir.arrays import GreyImage
from fusili_mir.pages.engraving import Engraving, EngravingOptions, engrave
from fusili_mir.pages.page_sources import EngravedPage
from fusili_mir.scores.score_file import read_score_file
from fusili_training.rendering.ossias import OssiaStyle, add_ossias
from fusili_training.rendering.page_condition import condition_pages
from fusili_training.rendering.render_recipe import PageOptions

STYLE = OssiaStyle(share=1.0, word="ossia", extra_spacing_system=16)


@pytest.fixture(scope="module")
def engraving(tmp_path_factory: pytest.TempPathFactory) -> Engraving:
    path: Path = tmp_path_factory.mktemp("score") / "piano.musicxml"
    path.write_text(example_scores.piano(24))
    return engrave(read_score_file(path), STYLE.make_room(EngravingOptions(page_width_mm=120, header=False)))


def _read(engraving: Engraving, style: OssiaStyle) -> GreyImage:
    return add_ossias([EngravedPage(svg) for svg in engraving.svgs], engraving, style)[0].read()


def test_an_ossia_adds_ink_where_the_paper_was_white_and_nowhere_else(engraving: Engraving) -> None:
    plain, page = EngravedPage(engraving.svgs[0]).read(), _read(engraving, STYLE)
    changed = page != plain
    assert changed.sum() > 500  # otherwise this test would prove nothing
    assert plain[changed].min() >= 245
    assert (page <= plain).all()


def test_a_staff_strip_shows_the_lines_of_an_ossia(engraving: Engraving) -> None:
    """Rows with long new lines are the five lines of ossias, within 6 staff spaces of a staff."""
    changed = _read(engraving, STYLE) < EngravedPage(engraving.svgs[0]).read()
    staves = engraving.staves[engraving.staves["page"] == 0]
    space_px = float(staves["space_px"][0])
    rows = np.flatnonzero(changed.sum(axis=1) > 8 * space_px)
    assert len(rows) >= 5
    away_px = np.maximum(staves["y0"] - rows[:, None], rows[:, None] - staves["y1"]).min(axis=1)
    assert away_px.min() > 0.9 * space_px
    assert away_px.max() < 6.2 * space_px


def test_the_same_seed_prints_the_same_ossias_and_another_prints_others(engraving: Engraving) -> None:
    first, again, other = (_read(engraving, OssiaStyle(share=1.0, seed=seed)) for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_ossias_move_no_box_and_change_nothing_else_that_is_drawn(engraving: Engraving) -> None:
    options = PageOptions(degraded=0.5, printed=0.5)
    without, with_ossias = (
        condition_pages(engraving, options, np.random.default_rng(2), style) for style in (None, STYLE)
    )
    for name in ("systems", "staves", "measures", "notes"):
        assert np.array_equal(getattr(without, name), getattr(with_ossias, name))
    assert not np.array_equal(without.images[0], with_ossias.images[0])


def test_an_engraver_makes_room_below_systems() -> None:
    options = OssiaStyle(extra_spacing_staff=2, extra_spacing_system=9).make_room(EngravingOptions())
    assert (options.spacing_staff, options.spacing_system) == (14, 13)  # 12 and 4 without ossias


def test_a_page_without_room_stays_as_it_is(engraving: Engraving) -> None:
    """All paper is grey, so none of it is free."""

    class Grey:
        def read(self) -> GreyImage:
            return np.minimum(EngravedPage(engraving.svgs[0]).read(), np.uint8(200))

    page = add_ossias([Grey()], engraving, STYLE)[0].read()
    assert np.array_equal(page, Grey().read())
