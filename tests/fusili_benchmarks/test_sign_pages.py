"""What LilyPond writes about its signs."""

from __future__ import annotations

import pytest
from lxml import etree

from fusili_benchmarks.sign_pages import _extent, _kind


@pytest.mark.parametrize(
    ("glyph", "kind"),
    [
        ("|", "single"),
        ("||", "double"),
        ("|.", "final"),
        ("!", "dotted"),
        (":|.", "repeat-end"),
        (".|:", "repeat-begin"),
        (".|:-||", "repeat-begin"),
        (":..:", "repeat-both"),
        ("", None),
    ],
)
def test_dots_of_a_glyph_say_which_repeat_sign_it_is(glyph: str, kind: str | None) -> None:
    assert _kind(glyph) == kind


def test_a_sign_reaches_from_its_first_line_to_its_last() -> None:
    group = etree.fromstring(
        '<g xmlns="http://www.w3.org/2000/svg">'
        '<g transform="translate(10, 20)"><rect x="0" y="-2" width="0.2" height="4"/></g>'
        '<g transform="translate(10.6, 20)"><rect x="0" y="-2" width="0.5" height="4"/></g></g>'
    )
    assert _extent(group) == pytest.approx((10.0, 11.1, 20.0))
