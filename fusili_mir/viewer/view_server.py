"""Serving a page on this machine alone, so that what is corrected on it can be decoded again and saved.

Only the loopback interface listens. Every address begins with a random token; the Host must be ours, so no other
name can be pointed here; a request from another origin is refused. Nothing is read from the disk by name: what
can be asked for is a fixed list.
"""

from __future__ import annotations

import json
import operator
import re
import secrets
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from fusili_mir.alignment.anchors import Anchor
from fusili_mir.boundary import printable_lines, reading
from fusili_mir.errors import FusiliError, InputError
from fusili_mir.untrusted_json import parse_json
from fusili_mir.viewer.correction import Correction
from fusili_mir.viewer.view_data import ViewedResult
from fusili_mir.viewer.view_page import beside_names, view_html

__all__ = ["ViewServer"]

_MOST_BODY_BYTES = 2**20
_RANGE = re.compile(r"bytes=(\d{1,18})-(\d{0,18})")
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class ViewServer(ThreadingHTTPServer):
    """A server of one page.

    Parameters
    ----------
    results : sequence of ViewedResult
    corrections : sequence of Correction
        One for each result, in the same order.
    port : int
        0 for any that is free.
    """

    daemon_threads = True

    def __init__(
        self, results: Sequence[ViewedResult], corrections: Sequence[Correction], port: int = 0
    ) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.token = secrets.token_urlsafe(24)
        self.results, self.corrections = list(results), list(corrections)
        self.sounds = beside_names(results)

    @property
    def origin(self) -> str:
        """Origin of the page."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def url(self) -> str:
        """Address of the page."""
        return f"{self.origin}/{self.token}/"

    def page(self) -> str:
        """Return the page with the results as they are now."""
        return view_html(self.results, {key: name for key, (name, _) in self.sounds.items()}, server=True)


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    server_version = "fusili-mir"
    sys_version = ""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name of the base class)
        """Say nothing for each request."""

    def do_GET(self) -> None:
        """Answer with the page, its state, or a recording beside it."""
        name = self._name()
        if name == "":
            self._send(self.server.page().encode("utf-8"), "text/html; charset=utf-8")
        elif name == "state":
            self._send_json([_state(each) for each in self.server.corrections])
        elif name is not None:
            sounds = dict(self.server.sounds.values())
            if name in sounds:
                self._send_part(sounds[name].content, sounds[name].media_type)
            else:
                self._refuse(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        """Correct a result, or undo that."""
        name = self._name()
        if name is None:
            return
        is_json = self.headers.get("Content-Type", "").split(";")[0] == "application/json"
        if self.headers.get("Origin") != self.server.origin or not is_json:
            self._refuse(HTTPStatus.FORBIDDEN)
            return
        if name not in ("correct", "undo"):
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        try:
            with reading("the request", "expected a result and its anchors"):
                asked = self._body()
                number = range(len(self.server.corrections))[operator.index(asked["result"])]
                anchors = (
                    tuple(Anchor.from_json(each) for each in asked["anchors"]) if name == "correct" else ()
                )
        except InputError:
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        correction = self.server.corrections[number]
        try:
            with reading("the anchors", "set them elsewhere"):
                if name == "correct":
                    tables = correction.correct(anchors)
                else:
                    tables, anchors = correction.undo()
        except FusiliError as error:
            self._send_json({"error": printable_lines(str(error))}, HTTPStatus.CONFLICT)
            return
        answer = {"tables": tables, "anchors": [anchor.to_json() for anchor in anchors]}
        self.server.results[number].data.update(tables, anchors=answer["anchors"])
        self._send_json(answer)

    def _name(self) -> str | None:
        """Return what is asked for, or refuse and return None."""
        port = self.server.server_address[1]
        if self.headers.get("Host") not in (f"127.0.0.1:{port}", f"localhost:{port}"):
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST)
            return None
        if self.headers.get("Origin") not in (None, self.server.origin):
            self._refuse(HTTPStatus.FORBIDDEN)
            return None
        parts = self.path.split("?")[0].split("/")
        if len(parts) != 3 or not secrets.compare_digest(parts[1].encode(), self.server.token.encode()):
            self._refuse(HTTPStatus.FORBIDDEN)
            return None
        return parts[2]

    def _body(self) -> Mapping[str, Any]:
        length = int(self.headers.get("Content-Length", "0"))
        if not 0 <= length <= _MOST_BODY_BYTES:
            raise ValueError(length)
        content: Mapping[str, Any] = parse_json(self.rfile.read(length), "the request", "expected an object")
        return content

    def _refuse(self, status: HTTPStatus) -> None:
        self.close_connection = True
        self._send(f"{status.value} {status.phrase}\n".encode(), "text/plain", status)

    def _send_json(self, value: Any, status: HTTPStatus = HTTPStatus.OK) -> None:
        self._send(json.dumps(value, allow_nan=False).encode("utf-8"), "application/json", status)

    def _send_part(self, content: bytes, media_type: str) -> None:
        """Send a sound, or the part of it that is asked for: players jump."""
        asked = _RANGE.fullmatch(self.headers.get("Range", ""))
        if asked is None or int(asked[1]) >= len(content):
            self._send(content, media_type, more={"Accept-Ranges": "bytes"})
            return
        first, last = int(asked[1]), min(int(asked[2] or len(content) - 1), len(content) - 1)
        more = {"Accept-Ranges": "bytes", "Content-Range": f"bytes {first}-{last}/{len(content)}"}
        self._send(content[first : last + 1], media_type, HTTPStatus.PARTIAL_CONTENT, more)

    def _send(
        self,
        content: bytes,
        media_type: str,
        status: HTTPStatus = HTTPStatus.OK,
        more: Mapping[str, str] | None = None,
    ) -> None:
        try:
            self.send_response(status)
            headers = {
                **_HEADERS,
                "Content-Type": media_type,
                "Content-Length": str(len(content)),
                **(more or {}),
            }
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)
        except (BrokenPipeError, ConnectionResetError):  # the page was closed
            self.close_connection = True


def _state(correction: Correction) -> dict[str, Any]:
    return {"ready": correction.is_ready, "saved": correction.is_saved, "problem": correction.problem}
