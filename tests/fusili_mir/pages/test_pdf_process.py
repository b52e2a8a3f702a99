"""PDFs that take all memory, never end, or loop: each is one line, and the next one is read."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fusili_mir.errors import InputError
from fusili_mir.pages.page_sources import find_page_sources
from fusili_mir.pages.pdf_process import count_pdf_pages, draw_pdf_page

PAGES = b"<</Type/Pages/Kids[3 0 R]/Count 1>>"
PAGE = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 60 80]/Contents 4 0 R/Resources<</XObject<</F 5 0 R>>>>>>"


def stream(content: bytes, entries: bytes = b"") -> bytes:
    return b"<<%s/Length %d>>stream\n%s\nendstream" % (entries, len(content), content)


def write_pdf(path: Path, *objects: bytes) -> Path:
    content, places = b"%PDF-1.4\n", []
    for number, each in enumerate((b"<</Type/Catalog/Pages 2 0 R>>", *objects), 1):
        places.append(len(content))
        content += b"%d 0 obj%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(places) + 1
    end = b"xref\n0 %d\n0000000000 65535 f \n%strailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF"
    path.write_bytes(content + end % (size, table, size, len(content)))
    return path


def nested_forms(depth: int, width: int) -> list[bytes]:
    """Return forms of which each draws the next several times: width ** depth in all."""
    form = b"/Type/XObject/Subtype/Form/BBox[0 0 60 80]"
    forms = [
        stream(b"/F Do " * width, form + b"/Resources<</XObject<</F %d 0 R>>>>" % (6 + number))
        for number in range(depth)
    ]
    return [*forms, stream(b"0 0 9 9 re f", form)]


def test_forms_that_would_take_all_memory_are_one_line_and_the_next_pdf_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fusili_mir.pages import pdf_process

    pdf_process._WORKER.stop()  # a new one, which hears of the limits
    monkeypatch.setenv("FUSILI_LIMITS", "worker_bytes=150e6 pdfium_sec=20")
    bomb = write_pdf(tmp_path / "bomb.pdf", PAGES, PAGE, stream(b"/F Do"), *nested_forms(12, 10))
    (page,) = find_page_sources(bomb)
    with pytest.raises(
        InputError,
        # Which of the two can be told only if this process has taken less memory than that one may.
        match=r"bomb\.pdf: PDFium (needed more than 0\.15 GB of memory|crashed \(signal 6, SIGABRT\)) on page 1; "
        "leave that page out",
    ) as refused:
        page.read()
    assert "\n" not in str(refused.value)
    plain = write_pdf(tmp_path / "plain.pdf", PAGES, PAGE, stream(b"0 0 30 80 re f"), nested_forms(0, 0)[0])
    image = draw_pdf_page(plain, 0, dpi=72, grey=True)
    assert image.shape == (80, 60)
    assert image[:, :29].max() == 0  # the left half is ink
    assert image[:, 31:].min() == 255
    pdf_process._WORKER.stop()


def test_a_content_that_never_ends_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSILI_LIMITS", "pdfium_sec=0.5")
    lines = zlib.compress(b"0 0 m 60 80 l S\n" * 1_000_000)
    slow = write_pdf(tmp_path / "slow.pdf", PAGES, PAGE, stream(lines, b"/Filter/FlateDecode"))
    with pytest.raises(InputError, match=r"slow\.pdf: PDFium took more than 0\.5 s on page 1"):
        draw_pdf_page(slow, 0, dpi=200, grey=True)


def test_a_tree_of_pages_with_a_loop_is_one_line(tmp_path: Path) -> None:
    loop = write_pdf(tmp_path / "loop.pdf", b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 3>>")
    first = find_page_sources(loop)[0]
    with pytest.raises(InputError, match=r"loop\.pdf: page 1 of the PDF is damaged"):
        first.read()


def test_more_pages_than_the_limit_are_refused_unless_some_are_chosen(tmp_path: Path) -> None:
    kids = b"<</Type/Pages/Kids[%s]/Count 1001>>" % (b"3 0 R " * 1001)
    many = write_pdf(tmp_path / "many.pdf", kids, PAGE, stream(b""))
    with pytest.raises(InputError, match="1001 pages of a score, expected at most 1000; choose some"):
        find_page_sources(many)
    assert len(find_page_sources(f"{many}#990-")) == 12


@pytest.mark.skipif(os.name == "nt", reason="names are Unicode")
def test_a_name_that_is_no_text_is_read(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"page-\xff.pdf")
    write_pdf(path, PAGES, PAGE, stream(b""))
    assert count_pdf_pages(path) == 1


def test_colours_are_those_of_the_page(tmp_path: Path) -> None:
    Image.new("RGB", (60, 80), (200, 30, 10)).save(tmp_path / "red.pdf", resolution=72, quality=95)
    (page,) = find_page_sources(tmp_path / "red.pdf", dpi=72)
    red, green, blue = np.asarray(page.original())[40, 30].tolist()
    assert red > 180
    assert green < 60
    assert blue < 40
