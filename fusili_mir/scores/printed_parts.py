"""What of a MusicXML score is printed: not percussion, whose notes have no pitch, and not tablature."""

from __future__ import annotations

from lxml import etree

__all__ = ["left_out_parts", "part_name", "tablature_staves"]


def left_out_parts(root: etree._Element) -> dict[str, str]:
    """Return the parts of a score that are left out: part id -> what it is."""
    kinds = {part.get("id", ""): _kind(part) for part in root.iterchildren("part")}
    return {part_id: kind for part_id, kind in kinds.items() if kind}


def tablature_staves(part: etree._Element) -> set[int]:
    """Return the numbers of the staves of a part that are tablature, counted from 1."""
    return {
        int(clef.get("number", "1"))
        for clef in part.iterfind("measure/attributes/clef")
        if (clef.findtext("sign") or "").strip().upper() == "TAB" and clef.get("number", "1").isdecimal()
    }


def part_name(root: etree._Element, part_id: str) -> str:
    """Return the printed name of a part, or its id if it has none."""
    for part in root.iterfind("part-list/score-part"):
        if part.get("id") == part_id:
            return " ".join((part.findtext("part-name") or "").split()) or part_id
    return part_id


def _kind(part: etree._Element) -> str:
    """Return why a part is left out; nothing if it is printed."""
    if next(part.iter("pitch"), None) is None:
        return "percussion" if next(part.iter("unpitched"), None) is not None else ""
    tablature = tablature_staves(part)
    if not tablature:
        return ""
    numbers = {int(s) for note in part.iter("note") if (s := note.findtext("staff") or "1").isdecimal()}
    return "tablature" if numbers <= tablature else ""
