"""Writing line breaks into a MusicXML tree, so that a mutant is engraved with the lines of its original."""

from __future__ import annotations

from collections.abc import Collection

from lxml import etree

__all__ = ["write_line_breaks"]


def write_line_breaks(root: etree._Element, line_starts: Collection[int]) -> None:
    """Begin lines at the given measures and nowhere else; engrave the result with ``breaks="line"``.

    Parameters
    ----------
    root : lxml element
        A ``<score-partwise>``; changed in place.
    line_starts : collection of int
        The first measure of each line, counted from 0.
    """
    for mark in root.iterfind("part/measure/print"):
        for name in ("new-system", "new-page"):
            mark.attrib.pop(name, None)
    for part in root.iterfind("part"):
        for index, measure in enumerate(part.iterfind("measure")):
            if index and index in line_starts:
                mark = etree.Element("print")
                mark.set("new-system", "yes")
                measure.insert(0, mark)
