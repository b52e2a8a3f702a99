"""MuNG files of MSMD: where systems and note heads lie on a page, and which note event each head belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lxml import etree

from fusili_mir.boundary import reason
from fusili_mir.errors import InputError
from fusili_mir.pages.segments import Box

__all__ = ["MungHead", "MungPage", "read_mung"]


@dataclass(frozen=True)
class MungHead:
    """A note head: its box, the system it links to, and its data items as in the file."""

    id: str
    box: Box
    system: str
    data: Mapping[str, str]


@dataclass(frozen=True)
class MungPage:
    """One page: the boxes of its systems by id, from top to bottom, and its note heads."""

    systems: dict[str, Box]
    heads: tuple[MungHead, ...]


def read_mung(filename: Path) -> MungPage:
    """Read the systems and note heads of a page.

    Parameters
    ----------
    filename : Path

    Returns
    -------
    MungPage
        Without heads that link to no system.
    """
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
    try:
        root = etree.parse(str(filename), parser).getroot()
        systems: dict[str, Box] = {}
        heads: list[etree._Element] = []
        for element in root.iter("CropObject"):
            name = _text(element, "ClassName")
            if name == "staff":
                systems[_text(element, "Id")] = _box(element)
            elif name.startswith("notehead"):
                heads.append(element)
        linked = tuple(head for element in heads if (head := _head(element, systems)) is not None)
    except (OSError, etree.XMLSyntaxError, KeyError, ValueError) as error:
        raise InputError(
            f"{filename}: cannot be read ({reason(error)}); expected a MuNG file with CropObject, as in MSMD"
        ) from error
    in_order = dict(sorted(systems.items(), key=lambda item: item[1].y0))
    return MungPage(in_order, linked)


def _text(element: etree._Element, name: str) -> str:
    text = element.findtext(name)
    if text is None:
        raise InputError(f"a CropObject without {name}")
    return text.strip()


def _box(element: etree._Element) -> Box:
    top, left, width, height = (float(_text(element, name)) for name in ("Top", "Left", "Width", "Height"))
    return Box(left, top, left + width, top + height)


def _head(element: etree._Element, systems: Mapping[str, Box]) -> MungHead | None:
    links = (element.findtext("Outlinks") or "").split()
    system = next((link for link in links if link in systems), None)
    if system is None:
        return None
    data = {str(item.get("key")): (item.text or "").strip() for item in element.iterfind("Data/DataItem")}
    return MungHead(_text(element, "Id"), _box(element), system, data)
