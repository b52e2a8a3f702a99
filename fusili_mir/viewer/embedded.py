"""What a viewer page carries besides its tables: pictures and sounds, each once, whoever refers to it."""

from __future__ import annotations

import base64
import gzip
import hashlib
from dataclasses import dataclass
from functools import cached_property

__all__ = ["Embedded"]

_GZIP_LEVEL = 6


@dataclass(frozen=True)
class Embedded:
    """The content of a file inside a page.

    Attributes
    ----------
    content : bytes
    media_type : str
        Such as ``image/png``.
    is_packed : bool
        Whether the page stores it compressed, and browsers unpack it.

    Examples
    --------
    >>> Embedded(b"", "image/png").key
    'e3b0c44298fc1c14'
    """

    content: bytes
    media_type: str
    is_packed: bool = False

    @cached_property
    def key(self) -> str:
        """A name that follows from the content."""
        return hashlib.sha256(self.content).hexdigest()[:16]

    @property
    def base64(self) -> str:
        """The content as text; the same content always gives the same text."""
        content = gzip.compress(self.content, _GZIP_LEVEL, mtime=0) if self.is_packed else self.content
        return base64.b64encode(content).decode("ascii")
