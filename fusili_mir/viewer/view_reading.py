"""Reading a page back: what `view.html` shows, to serve it or to put several on one page."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

from fusili_mir.errors import InputError
from fusili_mir.viewer.embedded import Embedded
from fusili_mir.viewer.view_data import VIEW_FORMAT, ViewedResult
from fusili_mir.viewer.view_page import VIEW_FILE

__all__ = ["read_view"]

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
    filename = result / VIEW_FILE if result.is_dir() else result
    try:
        html = filename.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text"
        raise InputError(f"{filename}: cannot be read ({reason}); align with --format html first") from error
    found = _DATA.search(html)
    try:
        content: dict[str, Any] = json.loads(found[1]) if found else {}
        results = content["results"]
        if any(each["format"] != VIEW_FORMAT for each in results):
            raise InputError(f"{filename}: written by another version ({content['madeBy']}); align again")
        embedded = {key: (packed, text) for key, packed, text in _EMBEDDED.findall(html)}
        return [_result(each, embedded, content["beside"], filename) for each in results]
    except (ValueError, KeyError, TypeError, OSError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{filename}: not a page of fusili-mir, or damaged; align again") from error


def _result(
    data: dict[str, Any], embedded: dict[str, tuple[str, str]], beside: dict[str, str], filename: Path
) -> ViewedResult:
    def content_of(key: str, media_type: str) -> Embedded:
        if key in beside:
            return Embedded((filename.parent / Path(beside[key]).name).read_bytes(), media_type)
        packed, text = embedded[key]
        content = base64.b64decode(text)
        return Embedded(gzip.decompress(content) if packed else content, media_type, bool(packed))

    sound = data["recording"]["sound"]
    return ViewedResult(
        data,
        tuple(content_of(page["picture"], page["type"]) for page in data["pages"]),
        content_of(sound["key"], sound["type"]) if sound else None,
    )
