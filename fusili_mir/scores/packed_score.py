"""A score file that is put away until somebody needs it: a tree of XML takes a hundred times as much memory."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Literal

from lxml import etree

from fusili_mir.scores.score_file import ScoreFile
from fusili_mir.short_repr import short_repr

__all__ = ["PackedScore"]

_FAST = 1  # level of compression: most of the gain for little time


@short_repr
@dataclass(frozen=True)
class PackedScore:
    """A `ScoreFile`, compressed.

    Attributes
    ----------
    filename : str
    kind : "musicxml" or "mei"
    packed : bytes
        Its tree as XML, compressed by zlib.
    """

    filename: str
    kind: Literal["musicxml", "mei"]
    packed: bytes

    @classmethod
    def of(cls, score_file: ScoreFile) -> PackedScore:
        """Put a score file away."""
        return cls(score_file.filename, score_file.kind, zlib.compress(score_file.to_bytes(), _FAST))

    def unpack(self) -> ScoreFile:
        """Return the score file, with a tree of its own that may be changed."""
        parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
        return ScoreFile(self.filename, self.kind, etree.fromstring(zlib.decompress(self.packed), parser))
