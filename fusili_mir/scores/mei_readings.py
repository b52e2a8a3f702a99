"""One reading of an MEI file: its first movement; of alternatives the lemma or the first, without wrappers.

partitura reads no editorial elements, and Verovio draws a choice of its own. After this, both see plain music.
"""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

__all__ = ["music_of", "take_first_movement", "take_first_readings"]

_WRAPPERS = frozenset(
    [
        "add",
        "corr",
        "damage",
        "lem",
        "orig",
        "ossia",
        "rdg",
        "reg",
        "restore",
        "sic",
        "subst",
        "supplied",
        "unclear",
    ]
)
_DROPPED = frozenset(["del", "gap", "oLayer", "oStaff"])


def music_of(root: etree._Element) -> etree._Element:
    """Return the music of an MEI tree; the head may hold incipits, which are scores, too."""
    music = root.find("{*}music")
    return root if music is None else music


def take_first_movement(root: etree._Element) -> int:
    """Remove all movements with a score but the first, in place; return how many there were."""
    movements = [
        division for division in music_of(root).iter("{*}mdiv") if division.find("{*}score") is not None
    ]
    for division in movements[1:]:
        _remove(division)
    return len(movements)


def take_first_readings(root: etree._Element) -> None:
    """Resolve the editorial elements of an MEI tree, in place.

    Of ``<app>`` the ``<lem>`` stays, or else the first ``<rdg>``; of ``<choice>`` the first child. Deletions go,
    unless they are restored; additions, corrections and everything supplied or unclear stay.
    """
    music = music_of(root)
    for restored in list(music.iter("{*}restore")):
        for deletion in list(restored.iter("{*}del")):
            _unwrap(deletion)
    for element in list(music.iter(etree.Element)):
        name = etree.QName(element).localname
        if name == "app":
            _keep(element, next(iter(element.iterchildren("{*}lem")), _first(element)))
        elif name == "choice":
            _keep(element, _first(element))
        elif name in _WRAPPERS:
            _unwrap(element)
        elif name in _DROPPED:
            _remove(element)


def _first(element: etree._Element) -> etree._Element | None:
    return next(_children(element), None)


def _children(element: etree._Element) -> Iterator[etree._Element]:
    return element.iterchildren(etree.Element)


def _keep(element: etree._Element, kept: etree._Element | None) -> None:
    """Remove all children of an element but one, and unwrap the element."""
    for child in list(_children(element)):
        if child is not kept:
            _remove(child)
    _unwrap(element)


def _unwrap(element: etree._Element) -> None:
    """Put the children of an element in its place."""
    parent = element.getparent()
    if parent is None:
        return
    for child in list(_children(element)):
        element.addprevious(child)
    parent.remove(element)


def _remove(element: etree._Element) -> None:
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)
