"""Ranges of pages as people write them: ``3-7``, ``1,3-5``, ``12-``; counted from 1."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from fusili_mir.boundary import printable
from fusili_mir.errors import InputError

__all__ = ["PageRange", "parse_page_range", "split_page_range"]

T = TypeVar("T")

_FRAGMENT = re.compile(r"(?P<file>.+)#(?:pages?=)?(?P<pages>[\d\s,-]*\d[\d\s,-]*)")


@dataclass(frozen=True)
class PageRange:
    """Some of the pages of a score, in the order in which they were named.

    Attributes
    ----------
    spans : tuple of (int, int or None)
        First and last page of each span, counted from 1; None for the last page of the score.
    """

    spans: tuple[tuple[int, int | None], ...]

    def select(self, pages: tuple[T, ...], name: str) -> tuple[T, ...]:
        """Return the pages of the range; `name` is that of the score, for messages.

        >>> parse_page_range("1,3-").select(("a", "b", "c", "d"), "scan.pdf")
        ('a', 'c', 'd')
        """
        count = f"{len(pages)} page" if len(pages) == 1 else f"{len(pages)} pages"
        chosen: list[T] = []
        for first, last in self.spans:
            beyond = max(first, last or first)
            if beyond > len(pages):
                raise InputError(f"page {beyond} does not exist: {name} has {count}")
            chosen += pages[first - 1 : last]
        return tuple(chosen)


def parse_page_range(text: object) -> PageRange:
    """Read a range of pages.

    Parameters
    ----------
    text : str
        Pages and spans of pages, separated by commas and counted from 1: "3", "3-7", "1,3-5", "12-".

    Returns
    -------
    PageRange
    """
    expected = "such as '3-7' or '1,3-5', counted from 1"
    if not isinstance(text, str):
        raise InputError(f"pages are {text!r}, expected a text {expected}")
    spans = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,9})\s*(?:(-)\s*([0-9]{0,9})\s*)?", part)
        first = int(match[1]) if match else 0
        last = first if match and not match[2] else int(match[3]) if match and match[3] else None
        if first < 1 or (last is not None and last < first):
            raise InputError(f"pages {printable(repr(text))}, expected pages and spans {expected}")
        spans.append((first, last))
    return PageRange(tuple(spans))


def split_page_range(filename: str | Path) -> tuple[Path, PageRange | None]:
    """Split ``scan.pdf#3-7`` into the file and the range; a file with that very name is taken as it is.

    >>> split_page_range("scan.pdf#3-7")
    (PosixPath('scan.pdf'), PageRange(spans=((3, 7),)))
    """
    match = _FRAGMENT.fullmatch(str(filename))
    try:
        if match is None or Path(filename).exists():
            return Path(filename), None
    except (OSError, ValueError):  # a name that is too long, or with a null character
        return Path(filename), None
    return Path(match["file"]), parse_page_range(match["pages"])
