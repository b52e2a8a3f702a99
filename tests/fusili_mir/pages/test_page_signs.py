"""Bar lines and endings on pages that Verovio engraves: what was written is read."""

from __future__ import annotations

import numpy as np
import pytest
from example_scores import measure, note, score
from PIL import Image

from fusili_mir.pages.engraving import EngravingOptions
from fusili_mir.pages.pages import load_pages, render_pages
from fusili_mir.scores.repeat_structure import Ending, RepeatStructure


def bar_line(side: str, inner: str) -> str:
    return f"<barline location='{side}'>{inner}</barline>"


FOUR_NOTES = "".join(note(pitch) for pitch in ("C5", "E5", "G4", "A4"))
BEGIN = bar_line("left", "<bar-style>heavy-light</bar-style><repeat direction='forward'/>")
END = "<bar-style>light-heavy</bar-style>"
BACK = "<repeat direction='backward'/>"
BARS = (
    FOUR_NOTES,
    BEGIN + FOUR_NOTES,
    FOUR_NOTES,
    bar_line("left", "<ending number='1' type='start'>1.</ending>")
    + FOUR_NOTES
    + bar_line("right", f"{END}<ending number='1' type='stop'/>{BACK}"),
    bar_line("left", "<ending number='2' type='start'>2.</ending>")
    + FOUR_NOTES
    + bar_line("right", "<bar-style>light-light</bar-style><ending number='2' type='stop'/>"),
    FOUR_NOTES,
    FOUR_NOTES + bar_line("right", END),
)
SCORE = score([measure(bar, number, first=number == 1) for number, bar in enumerate(BARS, start=1)])
STRUCTURE = RepeatStructure(7, begins=(1,), ends=(3,), endings=(Ending(3, 4, (1,)), Ending(4, 5, (2,))))


@pytest.fixture(scope="module")
def engraved(tmp_path_factory):
    file = tmp_path_factory.mktemp("signs") / "signs.musicxml"
    file.write_text(SCORE)
    return render_pages(file, EngravingOptions(page_width_mm=180, staff_space_px=9))


@pytest.fixture(scope="module")
def read(engraved):
    return load_pages(list(engraved.images))


def test_measures_are_where_the_engraver_put_them(engraved, read) -> None:
    assert read.measures["number"].tolist() == engraved.measures["number"].tolist()
    for side in ("x0", "x1"):
        np.testing.assert_allclose(read.measures[side], engraved.measures[side], atol=12.0)
    np.testing.assert_array_equal(read.measures["system"], engraved.measures["system"])


def test_repeats_and_endings_are_those_of_the_file(engraved, read) -> None:
    assert engraved.repeats == STRUCTURE
    assert read.repeats.ends == STRUCTURE.ends
    assert read.repeats.endings == STRUCTURE.endings
    assert set(STRUCTURE.begins) <= set(read.repeats.begins)


def test_the_kinds_of_bar_lines_are_told_apart(read) -> None:
    kinds = read.bar_lines["kind"].tolist()
    assert kinds == ["repeat-begin", "single", "single", "repeat-end", "double", "single", "final"]


def test_a_tilted_noisy_page_reads_alike(engraved, read) -> None:
    rng = np.random.default_rng(0)
    turned = Image.fromarray(engraved.images[0]).rotate(1.5, Image.Resampling.BICUBIC, fillcolor=255)
    noisy = np.clip(np.asarray(turned) * 0.8 + rng.normal(0, 12, turned.size[::-1]), 0, 255).astype(np.uint8)
    tilted = load_pages([noisy])
    assert tilted.bar_lines["kind"].tolist() == read.bar_lines["kind"].tolist()
    assert tilted.repeats == read.repeats


def test_a_large_page_is_read_like_a_small_one(engraved, read) -> None:
    large = load_pages([np.kron(engraved.images[0], np.ones((3, 3), np.uint8))])
    assert large.bar_lines["kind"].tolist() == read.bar_lines["kind"].tolist()
    np.testing.assert_allclose(large.bar_lines["x"], 3 * read.bar_lines["x"], atol=9.0)


def test_the_long_lines_of_a_page_without_music_are_no_bar_lines(engraved) -> None:
    title = np.full(engraved.images[0].shape, 255, np.uint8)
    title[100:400, 200:204] = 0
    pages = load_pages([title, engraved.images[0]])
    assert set(pages.bar_lines["page"].tolist()) == {1}
    assert set(pages.measures["page"].tolist()) == {1}
