"""A query to an index: a score or recording, or part of one, encoded; a recording perhaps in several keys."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from fusili_mir.arrays import Bool, Float32
from fusili_mir.audio.heard_recording import HeardRecording
from fusili_mir.audio.recording import open_recording
from fusili_mir.collection.encoded_piece import EncodedPiece
from fusili_mir.collection.encoding import encode_score, encode_sound, tuning_cents
from fusili_mir.collection.kinds import Kind, kind_of
from fusili_mir.errors import InputError
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.page_sources import is_image
from fusili_mir.pages.pages import Pages
from fusili_mir.pages.seen_pages import open_seen_pages
from fusili_mir.scores.loading import is_symbolic

__all__ = ["PageBox", "Query", "open_query"]

_CLIP_SEC = 5.0  # windows of a query: more votes, each nearer to the half of a system
_MOST_PASSAGES = 6
_PASSAGE_SEC = 20.0
_PASSAGE_COLUMNS = 500  # about two systems
_LEAST_STEPS = 25
_KEYS = range(-6, 7)

PageBox: TypeAlias = tuple[float, float, float, float]
"""x0, y0, x1, y1 in pixels of a page."""


@dataclass(frozen=True, eq=False)
class Query:
    """An encoded query.

    Attributes
    ----------
    piece : EncodedPiece
    chosen : np.ndarray of bool [shape=(n,)]
        Steps that are looked for; the others are context.
    semitones : float
        By how much it was read lower than it sounds.
    """

    piece: EncodedPiece
    chosen: Bool
    semitones: float = 0.0

    @property
    def kind(self) -> Kind:
        """Whether it is a score or a recording."""
        return self.piece.kind

    def windows(self, most: int) -> Float32:
        """Return the pooled embeddings of at most so many windows, evenly spaced, [shape=(n, d)]."""
        chosen = np.append(0, np.cumsum(self.chosen))
        inside = chosen[self.piece.spans[:, 1]] > chosen[self.piece.spans[:, 0]]
        rows = np.flatnonzero(inside)
        taken = rows[np.unique(np.linspace(0, len(rows) - 1, min(most, len(rows))).round().astype(np.int64))]
        return np.asarray(self.piece.windows[taken], np.float32)

    def passages(self) -> Iterator[Float32]:
        """Yield the embeddings of some passages, evenly spaced, [shape=(m, R, d)]."""
        steps = self.piece.part(0, len(self.piece))[self.chosen]
        length = self._passage_steps
        number = int(np.clip(round(len(steps) / length), 1, _MOST_PASSAGES))
        for part in range(number):
            middle = (part + 0.5) * len(steps) / number
            first = int(np.clip(middle - length / 2, 0, max(0, len(steps) - length)))
            yield steps[first : first + length]

    @property
    def _passage_steps(self) -> int:
        if self.kind == "score":
            return _PASSAGE_COLUMNS
        return max(1, round(_PASSAGE_SEC / self.piece.frame_sec))


def open_query(
    query: Any,
    encoder: Encoder,
    start_sec: float | None = None,
    end_sec: float | None = None,
    page: int | None = None,
    box: PageBox | None = None,
    transpose: str | float = 0.0,
) -> list[Query]:
    """Open and encode a query; the parameters are those of `fusili_mir.collection.searching.search`.

    Returns
    -------
    list of Query
        One; or the same in several keys.
    """
    if isinstance(query, EncodedPiece):
        return [Query(query, np.ones(len(query), bool))]
    if _is_score(query):
        if start_sec is not None or end_sec is not None:
            raise InputError("a stretch of time is given, but the query is a score; give a page or a box")
        piece = encode_score(open_seen_pages(query), encoder)
        chosen = _chosen_columns(piece, page, box)
        if chosen.sum() < _LEAST_STEPS:
            raise InputError("the query has too little music to say anything; expected two measures or more")
        return [Query(piece, chosen)]
    if page is not None or box is not None:
        raise InputError("a page or a box is given, but the query is a recording; give a stretch of time")
    keys = _keys(transpose)
    recording = open_recording(query, start_sec, end_sec)
    with HeardRecording(recording, encoder.bundle.audio.sample_rate_hz) as heard:
        tuning = tuning_cents(heard)
        pieces = [(key, encode_sound(heard, encoder, tuning + 100 * key, _CLIP_SEC)) for key in keys]
    found = [Query(piece, np.ones(len(piece), bool), key) for key, piece in pieces]
    if min(len(each.piece) for each in found) < _LEAST_STEPS:
        long_sec = found[0].piece.frame_sec * len(found[0].piece)
        raise InputError(
            f"{recording.name}: {long_sec:.1f} s of sound are too short to say anything; expected a second"
        )
    return found


def _is_score(query: Any) -> bool:
    if isinstance(query, str | os.PathLike):
        return kind_of(query) == "score"
    return isinstance(query, Pages) or is_image(query) or is_symbolic(query)


def _keys(transpose: str | float) -> list[float]:
    if transpose == "auto":
        return [float(key) for key in _KEYS]
    if isinstance(transpose, str) or not -24 <= transpose <= 24:
        raise InputError(f"transpose is {transpose!r}, expected semitones from -24 to 24 or 'auto'")
    return [float(transpose)]


def _chosen_columns(piece: EncodedPiece, page: int | None, box: PageBox | None) -> Bool:
    columns = piece.columns
    n_pages = int(columns["page"].max()) + 1
    if page is None:
        page = 0 if box is not None and n_pages == 1 else None
    if page is None:
        if box is not None:
            raise InputError(f"a box without its page; the query has {n_pages} pages")
        return np.ones(len(columns), bool)
    if page >= n_pages:
        raise InputError(f"page {page + 1} of the query, expected one of its {n_pages} pages with music")
    chosen = columns["page"] == page
    if box is not None:
        x0, y0, x1, y1 = box
        middle_x = (columns["x0"] + columns["x1"]) / 2
        chosen &= (x0 <= middle_x) & (middle_x <= x1) & (columns["y0"] < y1) & (columns["y1"] > y0)
    if not chosen.any():
        what = f"page {page + 1}" if box is None else f"the box {box} on page {page + 1}"
        raise InputError(f"{what} of the query has no music on it; choose another place")
    return np.asarray(chosen)
