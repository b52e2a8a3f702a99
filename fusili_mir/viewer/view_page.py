"""One HTML file that shows results, and plays them: no server, no network, nothing beside it.

A content security policy allows the scripts and styles of the file itself and nothing else, so that not even a
score with a script in its title could do anything.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from fusili_mir import __version__
from fusili_mir.alignment.results import Alignment
from fusili_mir.argument_kinds import checked
from fusili_mir.errors import InputError
from fusili_mir.viewer.embedded import Embedded
from fusili_mir.viewer.script_inlining import inline_modules
from fusili_mir.viewer.view_data import ViewedResult, view_result
from fusili_mir.whole_files import write_bytes, write_text

__all__ = ["VIEW_FILE", "beside_names", "save_view", "save_viewed", "view_html"]

VIEW_FILE = "view.html"
"""Name of the page in the folder of a result."""

_MOST_SOUND_BYTES = 24 * 2**20
"""Largest recording inside a page; a larger one is a file beside it."""

_HERE = Path(__file__).parent
_LIBRARIES = ("wavesurfer.min.js", "regions.min.js")
_SUFFIXES = {"audio/mpeg": "mp3", "audio/mp4": "m4a", "audio/aac": "aac", "audio/webm": "webm"}


@checked
def save_view(alignments: Alignment | Sequence[Alignment], filename: str | Path) -> None:
    """Write results as one page to look at and listen to.

    Parameters
    ----------
    alignments : Alignment or sequence of Alignment
        Results to switch between, such as several recordings of one score.
    filename : str or Path
        The HTML file. A recording of more than 24 MB is written beside it.
    """
    if isinstance(alignments, Alignment):
        alignments = [alignments]
    if not alignments:
        raise InputError("no results to show; expected at least one")
    filename = Path(filename)
    results = [view_result(alignment) for alignment in alignments]
    save_viewed(results, filename)


def save_viewed(results: Sequence[ViewedResult], filename: Path) -> None:
    """Write what is known of results as a page, and large recordings beside it."""
    beside = beside_names(results, filename.stem)
    for name, sound in beside.values():
        write_bytes(filename.with_name(name), sound.content)
    names = {key: name for key, (name, _) in beside.items()}
    write_text(filename, view_html(results, names))


def beside_names(results: Sequence[ViewedResult], stem: str = "view") -> dict[str, tuple[str, Embedded]]:
    """Return the recordings that are too large to be inside a page: key -> name of a file, and its content."""
    return {
        result.sound.key: (f"{stem}-{result.sound.key[:8]}.{_suffix(result.sound)}", result.sound)
        for result in results
        if result.sound and _is_large(result.sound)
    }


def view_html(
    results: Sequence[ViewedResult], beside: dict[str, str] | None = None, server: bool = False
) -> str:
    """Return results as a page.

    Parameters
    ----------
    results : sequence of ViewedResult
    beside : dict from str to str, optional
        Key of a sound that is not inside the page -> name of its file beside the page.
    server : bool
        Whether the page is served by `fusili-mir view`, which decodes again and saves.

    Returns
    -------
    str
        HTML. Whatever comes from files is data or escaped.
    """
    beside = beside or {}
    data = {
        "madeBy": f"fusili-mir {__version__}",
        "results": [result.data for result in results],
        "beside": beside,
        "server": server,
    }
    scripts = [
        *((_HERE / "third_party" / name).read_text(encoding="utf-8") for name in _LIBRARIES),
        inline_modules(_HERE / "page", "main"),
    ]
    style = (_HERE / "page" / "view.css").read_text(encoding="utf-8")
    nonce = _digest(style)[:22]
    return Template((_HERE / "page" / "view.html").read_text(encoding="utf-8")).substitute(
        policy=_policy(scripts, nonce, bool(beside), server),
        nonce=nonce,
        title=escape(str(results[0].data["title"])),
        style=style,
        data=_json(data),
        embedded="\n".join(_embedded(results, beside)),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def _policy(scripts: Iterable[str], nonce: str, has_files: bool, server: bool) -> str:
    sources = {
        "default-src": "'none'",
        "script-src": " ".join(f"'sha256-{_digest(script)}'" for script in scripts),
        "style-src": f"'nonce-{nonce}'",
        "img-src": "blob:",
        "media-src": "blob: 'self' file:" if has_files else "blob:",
        "connect-src": "'self'" if server else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {allowed}" for name, allowed in sources.items())


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _json(value: Any) -> str:
    """Return JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def _embedded(results: Iterable[ViewedResult], beside: dict[str, str]) -> Iterable[str]:
    written = set(beside)
    for result in results:
        for each in (*result.pictures, *((result.sound,) if result.sound else ())):
            if each.key not in written:
                written.add(each.key)
                packed = " data-packed" if each.is_packed else ""
                yield f'<script type="text/plain" id="embedded-{each.key}"{packed}>{each.base64}</script>'


def _is_large(sound: Embedded) -> bool:
    return len(sound.content) > _MOST_SOUND_BYTES


def _suffix(sound: Embedded) -> str:
    return _SUFFIXES.get(sound.media_type, sound.media_type.removeprefix("audio/"))
