from __future__ import annotations

import re

import pytest
from lxml import etree

from fusili_mir.pages.glyphs import find_glyph
from fusili_mir.pages.text_outlines import outline_text

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"


def outlined(content: str) -> etree._Element:
    page = etree.fromstring(
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
        f"<style>@font-face {{ font-family: 'Leipzig'; }}</style>{content}</svg>"
    )
    outline_text(page)
    return page


def drawn(content: str) -> list[str]:
    """Names of the outlines, in the order in which they are drawn."""
    return [use.get(HREF, "").removeprefix("#outline-") for use in outlined(content).iter(f"{SVG}use")]


def lefts(content: str) -> list[float]:
    places = [use.get("transform", "") for use in outlined(content).iter(f"{SVG}use")]
    return [float(re.findall(r"[-\d.]+", place)[0]) for place in places]


def test_letters_stand_side_by_side_at_the_widths_of_times() -> None:
    # An A of Times is 1479 of 2048 units wide, a space 512.
    text = '<text x="100" y="7" text-anchor="{}" font-size="2048px">A A</text>'
    assert lefts(text.format("start")) == [100, 100 + 1479 + 512]
    assert lefts(text.format("middle")) == [100 - 1735, 100 - 1735 + 1991]
    assert lefts(text.format("end")) == [100 - 3470, 100 - 3470 + 1991]


def test_letters_may_be_spaced() -> None:
    assert lefts('<text font-size="2048px" letter-spacing="10px">AA</text>') == [0, 1489]


def test_runs_follow_each_other_until_one_has_a_place_of_its_own() -> None:
    text = (
        '<text x="5" y="5" font-size="0px"><tspan font-size="2048px">A</tspan><tspan font-size="2048px">A</tspan>'
        '<tspan x="9000" y="50"><title>no text</title><tspan font-size="1024px">AA</tspan></tspan></text>'
    )
    assert lefts(text) == [5, 5 + 1479, 9000, 9000 + 739.5]


def test_white_space_is_one_space_and_none_at_the_ends() -> None:
    text = '<text font-size="2048px"><tspan>\n  A </tspan><tspan> A\t</tspan></text>'
    assert lefts(text) == [0, 1479 + 512]
    assert lefts(text.replace("<text", "<text text-anchor='end'")) == [-3470, -3470 + 1991]


@pytest.mark.parametrize(
    ("group", "attributes", "style"),
    [
        ("verse", "", "Regular"),
        ("tempo", "", "Bold"),
        ("dir", "", "Italic"),
        ("tempo", 'font-style="italic"', "BoldItalic"),
        ("dynam", 'font-style="normal"', "Regular"),
        ("tempo", 'font-weight="normal"', "Regular"),
        ("reh label", "", "Regular"),
    ],
)
def test_text_is_bold_or_italic_as_class_and_attributes_say(group: str, attributes: str, style: str) -> None:
    text = f'<g class="{group}"><text font-size="9px"><tspan {attributes}>A</tspan></text></g>'
    assert drawn(text) == [f"{style}-A"]


def test_signs_of_music_in_text_come_from_the_music_font_of_the_page() -> None:
    tempo = '<text font-size="9px"><tspan font-family="{}">\ueca5</tspan>= 60</text>'
    assert drawn(tempo.format("Leland"))[0] == "Leland-ECA5"
    assert drawn(tempo.format("Times"))[:2] == ["Leipzig-ECA5", "Regular-equal"]


def test_a_letter_with_an_accent_is_the_same_in_one_or_two_characters() -> None:
    one, two = (drawn(f'<text font-size="9px">{letter}</text>') for letter in ("\u00e9", "e\u0301"))
    assert one == two == ["Regular-eacute"]


def test_cyrillic_and_greek_are_drawn() -> None:
    assert drawn('<text font-size="9px">\u0416\u03b1</text>') == ["Regular-uni0416", "Regular-alpha"]


def test_hebrew_runs_from_the_right_to_the_left() -> None:
    text = '<text font-size="9px">A \u05d0\u05b7\u05d1\u05d2 A</text>'
    assert drawn(text) == ["Regular-A", *(f"Regular-{n}" for n in ("gimel", "bet", "alef", "patah", "A"))]


def test_what_no_font_has_is_a_box_and_what_nobody_sees_is_nothing() -> None:
    assert drawn('<text font-size="9px">\u4e2d\U0001d11e</text>') == ["Regular-uni25A1"] * 2
    assert drawn('<text font-size="9px">\u2067\u1ab0</text>') == []


def test_neither_text_nor_fonts_are_left_on_the_page() -> None:
    page = outlined('<g><text fill="red" class="x" x="1" font-size="9px">AAB</text></g>')
    assert not list(page.iter(f"{SVG}text", f"{SVG}tspan", f"{SVG}style"))
    assert [path.get("id") for path in page.iter(f"{SVG}path")] == ["outline-Regular-A", "outline-Regular-B"]
    (group,) = page.findall(f"{SVG}g/{SVG}g")
    assert dict(group.attrib) == {"fill": "red", "class": "x"}


def test_a_glyph_is_an_outline_with_its_width() -> None:
    glyph = find_glyph("I", "Times")
    assert glyph is not None
    assert (glyph.name, glyph.advance, glyph.units_per_em) == ("Regular-I", 682, 2048)
    assert glyph.path.startswith("M")
