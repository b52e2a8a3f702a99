"""Queries to a collection with their answers, kept in a file: a run that is stopped goes on where it was."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fusili_benchmarks.collection_pieces import CollectionPiece
from fusili_mir.collection.index import Index
from fusili_mir.collection.kinds import Kind
from fusili_mir.collection.match_probability import Evidence, match_nats
from fusili_mir.collection.searching import Match, search
from fusili_mir.errors import InputError
from fusili_mir.model.encoder import Encoder

__all__ = ["Answer", "Questioner"]

_EVERYTHING = 10**6


@dataclass(frozen=True)
class Answer:
    """A query with its answers."""

    query: Kind
    kind: Kind
    right: str  # path of its piece
    matches: list[Match]
    cpu_sec: float
    is_placed: bool | None = None  # whether the place is right, if the piece is

    @property
    def rank(self) -> float:
        """How many answers come before the right one; infinite if it is not among them."""
        paths = [match.path for match in self.matches]
        return paths.index(self.right) if self.right in paths else np.inf

    @property
    def right_nats(self) -> float:
        """The odds of the right answer."""
        return max((match.nats for match in self.matches if match.path == self.right), default=-np.inf)

    @property
    def wrong_nats(self) -> float:
        """The odds of the best of the others: what would be answered if the right one were not there."""
        return max((match.nats for match in self.matches if match.path != self.right), default=-np.inf)


class Questioner:
    """Asks an index, or remembers what it answered."""

    def __init__(self, kept: Path, encoder: Encoder, candidates: int) -> None:
        self._kept, self._encoder, self._candidates = kept, encoder, candidates
        rows = kept.read_text().splitlines() if kept.exists() else []
        self._known: dict[str, dict[str, Any]] = dict(json.loads(row) for row in rows if row.endswith("]"))

    def listen(
        self, index: Index, piece: CollectionPiece, kind: Kind, right: Path, query_sec: float, n_queries: int
    ) -> Iterator[Answer]:
        """Search for excerpts of a recording; a rest of that length is left out."""
        heads = np.load(piece.heads)
        last_sec = max(0.0, float(heads["onset_sec"].max()) - query_sec)
        for start_sec in np.random.default_rng(len(heads)).uniform(0, last_sec, n_queries).tolist():
            end_sec = start_sec + query_sec
            found = self._ask(index, piece.recording, "recording", kind, start_sec=start_sec, end_sec=end_sec)
            if found is None:
                continue
            matches, cpu_sec = found
            placed = None
            if kind == "score" and matches[0].path == str(right):
                placed = _is_placed(matches[0], heads, start_sec, end_sec)
            yield Answer("recording", kind, str(right), matches, cpu_sec, placed)

    def show(self, index: Index, photo: Path, kind: Kind, right: Path) -> Iterator[Answer]:
        """Search for a page."""
        found = self._ask(index, photo, "score", kind)
        if found is not None:
            yield Answer("score", kind, str(right), *found)

    def _ask(
        self, index: Index, file: Path, query: Kind, kind: Kind, **stretch: float
    ) -> tuple[list[Match], float] | None:
        state = f"{index.manifest.id} {index.manifest.generation} {index.manifest.bundle}"
        key = f"{state} {self._candidates} {file} {kind} {stretch}"
        if key not in self._known:
            begin_sec = time.process_time()
            try:
                matches = search(
                    index,
                    file,
                    kind=kind,
                    top=_EVERYTHING,
                    model=self._encoder,
                    candidates=self._candidates,
                    **stretch,  # type: ignore[arg-type]
                )
                answer: dict[str, Any] = {
                    "cpu_sec": time.process_time() - begin_sec,
                    "matches": [asdict(match) for match in matches],
                }
            except InputError as error:
                answer = {"problem": str(error)}
            self._known[key] = json.loads(json.dumps(answer))
            with self._kept.open("a") as kept:
                kept.write(json.dumps([key, answer]) + "\n")
        found = self._known[key]
        if "problem" in found:
            print(f"left out: {found['problem']}")
            return None
        matches = [_as_weighed_now(row, query) for row in found["matches"]]
        return sorted(matches, key=lambda match: -match.nats), found["cpu_sec"]


def _as_weighed_now(row: dict[str, Any], query: Kind) -> Match:
    """Return a match that was kept, with the odds that its evidence has by the weights of today."""
    match = Match(**{**row, "evidence": Evidence(**row["evidence"])})
    return replace(match, nats=match_nats(match.evidence, query, match.kind))


def _is_placed(match: Match, heads: npt.NDArray[Any], start_sec: float, end_sec: float) -> bool:
    """Return whether the box of a match holds heads that are struck during the query."""
    assert match.box is not None
    x0, y0, x1, y1 = match.box
    near = heads[(heads["onset_sec"] >= start_sec) & (heads["onset_sec"] <= end_sec)]
    margin = (y1 - y0) / 8
    return bool(
        np.any(
            (near["page"] == match.page)
            & (near["x"] >= x0)
            & (near["x"] <= x1)
            & (near["y"] >= y0 - margin)
            & (near["y"] <= y1 + margin)
        )
    )
