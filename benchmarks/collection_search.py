"""Searching a collection as a user would: which piece is it, where in it, and is it in the collection at all?

    python benchmarks/collection_search.py fit FOLDER        # on validation pieces: weights of the probability
    python benchmarks/collection_search.py measure FOLDER    # on test pieces: the table

FOLDER keeps recordings, photo-like pages (another font, degraded, JPEG) and indexes. What is there is not made
again: a run that is stopped goes on where it was. `measure` indexes test pieces first, then validation and
training pieces up to `--scores`; all is 1,434 songs.

Queries: ten seconds of sound, of the recording for its score and of another performance for the recording, and a
photo-like first page. A query that is not in the collection is the same one
with its own piece taken out of the answers. "Alarms" is the share of these whose best answer is at least as
probable as that which 95 % of the right answers reach.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from fusili_benchmarks.collection_pieces import CollectionPiece, choose_songs, make_pieces
from fusili_mir.arrays import Float64
from fusili_mir.collection.building import build_index
from fusili_mir.collection.index import Index
from fusili_mir.collection.kinds import Kind
from fusili_mir.collection.match_probability import features
from fusili_mir.collection.searching import Match, search
from fusili_mir.errors import InputError
from fusili_mir.model.bundle import default_bundle
from fusili_mir.model.encoder import Encoder

QUERY_SEC = 10.0
SOUNDFONT = "TimGM6mb"
EVERYTHING = 10**6
RIGHT_RECALL = 0.95
RIDGE = 0.01


@dataclass(frozen=True)
class Asked:
    """A query with its answers."""

    query: Kind
    kind: Kind
    right: str  # path of its piece
    matches: list[Match]
    seconds: float
    is_placed: bool | None = None  # whether the place is right, if the piece is


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("job", choices=["fit", "measure"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--corpus", type=Path, default=Path("../shared/data/manifest.csv"))
    parser.add_argument("--pieces", type=int, default=EVERYTHING, help="pieces with recordings and photos")
    parser.add_argument("--first", type=int, default=0, help="leave out so many songs")
    parser.add_argument("--scores", type=int, default=EVERYTHING, help="scores in the index, for measure")
    parser.add_argument("--queries", type=int, default=2, help="excerpts of each recording")
    parser.add_argument("--again", type=int, default=40, help="pieces that are played a second time")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    split = "valid" if arguments.job == "fit" else "test"
    songs = choose_songs(arguments.corpus, split)[arguments.first :]
    pieces = list(make_pieces(songs[: arguments.pieces], arguments.folder / split, SOUNDFONT))
    scores = [piece.score for piece in pieces]
    if arguments.job == "measure":
        rest = [song for each in ("test", "valid", "train") for song in choose_songs(arguments.corpus, each)]
        scores = list(dict.fromkeys([*scores, *(Path(song.file) for song in rest)]))[: arguments.scores]
    again = list(
        make_pieces(songs[: arguments.again], arguments.folder / f"{split}-again", SOUNDFONT, seed=1)
    )
    recordings = [piece.recording for piece in pieces]
    index = build_index(
        [*scores, *recordings], arguments.folder / f"{split}-index", jobs=arguments.jobs
    ).index
    print(f"{index}, {len(pieces)} pieces with queries\n")
    encoder = Encoder(default_bundle(), "cpu", n_threads=1)
    asked = [
        *ask_for_scores(index, pieces, arguments.queries, encoder),
        *ask_for_recordings(index, pieces, again, arguments.queries, encoder),
        *ask_with_photos(index, pieces, encoder),
    ]
    if arguments.job == "fit":
        print_weights(asked)
    else:
        print_table(asked)


def ask_for_scores(
    index: Index, pieces: Iterable[CollectionPiece], n_queries: int, encoder: Encoder
) -> Iterator[Asked]:
    """Ask with ten seconds of sound for the score, and whether the place is right."""
    for piece in pieces:
        heads = np.load(piece.heads)
        for start_sec, matches, seconds in listen(index, piece, "score", n_queries, encoder):
            placed = None
            if Path(matches[0].path) == piece.score:
                placed = is_placed(matches[0], heads, start_sec)
            yield Asked("recording", "score", str(piece.score), matches, seconds, placed)


def ask_for_recordings(
    index: Index,
    pieces: Iterable[CollectionPiece],
    again: Iterable[CollectionPiece],
    n_queries: int,
    encoder: Encoder,
) -> Iterator[Asked]:
    """Ask with ten seconds of another performance for the recording."""
    recordings = {piece.score: piece.recording for piece in pieces}
    for other in again:
        if other.score in recordings:
            for _, matches, seconds in listen(index, other, "recording", n_queries, encoder):
                yield Asked("recording", "recording", str(recordings[other.score]), matches, seconds)


def listen(
    index: Index, piece: CollectionPiece, kind: Kind, n_queries: int, encoder: Encoder
) -> Iterator[tuple[float, list[Match], float]]:
    """Search for excerpts of a recording; yield where each starts, the answers, and CPU seconds."""
    heads = np.load(piece.heads)
    last_sec = max(0.0, float(heads["onset_sec"].max()) - QUERY_SEC)
    for start_sec in np.random.default_rng(len(heads)).uniform(0, last_sec, n_queries).tolist():
        begin = time.process_time()
        try:
            matches = search(
                index,
                piece.recording,
                kind=kind,
                top=EVERYTHING,
                start_sec=start_sec,
                end_sec=start_sec + QUERY_SEC,
                model=encoder,
            )
        except InputError as error:  # a rest of ten seconds
            print(f"left out: {error}")
            continue
        yield start_sec, matches, time.process_time() - begin


def ask_with_photos(index: Index, pieces: Iterable[CollectionPiece], encoder: Encoder) -> Iterator[Asked]:
    """Ask with photo-like pages for the recording, and for the score in another edition."""
    for piece in pieces:
        begin = time.process_time()
        matches = search(index, piece.photo, top=EVERYTHING, model=encoder)
        seconds = time.process_time() - begin
        yield Asked("score", "recording", str(piece.recording), _of_kind(matches, "recording"), seconds)
        yield Asked("score", "score", str(piece.score), _of_kind(matches, "score"), seconds)


def _of_kind(matches: list[Match], kind: Kind) -> list[Match]:
    return [match for match in matches if match.kind == kind]


def is_placed(match: Match, heads: np.ndarray, start_sec: float) -> bool:  # type: ignore[type-arg]
    """Return whether the box of a match holds heads that are struck during the query."""
    assert match.box is not None
    x0, y0, x1, y1 = match.box
    near = heads[(heads["onset_sec"] >= start_sec) & (heads["onset_sec"] <= start_sec + QUERY_SEC)]
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


def directions(asked: list[Asked]) -> list[tuple[Kind, Kind]]:
    return list(dict.fromkeys((each.query, each.kind) for each in asked))


def print_weights(asked: list[Asked]) -> None:
    for query, kind in directions(asked):
        chosen = [each for each in asked if (each.query, each.kind) == (query, kind)]
        rows, right = [], []
        for each in chosen:
            wrong = [match for match in each.matches if match.path != each.right]
            for match in [m for m in each.matches if m.path == each.right] + wrong:
                rows.append(features(match.evidence))
                right.append(match.path == each.right)
        weights = fit(np.array(rows), np.array(right), len(chosen))
        shown = ", ".join(f"{weight:.3g}" for weight in weights)
        print(f'    ("{query}", "{kind}"): ({shown}),  # {len(chosen)} queries, {len(rows)} candidates')


def fit(rows: Float64, right: np.ndarray, n_queries: int) -> Float64:  # type: ignore[type-arg]
    """Fit a logistic regression to right candidates and, weighing the same together, all wrong ones.

    The constant is then that of the candidates as they come: many wrong ones for a right one.
    """
    n_wrong = max(1, int((~right).sum()))
    weight = np.where(right, 1.0, n_queries / n_wrong)
    centre, spread = rows[:, 1:].mean(axis=0), rows[:, 1:].std(axis=0) + 1e-9
    scaled = np.column_stack([np.ones(len(rows)), (rows[:, 1:] - centre) / spread])

    def loss(weights: Float64) -> float:
        signed = np.where(right, -1, 1) * (scaled @ weights)
        return float((weight * np.logaddexp(0, signed)).sum() / n_queries + RIDGE * (weights[1:] ** 2).sum())

    found = minimize(loss, np.zeros(scaled.shape[1])).x
    slopes = found[1:] / spread
    return np.append(found[0] - slopes @ centre - np.log(n_wrong / n_queries), slopes)


def print_table(asked: list[Asked]) -> None:
    print("| query | among | queries | R@1 | R@10 | MRR | place | alarms | threshold | CPU s a query |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for query, kind in directions(asked):
        chosen = [each for each in asked if (each.query, each.kind) == (query, kind)]
        ranks = np.array([rank(each) for each in chosen], float)
        right = [match.nats for each in chosen for match in each.matches if match.path == each.right]
        missing = [-np.inf] * (len(chosen) - len(right))
        threshold = np.quantile([*missing, *right], 1 - RIGHT_RECALL, method="lower")
        best_wrong = [
            max((match.nats for match in each.matches if match.path != each.right), default=-np.inf)
            for each in chosen
        ]
        placed = [each.is_placed for each in chosen if each.is_placed is not None]
        cells = [
            "10 s of sound" if query == "recording" else "photo-like page",
            f"{kind}s",
            str(len(chosen)),
            *(f"{np.mean(ranks < k):.3f}" for k in (1, 10)),
            f"{np.mean(1 / (1 + ranks)):.3f}",
            f"{np.mean(placed):.3f}" if placed else "-",
            f"{np.mean(np.array(best_wrong) >= threshold):.3f}",
            f"{1 / (1 + np.exp(-threshold)):.3f}",
            f"{np.mean([each.seconds for each in chosen]):.2f}",
        ]
        print(f"| {' | '.join(cells)} |")


def rank(asked: Asked) -> float:
    """Return how many answers come before the right one; infinite if it is not among them."""
    paths = [match.path for match in asked.matches]
    return paths.index(asked.right) if asked.right in paths else np.inf


if __name__ == "__main__":
    main()
