"""Limits on files of strangers, in one place, with their reasons.

A file that exceeds one is refused before memory is taken for it. Each limit is far above what music needs.
Whoever needs more, and trusts the file, raises it in the environment, for the command line and for Python::

    FUSILI_LIMITS="pixels=200e6 pages=5000" fusili-mir align atlas.pdf recording.wav -o result

Processes that are started, such as those of ``align-many``, inherit it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from fusili_mir.errors import InputError

__all__ = ["LIMITS", "LIMITS_VARIABLE", "Limit", "check_limit", "limit"]

LIMITS_VARIABLE = "FUSILI_LIMITS"
"""Environment variable with other limits: ``NAME=NUMBER``, separated by spaces or commas."""


@dataclass(frozen=True)
class Limit:
    """The largest number of something.

    Attributes
    ----------
    value : float
    unit : str
        What is counted, for messages.
    reason : str
        What the number was chosen by.
    """

    value: float
    unit: str
    reason: str


_MB, _MIB, _GIB = 10**6, 2**20, 2**30
_LARGEST = 1e15  # that a limit may be raised to: what the system calls of workers take

LIMITS: Mapping[str, Limit] = {
    # scores
    "score_bytes": Limit(
        64 * _MIB, "bytes of a score, unpacked", "the longest operas in MusicXML are below it"
    ),
    "zip_members": Limit(
        10_000, "members of an archive", "an MXL file has a score, a container and pictures"
    ),
    "zip_ratio": Limit(
        250, "times the packed size in an archive", "MusicXML packs to a fifth to a fiftieth of its size"
    ),
    "notes": Limit(500_000, "notes of a score", "twenty times those of the longest quartet of our corpus"),
    "measure_notes": Limit(
        3_000, "notes of a measure", "a cadenza has some hundreds; Verovio's time grows with their cube"
    ),
    "spines": Limit(500, "spines of a kern file", "an orchestra with its texts has a hundred"),
    "measures": Limit(20_000, "measures of a part", "ten times those of the longest quartet of our corpus"),
    "played_measures": Limit(100_000, "measures as played", "five times what a part may have, with repeats"),
    "beats": Limit(100_000, "beats of a match or MIDI file", "fourteen hours at 120 a minute"),
    "beats_a_note": Limit(
        50, "beats of a MIDI file for each note", "music has notes in nearly every measure"
    ),
    "quarters": Limit(4096, "quarter notes that a note, rest or step lasts", "a thousand measures of 4/4"),
    "divisions": Limit(10_000_000, "divisions of a quarter note", "the largest of our corpus is 6,240"),
    "staves": Limit(64, "staves of a part", "an organ has 3"),
    "staff_lines": Limit(32, "lines of a staff", "a staff has 5, a lute 6"),
    "midi_bytes": Limit(16 * _MB, "bytes of a MIDI file", "a symphony has 1 MB; reading takes a hundredfold"),
    # pages
    "pixels": Limit(80_000_000, "pixels of a page", "a scan of A2 paper at 300 dpi has 35 million"),
    "side_px": Limit(65_500, "pixels along a side of a page", "the most that JPEG can state; A0 at 1200 dpi"),
    "pages": Limit(1_000, "pages of a score", "the longest operas have 800"),
    # sound
    "hours": Limit(24, "hours of a recording", "a recorder that was left running overnight"),
    "sample_rate_hz": Limit(800_000, "samples a second", "four times the finest studio rate"),
    "channels": Limit(1024, "channels of a recording", "ambisonics of the seventh order have 64"),
    # bundles
    "json_bytes": Limit(10 * _MB, "bytes of a manifest or settings in JSON", "ours have 20 kB"),
    "json_nesting": Limit(64, "levels of nested JSON", "ours have 6; what walks through it is recursive"),
    "graph_bytes": Limit(2 * _GIB, "bytes of an ONNX graph", "the largest message that protobuf reads"),
    "clip_samples": Limit(
        2**24, "samples of a clip", "six minutes at 48 kHz; work memory is a multiple of it"
    ),
    "segment_pixels": Limit(2**24, "pixels of a segment", "4096 x 4096; work memory is a multiple of it"),
    "embedding_dim": Limit(2**14, "dimensions of an embedding", "ours have 128 and 512"),
    # tables
    "table_bytes": Limit(100 * _MB, "bytes of a table", "a million rows have less"),
    "index_bytes": Limit(2 * _GIB, "bytes of the list of pieces of an index", "ten million pieces"),
    "view_bytes": Limit(_GIB, "bytes of a page of results", "browsers open no larger one"),
    # recipes
    "layer_width": Limit(16_384, "features of a layer", "the widest vision transformers have 6,144"),
    "layers": Limit(256, "layers", "the deepest vision transformers have 64"),
    # processes that we start
    "worker_bytes": Limit(
        1_900 * _MIB,
        "bytes of a worker",
        "Verovio takes 0.4 GB for a quartet of 36 minutes, PDFium 1 GB for A2",
    ),
    "verovio_sec": Limit(300, "seconds for a score", "a long string quartet takes half a minute"),
    "pdfium_sec": Limit(60, "seconds for a page of a PDF", "a page takes a tenth of a second"),
    "musescore_sec": Limit(300, "seconds for a score", "MuseScore takes a minute for a symphony"),
    "fluidsynth_sec": Limit(600, "seconds for a MIDI file", "an hour of music takes a minute"),
}
"""All limits, by name."""


def limit(name: str) -> float:
    """Return a limit: that of `LIMITS`, or the one that the environment gives.

    >>> limit("pages")
    1000
    """
    return _given(os.environ.get(LIMITS_VARIABLE, "")).get(name, LIMITS[name].value)


def check_limit(name: str, found: float, where: str, way_out: str = "") -> None:
    """Refuse what exceeds a limit.

    Parameters
    ----------
    name : str
        Name of the limit.
    found : float
        What was found; refused if it is larger, or not a number.
    where : str
        What it was found in, for the message.
    way_out : str
        What to do, if there is anything better than raising the limit.

    Raises
    ------
    InputError

    Examples
    --------
    >>> check_limit("pages", 1200, "atlas.pdf", "choose some")
    Traceback (most recent call last):
    fusili_mir.errors.InputError: atlas.pdf: 1200 pages of a score, expected at most 1000; choose some, or set \
FUSILI_LIMITS=pages=1200 if you trust it
    """
    most = limit(name)
    if found <= most:
        return
    advice = f"{way_out}, or " if way_out else ""
    needed = f"{math.ceil(found)}" if math.isfinite(found) and found < 10**15 else "..."
    raise InputError(
        f"{where}: {_number(found)} {LIMITS[name].unit}, expected at most {_number(most)}; {advice}set "
        f"{LIMITS_VARIABLE}={name}={needed} if you trust it"
    )


def _number(value: float) -> str:
    return (
        str(int(value)) if math.isfinite(value) and value == int(value) and value < 10**15 else f"{value:g}"
    )


@lru_cache(maxsize=8)
def _given(text: str) -> Mapping[str, float]:
    """Read what the environment gives."""
    given = {}
    for word in text.replace(",", " ").split():
        name, _, number = word.partition("=")
        if name not in LIMITS:
            raise InputError(
                f"{LIMITS_VARIABLE}: {word[:40]!r}; expected NAME=NUMBER with one of {', '.join(LIMITS)}"
            )
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not 0 < value <= _LARGEST:
            raise InputError(
                f"{LIMITS_VARIABLE}: {word[:40]!r}; expected a number above 0 and up to {_LARGEST:g}, such as "
                f"{name}=1e6"
            )
        given[name] = value
    return given
