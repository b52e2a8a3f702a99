from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from example_scores import song

from fusili_benchmarks.surroundings import make_surroundings, run_in
from fusili_mir.demo.example import load_example
from fusili_mir.errors import InputError
from fusili_mir.pages import raster
from fusili_mir.pages.engraving import EngravingOptions, engrave
from fusili_mir.pages.raster import rasterise
from fusili_mir.scores.score_file import read_score_file


def page(tmp_path: Path) -> str:
    words = song(4).replace(
        "</pitch><duration>2</duration><voice>1</voice><type>quarter</type><staff>1</staff></note>",
        "</pitch><duration>2</duration><voice>1</voice><type>quarter</type><staff>1</staff>"
        "<lyric><text>la</text></lyric></note>",
    )
    (tmp_path / "song.musicxml").write_text(words)
    return engrave(read_score_file(tmp_path / "song.musicxml"), EngravingOptions(page_height_mm=100)).svgs[0]


def songs(tmp_path: Path) -> list[str]:
    """A page with lyrics, and a real one: title, composer, lyrics in two verses, bold and italic text."""
    options = EngravingOptions(page_height_mm=150)
    return [page(tmp_path), engrave(read_score_file(load_example().score), options).svgs[0]]


def test_both_rasterisers_draw_the_same_page_up_to_anti_aliasing(tmp_path: Path) -> None:
    pytest.importorskip("skia")
    for svg in songs(tmp_path):
        a, b = (rasterise(svg, rasteriser).astype(int) for rasteriser in ("resvg", "skia"))
        difference = np.abs(a - b)
        assert difference.max() < 128  # nothing is black on the one and white on the other
        assert (difference > 64).mean() < 1e-4
        assert difference.mean() < 0.75
        ink, other = a < 128, b < 128
        agreement = (ink & other).sum() / (ink | other).sum()
        shifted = (ink[1:] & other[:-1]).sum() / (ink[1:] | other[:-1]).sum()
        assert agreement > 0.94 > shifted


DRAW = """
import hashlib, sys
from fusili_mir.pages.pages import render_pages
for rasteriser in sys.argv[2:]:
    pages = render_pages(sys.argv[1], rasteriser=rasteriser)
    print(rasteriser, hashlib.sha256(pages.images[0].tobytes()).hexdigest())
    print("notes", hashlib.sha256(pages.notes.tobytes()).hexdigest())
"""


def test_pixels_and_boxes_depend_neither_on_fonts_nor_on_the_locale(tmp_path: Path) -> None:
    has_skia = importlib.util.find_spec("skia") is not None
    around = make_surroundings(tmp_path)
    abroad = around["locale tr_TR.UTF-8" if sys.platform == "linux" else "plain"]
    chosen = [around["no fonts"] | abroad, around["more fonts"]]
    arguments = [str(load_example().score), "resvg", *(["skia"] if has_skia else [])]
    drawn = [run_in(each, "-c", DRAW, *arguments) for each in chosen]
    assert [done.returncode for done in drawn] == [0] * len(chosen), drawn
    assert len({done.stdout for done in drawn}) == 1
    assert drawn[0].stdout.count("notes") == len(arguments) - 1


def test_a_page_is_black_on_white(tmp_path: Path) -> None:
    image = rasterise(page(tmp_path), "resvg")
    assert image.dtype == np.uint8
    assert image.max() == 255
    assert image.min() < 40
    assert np.median(image) == 255


def test_a_page_of_too_many_pixels_is_refused_before_it_is_drawn() -> None:
    with pytest.raises(InputError, match="30000 x 30000 pixels, expected at most 80 million"):
        rasterise('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 30000 30000"/>')


def test_an_svg_without_a_size_is_refused() -> None:
    with pytest.raises(InputError, match="no viewBox in pixels"):
        rasterise("<svg/>")


def test_a_ctrl_c_while_skia_is_imported_is_not_taken_for_a_missing_skia(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Interrupted:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "fusili_mir.pages.skia_raster":
                raise ImportError from KeyboardInterrupt()  # as pybind11 reports it

    monkeypatch.delitem(sys.modules, "fusili_mir.pages.skia_raster", raising=False)
    monkeypatch.delattr("fusili_mir.pages.skia_raster", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    with pytest.raises(KeyboardInterrupt):
        raster._skia_raster.__wrapped__()
