from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from example_scores import song

from fusili_mir.errors import InputError
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


def test_both_rasterisers_draw_the_same_page_at_the_same_place(tmp_path: Path) -> None:
    pytest.importorskip("skia", reason="skia needs libEGL and libGL of the system", exc_type=ImportError)
    svg = page(tmp_path)
    a, b = (rasterise(svg, rasteriser) < 128 for rasteriser in ("resvg", "skia"))
    assert a.shape == b.shape == (556, 1167)
    agreement = (a & b).sum() / (a | b).sum()
    shifted = (a[1:] & b[:-1]).sum() / (a[1:] | b[:-1]).sum()
    assert agreement > 0.9 > shifted


def test_a_page_is_black_on_white(tmp_path: Path) -> None:
    image = rasterise(page(tmp_path), "resvg")
    assert image.dtype == np.uint8
    assert image.max() == 255
    assert image.min() < 40
    assert np.median(image) == 255


def test_a_page_of_too_many_pixels_is_refused_before_it_is_drawn() -> None:
    with pytest.raises(InputError, match="30000 x 30000 pixels is over the limit"):
        rasterise('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 30000 30000"/>')


def test_an_svg_without_a_size_is_refused() -> None:
    with pytest.raises(InputError, match="no viewBox in pixels"):
        rasterise("<svg/>")
