from __future__ import annotations

from pathlib import Path

import example_scores
import numpy as np
import pytest
from lxml import etree

from fusili_mir.pages.engraving import EngravingOptions, engrave
from fusili_mir.scores.score_file import read_score_file
from fusili_training.rendering.ossia_excerpts import Excerpt, list_excerpts

SPACE_PX = 12.0


@pytest.fixture(scope="module")
def excerpts(tmp_path_factory: pytest.TempPathFactory) -> list[Excerpt]:
    """Of three measures of two notes, all in one line."""
    path: Path = tmp_path_factory.mktemp("score") / "melody.musicxml"
    path.write_text(example_scores.melody(3))
    options = EngravingOptions(header=False, staff_space_px=SPACE_PX)
    return list_excerpts(etree.fromstring(engrave(read_score_file(path), options).svgs[0].encode()))


def test_an_excerpt_has_three_heads_or_more(excerpts: list[Excerpt]) -> None:
    assert [len(excerpt.groups) for excerpt in excerpts] == [2, 2]  # one measure has but two


def test_the_lines_of_a_small_staff_are_as_much_closer_as_its_scale_says(excerpts: list[Excerpt]) -> None:
    small = excerpts[0].draw(0.6, 0.6 * excerpts[0].width_px)
    assert small is not None
    assert small.height_px == pytest.approx(4 * 0.6 * SPACE_PX)
    rows = [small.y + round(line * 0.6 * SPACE_PX) for line in range(5)]
    inked = [float((small.image[row - 1 : row + 2].min(axis=0) < 220).mean()) for row in rows]
    between = [float((small.image[row + 3 : row + 5].min(axis=0) < 220).mean()) for row in rows[:4]]
    assert min(inked) > 0.95
    assert max(between) < 0.5


def test_lines_are_ruled_beyond_the_music_to_the_width_that_is_asked_for(excerpts: list[Excerpt]) -> None:
    narrow = 0.6 * excerpts[1].width_px
    widths = []
    for width_px in (narrow, narrow + 50):
        small = excerpts[1].draw(0.6, width_px)
        assert small is not None
        widths.append(small.image.shape[1])
    assert widths[1] - widths[0] == pytest.approx(50, abs=1.5)


def test_a_word_stands_above_everything_else(excerpts: list[Excerpt]) -> None:
    width_px = 0.7 * excerpts[0].width_px
    plain, named = (excerpts[0].draw(0.7, width_px, word) for word in ("", "ossia"))
    assert plain is not None
    assert named is not None
    added = named.y - plain.y
    assert added > 0.7 * SPACE_PX
    below = named.image[added:, named.x - plain.x :][: plain.image.shape[0], : plain.image.shape[1]]
    assert np.array_equal(below, plain.image)
