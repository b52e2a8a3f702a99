"""One line of work: a score, a recording, and how they are to be aligned."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fusili_mir.alignment.align_options import AlignOptions

__all__ = ["PairRequest", "request_of_json", "with_names"]

_UNSAFE = re.compile(r"[^\w.-]+")
_MOST_BYTES = 150  # of a name; systems allow 255, and a number, or the name of a stage, is added
_DEVICES = re.compile(
    r"(?i)(con|prn|aux|nul|com[\d¹²³]|lpt[\d¹²³])(\..*)?"
)  # names that Windows keeps for itself


@dataclass(frozen=True)
class PairRequest:
    """A pair to align.

    Attributes
    ----------
    score : tuple of Path
        The file of the score, or those of its pages; a range such as ``#3-7`` may follow a name.
    recording : Path
    options : AlignOptions
    name : str
        Name of the folder of the result; empty: made from the names of the files.
    """

    score: tuple[Path, ...]
    recording: Path
    options: AlignOptions = field(default_factory=AlignOptions)
    name: str = ""

    @property
    def score_text(self) -> str:
        """The score as tables show it."""
        return "; ".join(map(str, self.score))

    @property
    def pages_key(self) -> tuple[object, ...]:
        """What the encoded score depends on: pairs with the same key share it."""
        return self.score, *self.options.score_key

    def to_json(self) -> dict[str, Any]:
        """Return it as values that JSON can represent."""
        return {
            "name": self.name,
            "score": [str(file) for file in self.score],
            "recording": str(self.recording),
            "options": self.options.to_json(),
        }


def request_of_json(content: dict[str, Any]) -> PairRequest:
    """Return the request that `PairRequest.to_json` described."""
    score = tuple(Path(file) for file in content["score"])
    options = AlignOptions.from_json(content["options"])
    return PairRequest(score, Path(content["recording"]), options, content["name"])


def with_names(requests: Iterable[PairRequest]) -> list[PairRequest]:
    """Give each pair a name that is a safe name of a folder on any system, and its own.

    Examples
    --------
    >>> song, take = Path("songs/An die Musik.mxl"), Path("1933/take 1.mp3")
    >>> [pair.name for pair in with_names([PairRequest((song,), take), PairRequest((song,), take)])]
    ['An_die_Musik--take_1', 'An_die_Musik--take_1-2']
    """
    named, taken = [], {"summary.csv", "index.html", "matches.csv"}  # files beside the results
    for request in requests:
        wanted = _safe(request.name or f"{_stem(request.score[0])}--{_stem(request.recording)}")
        name, number = wanted, 1
        while name.casefold() in taken:  # some systems tell no capital letters apart
            number += 1
            name = f"{wanted}-{number}"
        taken.add(name.casefold())
        named.append(replace(request, name=name))
    return named


def _stem(file: Path) -> str:
    return Path(str(file).split("#")[0]).stem


def _safe(name: str) -> str:
    """Return a name without separators, spaces, leading dots or what else a system may refuse."""
    composed = unicodedata.normalize("NFC", name)  # a Mac tells no other spelling of an accent apart
    cut = _UNSAFE.sub("_", composed).encode()[:_MOST_BYTES].decode(errors="ignore")
    safe = cut.strip("._-") or "pair"
    return f"_{safe}" if _DEVICES.fullmatch(safe) else safe  # with any ending it would be the device
