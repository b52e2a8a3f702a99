"""Reading a page back: what `view.html` shows, to serve it or to put several on one page."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from fusili_mir.boundary import printable, read_limited, read_text_limited, reading
from fusili_mir.errors import InputError
from fusili_mir.limits import check_limit, limit
from fusili_mir.untrusted_json import parse_json
from fusili_mir.viewer.embedded import Embedded
from fusili_mir.viewer.listening_copy import SOUND_TYPES
from fusili_mir.viewer.page_pictures import PICTURE_TYPES
from fusili_mir.viewer.view_data import VIEW_FORMAT, ViewedResult
from fusili_mir.viewer.view_page import VIEW_FILE

__all__ = ["read_view"]

_EXPECTED = "expected a page of fusili-mir; align again"
_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
_EMBEDDED = re.compile(
    r'<script type="text/plain" id="embedded-([0-9a-f]{16})"( data-packed)?>([A-Za-z0-9+/=]*)</script>'
)


def read_view(result: Path) -> list[ViewedResult]:
    """Read the page of a result.

    Parameters
    ----------
    result : Path
        Folder of a result, or the page itself.

    Returns
    -------
    list of ViewedResult
    """
    first = "align with --format html first"
    with reading(result, first):
        filename = result / VIEW_FILE if result.is_dir() else result
    html = read_text_limited(filename, "view_bytes", first)
    found = _DATA.search(html)
    if found is None:
        raise InputError(f"{filename}: not a page of fusili-mir, or damaged; {first}")
    with reading(filename, _EXPECTED):
        content: dict[str, Any] = parse_json(found[1], filename, _EXPECTED)
        results = content["results"]
        if any(each["format"] != VIEW_FORMAT for each in results):
            raise InputError(f"{filename}: written by another version ({content['madeBy']}); align again")
        if not results:
            raise InputError(f"{filename}: a page without results; {first}")
        json.dumps(results, allow_nan=False)  # a page can be made of them again
        embedded = {key: (packed, text) for key, packed, text in _EMBEDDED.findall(html)}
        return [_result(each, embedded, content["beside"], filename) for each in results]


def _unpack(content: bytes, filename: Path) -> bytes:
    """Unpack what gzip packed, up to the size that a page may have."""
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        unpacked = file.read(int(limit("view_bytes")) + 1)
    check_limit("view_bytes", len(unpacked), str(filename))
    return unpacked


def _result(
    data: dict[str, Any], embedded: dict[str, tuple[str, str]], beside: dict[str, str], filename: Path
) -> ViewedResult:
    def content_of(key: str, media_type: str, known: Collection[str]) -> Embedded:
        if media_type not in known:  # browsers would run the script of some types, and files are named by it
            raise InputError(f"{filename}: holds {printable(repr(media_type))}; {_EXPECTED}")
        if key in beside:
            file = filename.parent / Path(beside[key]).name
            return Embedded(read_limited(file, "view_bytes", _EXPECTED), media_type)
        packed, text = embedded[key]
        content = base64.b64decode(text)
        return Embedded(_unpack(content, filename) if packed else content, media_type, bool(packed))

    sound = data["recording"]["sound"]
    if not isinstance(data["title"], str):
        raise InputError(f"{filename}: a result without a title; {_EXPECTED}")
    return ViewedResult(
        data,
        tuple(content_of(page["picture"], page["type"], PICTURE_TYPES) for page in data["pages"]),
        content_of(sound["key"], sound["type"], SOUND_TYPES) if sound else None,
    )
