"""Searching an index: which pieces a query belongs to, and where in them it is.

Windows of the query are looked up among the pooled vectors of all pieces. The pieces of the most similar windows
are candidates; passages of the query are then decoded against each of them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fusili_mir.collection.encoded_piece import EncodedPiece
from fusili_mir.collection.index import Index, open_index, refuse_swapped
from fusili_mir.collection.kinds import KINDS, Kind
from fusili_mir.collection.match_probability import Evidence, match_nats, probability_of
from fusili_mir.collection.passage_search import FoundPassage, find_passage
from fusili_mir.collection.query import PageBox, Query, open_query
from fusili_mir.errors import InputError
from fusili_mir.model.bundle import Bundle, as_bundle
from fusili_mir.model.encoder import Encoder

__all__ = ["Match", "search"]

_NEIGHBOURS = 200  # vectors that are looked up for each window of a query
CANDIDATES = 100
"""Pieces that are looked at in full."""
_LEAST_CANDIDATES = 8  # in each of several keys
_MOST_WINDOWS = 48


@dataclass(frozen=True)
class Match:
    """A piece that a query may belong to.

    Attributes
    ----------
    path : str
    kind : "score" or "recording"
    nats : float
        Logarithm of the odds that it is a match at all.
    page : int or None
        Of a score: index of the page with the system that most of the query is in, from 0.
    system : int or None
        Number of the system on that page, from 1.
    box : (x0, y0, x1, y1) or None
        Of a score: what of that system the query covers, in pixels of the page.
    start_sec, end_sec : float or None
        Of a recording: where the query is.
    semitones : float
        By how much the query sounds above the piece, as far as that was looked for.
    evidence : Evidence
        What the probability is made from.
    """

    path: str
    kind: Kind
    nats: float
    page: int | None
    system: int | None
    box: PageBox | None
    start_sec: float | None
    end_sec: float | None
    semitones: float
    evidence: Evidence

    @property
    def probability(self) -> float:
        """Probability that it is a match at all."""
        return probability_of(self.nats)

    @property
    def place(self) -> str:
        """The place as a reader would name it."""
        if self.page is not None:
            return f"page {self.page + 1} system {self.system}"
        assert self.start_sec is not None  # noqa: S101
        assert self.end_sec is not None  # noqa: S101
        return f"{_clock(self.start_sec)} - {_clock(self.end_sec)}"

    def to_json(self) -> dict[str, Any]:
        """Return the match as a table; pages are counted from 1."""
        table: dict[str, Any] = {
            "path": self.path,
            "kind": self.kind,
            "probability": round(self.probability, 4),
        }
        if self.page is not None and self.box is not None:
            box = [round(value, 1) for value in self.box]
            table |= {"page": self.page + 1, "system": self.system, "box": box}
        elif self.start_sec is not None and self.end_sec is not None:
            table |= {"start_sec": round(self.start_sec, 2), "end_sec": round(self.end_sec, 2)}
        return {**table, "semitones": self.semitones}


def search(
    index: Index | str | os.PathLike[str],
    query: Any,
    *,
    kind: Kind | None = None,
    top: int = 10,
    start_sec: float | None = None,
    end_sec: float | None = None,
    page: int | None = None,
    box: PageBox | None = None,
    transpose: str | float = 0.0,
    model: str | Path | Bundle | Encoder | None = None,
    device: str = "auto",
    candidates: int = CANDIDATES,
) -> list[Match]:
    """Find the pieces of an index that a query belongs to.

    Parameters
    ----------
    index : Index or path
    query : path, recording, score or EncodedPiece
        A score, PDF, image or recording: a file, or what `open_recording` and `open_pages` open. A piece of an
        index (`Index.load_piece`) is not encoded again; the whole of it is looked for, as it sounds.
    kind : "score" or "recording", optional
        Kind of pieces to look for; by default both.
    top : int
        Largest number of answers.
    start_sec, end_sec : float, optional
        Stretch of a recording to look for.
    page : int, optional
        Page of a score to look for, from 0.
    box : (x0, y0, x1, y1), optional
        What of that page to look for, in its pixels.
    transpose : float or "auto"
        Semitones by which a recording sounds above the scores of the index; "auto" tries all up to 6.
    model : str, Path, Bundle or Encoder, optional
        Model that encoded the index; by default the bundle that is installed with the package.
    device : str
        See `fusili_mir.sessions.graph_session.open_session`.
    candidates : int
        Number of pieces of each kind that are looked at in full; more for collections of many thousand.

    Returns
    -------
    list of Match
        The most probable first.
    """
    if kind is not None and kind not in KINDS:
        raise InputError(f"kind is {kind!r}, expected 'score' or 'recording'")
    if top < 1:
        raise InputError(f"top is {top}, expected at least 1")
    if candidates < 1:
        raise InputError(f"candidates is {candidates}, expected at least 1")
    refuse_swapped(index, query)
    opened = index if isinstance(index, Index) else open_index(Path(index))
    encoder = model if isinstance(model, Encoder) else _encoder(model, device)
    opened.check_bundle(encoder.bundle)
    if not any(kind in (None, piece.kind) for piece in opened.pieces):
        raise InputError(
            f"{opened.folder}: no {kind or 'piece'}s in this index; add some with `fusili-mir index`"
        )
    queries = open_query(query, encoder, start_sec, end_sec, page, box, transpose)
    scale = encoder.bundle.manifest.scale
    matches = [
        match
        for each in ((kind,) if kind else KINDS)
        for match in _search_kind(opened, queries, each, scale, candidates)
    ]
    return sorted(matches, key=lambda match: -match.nats)[:top]


def _encoder(model: str | Path | Bundle | None, device: str) -> Encoder:
    bundle = as_bundle(model)
    return Encoder(bundle, device)


def _search_kind(
    index: Index, queries: list[Query], kind: Kind, scale: float, n_candidates: int
) -> list[Match]:
    """Search one kind of pieces; of a query in several keys, the best key counts for each piece."""
    most = max(n_candidates // len(queries), min(n_candidates, _LEAST_CANDIDATES))
    candidates = [(query, each) for query in queries for each in _candidates(index, query, kind, most)]
    best: dict[int, Match] = {}
    for query, (number, vote) in candidates:
        match = _decode(index, number, query, vote, scale)
        if number not in best or match.nats > best[number].nats:
            best[number] = match
    return list(best.values())


def _candidates(index: Index, query: Query, kind: Kind, most: int) -> list[tuple[int, float]]:
    """Vote: the mean over the query's windows of the most similar window of each piece."""
    windows = query.windows(_MOST_WINDOWS)
    similarity, row = index.search_vectors(windows, kind, _NEIGHBOURS)
    if not row.size:
        return []
    floor = similarity.min(axis=1)  # what was not found is no better
    pieces = np.where(row >= 0, index.windows["piece"][np.maximum(row, 0)], -1)
    found, place = np.unique(pieces[pieces >= 0], return_inverse=True)
    best = np.repeat(floor[:, None], len(found), axis=1)
    query_window = np.nonzero(row >= 0)[0]
    np.maximum.at(best, (query_window, place), similarity[row >= 0])
    votes = best.mean(axis=0)
    order = np.argsort(-votes, kind="stable")[:most]
    return [(int(found[number]), float(votes[number])) for number in order]


