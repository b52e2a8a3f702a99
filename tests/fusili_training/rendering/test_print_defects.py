from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from fusili_mir.errors import InputError
from fusili_training.rendering.print_defects import DefectLimits, PrintDefects

SPACE_PX = 10.0
HEIGHT, WIDTH = 400, 600
LINE_ROWS = [100 * staff + 40 + 10 * line for staff in range(4) for line in range(5)]
HEADS = [(65 + 100 * staff, 50 + 40 * head) for staff in range(4) for head in range(13)]  # (y, x): in a space
DEFECTS: dict[str, Any] = {
    "ink": 0.8,
    "broken_lines": 0.8,
    "bleed_through": 0.8,
    "handwriting": 1.0,
    "stamps": 1.0,
    "stains": 1.0,
    "curl": 0.8,
    "bitonal": True,
}


@functools.cache
def staves() -> np.ndarray:
    """Four staves with lines of 2 px, heads of 12 x 9 px and stems, on white paper."""
    page = np.full((HEIGHT, WIDTH), 255, np.uint8)
    for row in LINE_ROWS:
        page[row : row + 2, 20:580] = 0
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    for head_y, head_x in HEADS:
        page[((y - head_y) / 4.5) ** 2 + ((x - head_x) / 6) ** 2 <= 1] = 0
        page[head_y - 35 : head_y, head_x + 5 : head_x + 7] = 0
    return page


def printed(seed: int = 0, back: np.ndarray | None = None, **defects: Any) -> np.ndarray:
    return PrintDefects(**defects).apply(staves(), SPACE_PX, np.random.default_rng(seed), back)


@pytest.mark.parametrize("defect", [name for name in DEFECTS if name != "bitonal"])
def test_the_same_seed_gives_the_same_page_and_another_seed_another_one(defect: str) -> None:
    value = DEFECTS[defect]
    page, again, other = (printed(seed, **{defect: value}) for seed in (1, 1, 2))
    assert page.shape == (HEIGHT, WIDTH)
    assert page.dtype == np.uint8
    assert np.array_equal(page, again)
    assert not np.array_equal(page, staves())
    assert (defect == "curl") == np.array_equal(page, other)  # the curl is not drawn anew for each page


def test_a_print_without_defects_is_left_as_it_is() -> None:
    assert np.array_equal(printed(), staves())
    none = DefectLimits(**dict.fromkeys(DEFECTS, 0.0))
    drawn = PrintDefects.draw(none, np.random.default_rng(0))
    assert np.array_equal(drawn.apply(staves(), SPACE_PX, np.random.default_rng(0)), staves())


@pytest.mark.parametrize(
    "defect", ["ink", "broken_lines", "bleed_through", "handwriting", "stains", "bitonal"]
)
def test_note_heads_stay_black_and_where_they_are(defect: str) -> None:
    for seed in range(3):
        page = printed(seed, **{defect: DEFECTS[defect]}).astype(np.float64)
        moved = []
        for y, x in HEADS:
            around = 255 - page[y - 6 : y + 7, x - 8 : x + 5]  # without the stem
            clean = 255.0 - staves()[y - 6 : y + 7, x - 8 : x + 5]
            assert page[y - 1 : y + 2, x - 1 : x + 2].mean() < 130
            rows = np.arange(-6, 7)[:, None]
            moved.append((around * rows).sum() / around.sum() - (clean * rows).sum() / clean.sum())
        assert abs(np.median(moved)) < 0.2  # px


@pytest.mark.parametrize("defect", ["bleed_through", "handwriting", "stamps", "stains"])
def test_what_is_added_to_a_page_only_darkens_it(defect: str) -> None:
    page = printed(3, **{defect: DEFECTS[defect]})
    assert (page <= staves()).all()
    assert (page < staves()).mean() > 0.001


def test_broken_lines_lose_ink_between_heads_and_nothing_else_changes() -> None:
    page, clean = printed(4, broken_lines=0.8).astype(int), staves().astype(int)
    assert (page >= clean).all()
    changed = np.flatnonzero((page > clean).any(axis=1))
    assert set(changed.tolist()) <= {row + below for row in LINE_ROWS for below in (0, 1)}
    on_lines = page[LINE_ROWS, 20:580]
    assert 0.02 < (on_lines > 128).mean() < 0.6
    for y, x in HEADS:
        assert np.array_equal(page[y - 3 : y + 4, x - 3 : x + 4], clean[y - 3 : y + 4, x - 3 : x + 4])


def test_ink_gains_in_some_places_and_loses_in_others() -> None:
    ink = [255.0 - printed(seed, ink=1.0) for seed in range(6)]
    left, right = ([page[:, half].sum() for page in ink] for half in (slice(0, 300), slice(300, 600)))
    share = np.array(left) / np.array(right)
    clean = 255.0 - staves()
    share /= clean[:, :300].sum() / clean[:, 300:].sum()
    assert share.max() / share.min() > 1.1


def test_the_back_of_a_page_shows_mirrored_and_pale() -> None:
    back = np.full((HEIGHT, WIDTH), 255, np.uint8)
    back[100:300, 50:150] = 0
    page = printed(0, back, bleed_through=1.0).astype(int)
    paper = staves() == 255
    shown, beside = np.zeros_like(paper), np.zeros_like(paper)
    shown[130:270, 480:520] = True  # 50..150 from the right, whatever the back was shifted by
    beside[130:270, 80:120] = True
    assert 150 < page[paper & shown].mean() < 245
    assert page[paper & beside].mean() == 255


def test_curl_darkens_the_spine_and_says_how_far_lines_bend() -> None:
    defects = PrintDefects(curl=1.0)
    page = defects.apply(staves(), SPACE_PX, np.random.default_rng(0))
    assert page[10, 2] < 150 < 250 < page[10, 300]
    for x in (25.0, 60.0, 150.0, 300.0):
        column = 255.0 - page[:, int(x)].astype(np.float64)
        column -= column[5]  # the shade
        rows = np.arange(LINE_ROWS[0] - 4, LINE_ROWS[0] + 8)
        middle = (column[rows] * rows).sum() / column[rows].sum()
        shift_px = float(defects.shift_px(np.array([x]), np.array([x + 1]), WIDTH)[0])
        assert middle - (LINE_ROWS[0] + 0.5) == pytest.approx(shift_px, abs=0.15)
    assert np.array_equal(
        defects.next_page().shift_px(np.array([575.0]), np.array([590.0]), WIDTH),
        defects.shift_px(np.array([10.0]), np.array([25.0]), WIDTH),
    )


def test_a_flat_print_does_not_bend() -> None:
    assert not PrintDefects(curl=1.0).flat().shift_px(np.zeros(1), np.ones(1), WIDTH).any()


def test_black_and_white_scans_have_no_greys() -> None:
    assert set(np.unique(printed(0, stains=1.0, bitonal=True))) == {0, 255}


def test_a_third_of_all_prints_lacks_each_defect() -> None:
    rng = np.random.default_rng(0)
    drawn = [PrintDefects.draw(DefectLimits(ink=0.5), rng) for _ in range(600)]
    assert max(print_.ink for print_ in drawn) == pytest.approx(0.5, abs=0.01)
    assert np.mean([print_.ink == 0 for print_ in drawn]) == pytest.approx(1 / 3, abs=0.06)


def test_impossible_amounts_are_refused() -> None:
    with pytest.raises(InputError, match=r"defects\.stains is 1\.5; expected 0 to 1"):
        DefectLimits(stains=1.5)
    with pytest.raises(InputError, match="curl = -2"):
        PrintDefects(curl=-2)
