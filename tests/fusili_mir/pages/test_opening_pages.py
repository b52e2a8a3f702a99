from __future__ import annotations

from pathlib import Path

import example_scores
import numpy as np
import pytest
from PIL import Image

from fusili_mir.errors import InputError
from fusili_mir.pages.pages import Pages, check_score, load_pages, open_pages, render_pages


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A score, its page as an image, and a book in which it is the second of three pages."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "tune.musicxml").write_text(example_scores.melody(8))
    page = render_pages(folder / "tune.musicxml").images[0]
    Image.fromarray(page).save(folder / "page.png")
    blank = np.full_like(page, 255)
    first, *others = (Image.fromarray(image) for image in (blank, page, blank))
    first.save(folder / "book.pdf", save_all=True, append_images=others, resolution=100, quality=95)
    return folder


@pytest.fixture(scope="module")
def expected(folder: Path) -> Pages:
    return load_pages(folder / "page.png")


def test_the_same_systems_are_found_however_the_page_is_brought(folder: Path, expected: Pages) -> None:
    grey = np.asarray(Image.open(folder / "page.png"))
    for brought in (
        Image.open(folder / "page.png"),
        grey,
        np.stack([grey] * 3, axis=2),
        grey.astype(np.uint16) * 257,
        grey / 255.0,
        [Image.fromarray(grey)],
    ):
        pages = open_pages(brought)
        assert np.array_equal(pages.systems, expected.systems)
        assert np.array_equal(pages.images[0], expected.images[0])
    assert pages.filename == "image 1"


def test_a_page_of_a_pdf_is_found_by_its_range(folder: Path, expected: Pages) -> None:
    for pages in (
        load_pages(folder / "book.pdf#2", dpi=100),
        load_pages(folder / "book.pdf", 100, pages="2"),
    ):
        assert len(pages.images) == 1
        assert len(pages.systems) == len(expected.systems)
        assert pages.systems["x0"] == pytest.approx(expected.systems["x0"], abs=2)
    assert len(open_pages(folder / "book.pdf", dpi=100, pages="2-3").images) == 2
    with pytest.raises(InputError, match=r"page 4 does not exist: .*book\.pdf has 3 pages"):
        open_pages(folder / "book.pdf", pages="4")


def test_pages_are_opened_once(expected: Pages) -> None:
    assert open_pages(expected) is expected


def test_a_score_is_checked_before_it_is_opened(folder: Path, expected: Pages) -> None:
    assert check_score(folder / "tune.musicxml")
    assert check_score([folder / "tune.musicxml"])
    assert not check_score(folder / "book.pdf", pages="2")
    assert not check_score(np.zeros((9, 9), np.uint8))
    assert not check_score(expected)
    for score, pages in ((folder / "none.png", None), (folder / "book.pdf", "9"), (None, None), ([], None)):
        with pytest.raises(InputError):
            check_score(score, pages=pages)


def test_a_symbolic_score_stands_alone_and_has_no_range(folder: Path) -> None:
    with pytest.raises(InputError, match="a symbolic score, given with 1 more; expected it alone"):
        open_pages([folder / "page.png", folder / "tune.musicxml"])
    with pytest.raises(InputError, match="a symbolic score, which has no pages to choose from"):
        open_pages(folder / "tune.musicxml", pages="1")
    with pytest.raises(InputError, match="a symbolic score, which has no pages to choose from"):
        open_pages(f"{folder / 'tune.musicxml'}#1")


def test_pages_print_in_a_line(folder: Path, expected: Pages) -> None:
    name = str(folder / "page.png")
    assert repr(expected) == f"Pages({name!r}: 1 page, 1 system, 1 staff, 8 measures)"
    assert repr(expected.images) == "PageImages(1 page)"
    engraved = repr(render_pages(folder / "tune.musicxml"))
    assert "8 measures" in engraved
    assert "note heads" in engraved
    assert len(engraved) < 300