def _decode(index: Index, number: int, query: Query, vote: float, scale: float) -> Match:
    piece, listed = index.load_piece(number), index.pieces[number]
    found = [find_passage(passage, piece, scale) for passage in query.passages()]
    weight = np.array([each.n_groups for each in found], np.float64)
    values = np.array([(each.likelihood, each.backwards, each.free) for each in found])
    likelihood, backwards, free = (weight @ values / weight.sum()).tolist()
    evidence = Evidence(likelihood, backwards, free, vote, int(weight.sum()))
    nats = match_nats(evidence, query.kind, listed.kind)
    best = max(found, key=lambda each: each.likelihood)
    where = _place(piece, best, found)
    return Match(listed.path, listed.kind, nats, *where, query.semitones, evidence)


def _place(
    piece: EncodedPiece, best: FoundPassage, found: list[FoundPassage]
) -> tuple[int | None, int | None, PageBox | None, float | None, float | None]:
    """Return page, system and box, or the seconds, of the passage that is found best."""
    if piece.kind == "recording":
        first, stop = best.first, best.stop
        if len(found) > 1:  # passages of one query in the order of the piece
            first, stop = min(each.first for each in found), max(each.stop for each in found)
        return None, None, None, piece.seconds(first), piece.seconds(stop)
    columns = piece.columns[best.first : best.stop]
    here = columns[columns["system"] == np.bincount(columns["system"]).argmax()]  # where most of it is
    page = int(here["page"][0])
    on_page = np.unique(piece.columns["system"][piece.columns["page"] == page])
    system = int(np.searchsorted(on_page, here["system"][0])) + 1
    box = (float(here["x0"].min()), float(here["y0"].min()), float(here["x1"].max()), float(here["y1"].max()))
    return page, system, box, None, None


def _clock(seconds: float) -> str:
    """Write a time as minutes and seconds.

    >>> _clock(75.4)
    '1:15.4'
    """
    minutes, rest = divmod(round(seconds, 1), 60)
    return f"{int(minutes)}:{rest:04.1f}"
