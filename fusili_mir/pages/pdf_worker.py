"""The process in which PDFium runs: a JSON request on a line of standard input, an answer on standard output.

A request is ``{"filename": ..., "index": ..., "scale": ..., "grey": ..., "most_px": ..., "most_side_px": ...,
"time_limit_sec": ...}``; the index is null to ask for the number of pages. The answer is a line of JSON:
``{"n_pages": ...}``, ``{"error": ..., ...}``, or ``{"width_px": ..., "height_px": ..., "stride": ..., "channels":
..., "n_bytes": ...}``, which that many bytes of pixels follow.
`fusili_mir.pages.pdf_process` starts it.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import closing
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO, Any

import pypdfium2

from fusili_mir.pages.pdf_fonts import use_built_in_fonts
from fusili_mir.worker_limits import limit_memory, while_asked


def main() -> None:
    """Answer requests until standard input ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # keeps the output of libraries apart from the answers
    limit_memory()
    use_built_in_fonts()
    for line in sys.stdin:
        request = json.loads(line)
        with while_asked(request["time_limit_sec"]):
            try:
                answer, pixels = _answer(request)
            except Exception as error:  # noqa: BLE001 - pypdfium2 raises whatever it trips over
                answer, pixels = {"error": "damaged", "text": str(error)}, b""
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.write(pixels)
        answers.flush()


def _answer(request: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    try:
        document = pypdfium2.PdfDocument(_openable(request["filename"]), autoclose=True)
    except pypdfium2.PdfiumError as error:
        # PDFium asks for a password whenever it finds no pages.
        with (
            Path(request["filename"]).open("rb") as file,
            mmap(file.fileno(), 0, access=ACCESS_READ) as content,
        ):
            locked = content.find(b"/Encrypt") >= 0
        return {"error": "encrypted" if locked else "unreadable", "text": str(error)}, b""
    with closing(document):
        if request["index"] is None:
            return {"n_pages": len(document)}, b""
        with closing(document[request["index"]]) as page:
            width_px, height_px = (side * request["scale"] for side in page.get_size())
            too_long = max(width_px, height_px) > request["most_side_px"]
            if too_long or width_px * height_px > request["most_px"]:
                return {"error": "size", "width_px": int(width_px), "height_px": int(height_px)}, b""
            bitmap = page.render(scale=request["scale"], grayscale=request["grey"], rev_byteorder=True)
            shape = {
                "width_px": bitmap.width,
                "height_px": bitmap.height,
                "stride": bitmap.stride,
                "channels": bitmap.n_channels,
                "n_bytes": bitmap.stride * bitmap.height,
            }
            return shape, memoryview(bitmap.buffer)


def _openable(filename: str) -> str | IO[bytes]:
    """Return what PDFium can open: it takes names in UTF-8 only."""
    try:
        filename.encode()
    except UnicodeEncodeError:
        return Path(filename).open("rb")  # the document closes it
    return filename


if __name__ == "__main__":
    main()
