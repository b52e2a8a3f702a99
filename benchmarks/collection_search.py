"""Searching a collection as a user would: which piece is it, where in it, and is it in the collection at all?

    python benchmarks/collection_search.py measure FOLDER    # queries of test pieces: the tables
    python benchmarks/collection_search.py fit FOLDER        # queries of validation pieces: weights

Both search the same two indexes: all scores of the corpus that the runtime reads, and recordings of songs. FOLDER
keeps recordings, photo-like pages (another font, degraded, JPEG), indexes and answers. What is there is not made
again: a run that is stopped goes on where it was. With `--scores` and `--recordings`, those of the pieces with
queries come first, then other test and validation pieces, then songs for training.

Queries: seconds of sound, of a recording for its score and of another performance for the recording, and a
photo-like first page. A query that is not in the collection is the same one with its own piece taken out of the
answers. An alarm is such a query whose best answer is as probable as the threshold.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from fusili_benchmarks.collection_answers import Answer, Questioner
from fusili_benchmarks.collection_pieces import choose_songs, list_scores, make_pieces
from fusili_mir.arrays import Float64
from fusili_mir.collection.building import build_index
from fusili_mir.collection.kinds import Kind
from fusili_mir.collection.match_probability import WEIGHTS, features
from fusili_mir.model.bundle import default_bundle, load_bundle
from fusili_mir.model.encoder import Encoder

SOUNDFONT = "TimGM6mb"
EVERYTHING = 10**6
RIGHT_RECALL = 0.95
FEW_ALARMS = 0.05
RIDGE = 0.01


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("job", choices=["fit", "measure"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--corpus", type=Path, default=Path("../shared/data/manifest.csv"))
    parser.add_argument("--scores", type=int, default=EVERYTHING, help="scores in the index")
    parser.add_argument("--recordings", type=int, default=300, help="recordings in the index")
    parser.add_argument("--pieces", type=int, default=EVERYTHING, help="pieces with queries")
    parser.add_argument("--first", type=int, default=0, help="leave out so many songs")
    parser.add_argument("--queries", type=int, default=2, help="excerpts of each recording")
    parser.add_argument("--seconds", type=float, default=10.0, help="length of an excerpt")
    parser.add_argument("--again", type=int, default=40, help="pieces that are played a second time")
    parser.add_argument("--photos", type=int, default=EVERYTHING, help="pieces whose page is asked with")
    parser.add_argument("--candidates", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--constants", action="store_true", help="fit the constants only, as for another model"
    )
    parser.add_argument("--model", type=Path, help="bundle; by default the one that ships")
    arguments = parser.parse_args()
    bundle = load_bundle(arguments.model) if arguments.model else default_bundle()
    encoder = Encoder(bundle, "cpu", n_threads=1)
    asked = ask(arguments, encoder)
    if arguments.job == "fit":
        print_weights(asked, arguments.constants)
    else:
        print_found(asked, arguments.seconds)
        print_recognised(asked, arguments.seconds)


def ask(arguments: argparse.Namespace, encoder: Encoder) -> list[Answer]:
    """Make what is not there yet, and ask all queries."""
    folder = Path(arguments.folder).resolve()
    split = "valid" if arguments.job == "fit" else "test"
    songs = {each: choose_songs(arguments.corpus, each) for each in ("test", "valid", "train")}
    own_first = [
        *songs[split],
        *(song for each in songs.values() for song in each if each is not songs[split]),
    ]
    in_index = own_first[: arguments.recordings]
    recordings = {
        piece.score: piece.recording
        for piece in make_pieces(in_index, folder / "heard", SOUNDFONT, photographed=False)
    }
    chosen = songs[split][arguments.first :][: arguments.pieces]
    pieces = list(make_pieces(chosen, folder / "heard", SOUNDFONT))
    again = list(
        make_pieces(chosen[: arguments.again], folder / "heard-again", SOUNDFONT, seed=1, photographed=False)
    )
    own = [piece.score for piece in pieces]
    scores = list(dict.fromkeys([*own, *list_scores(arguments.corpus)]))
    jobs, bundle = arguments.jobs, encoder.bundle
    score_index = build_index(scores[: arguments.scores], folder / "scores", jobs=jobs, model=bundle).index
    recording_index = build_index(
        [*recordings.values()], folder / "recordings", jobs=jobs, model=bundle
    ).index
    print(f"{score_index}\n{recording_index}\n{len(pieces)} {split} pieces with queries\n")
    questioner = Questioner(folder / "answers.jsonl", encoder, arguments.candidates)
    asked: list[Answer] = []
    for piece in pieces:
        asked += questioner.listen(
            score_index, piece, "score", piece.score, arguments.seconds, arguments.queries
        )
    for piece in again:
        if piece.score in recordings:
            right = recordings[piece.score]
            asked += questioner.listen(
                recording_index, piece, "recording", right, arguments.seconds, arguments.queries
            )
    for piece in pieces[: arguments.photos]:
        if piece.score in recordings:
            asked += questioner.show(recording_index, piece.photo, "recording", recordings[piece.score])
        asked += questioner.show(score_index, piece.photo, "score", piece.score)
    return asked


def directions(asked: list[Answer]) -> dict[tuple[Kind, Kind], list[Answer]]:
    found: dict[tuple[Kind, Kind], list[Answer]] = {}
    for each in asked:
        found.setdefault((each.query, each.kind), []).append(each)
    return found


def print_weights(asked: list[Answer], only_constants: bool) -> None:
    for (query, kind), chosen in directions(asked).items():
        rows = np.array([features(match.evidence) for each in chosen for match in each.matches])
        right = np.array([match.path == each.right for each in chosen for match in each.matches])
        slopes = np.array(WEIGHTS[query, kind][1:])
        weights = (
            fit_constant(rows, right, len(chosen), slopes)
            if only_constants
            else fit(rows, right, len(chosen))
        )
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


def fit_constant(
    rows: Float64,
    right: np.ndarray,  # type: ignore[type-arg]
    n_queries: int,
    slopes: Float64,
) -> Float64:
    """Fit the constant in the same way, with these slopes: another model has similarities of another height."""
    n_wrong = max(1, int((~right).sum()))
    weight = np.where(right, 1.0, n_queries / n_wrong)
    odds = rows[:, 1:] @ slopes

    def loss(constant: float) -> float:
        return float((weight * np.logaddexp(0, np.where(right, -1, 1) * (odds + constant))).sum())

    found = minimize_scalar(loss, bounds=(-60, 60), method="bounded").x
    return np.concatenate([[found - np.log(n_wrong / n_queries)], slopes])


def print_found(asked: list[Answer], query_sec: float) -> None:
    print("| query | among | queries | R@1 | R@10 | MRR | place | not a candidate | CPU s a query |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for (query, kind), chosen in directions(asked).items():
        ranks = np.array([each.rank for each in chosen])
        placed = [each.is_placed for each in chosen if each.is_placed is not None]
        cells = [
            *(named(query, query_sec), f"{kind}s", str(len(chosen))),
            *(f"{np.mean(ranks < k):.3f}" for k in (1, 10)),
            f"{np.mean(1 / (1 + ranks)):.3f}",
            f"{np.mean(placed):.3f}" if placed else "-",
            str(int(np.isinf(ranks).sum())),
            f"{np.mean([each.cpu_sec for each in chosen]):.2f}",
        ]
        print(f"| {' | '.join(cells)} |")


def print_recognised(asked: list[Answer], query_sec: float) -> None:
    """Print, for some thresholds, how often the right answer reaches it and how often one that must be wrong."""
    print("\n| query | among | threshold | probability | right answers | alarms |")
    print("| --- | --- | --- | --- | --- | --- |")
    for (query, kind), chosen in directions(asked).items():
        right = np.array([each.right_nats for each in chosen])
        wrong = np.array([each.wrong_nats for each in chosen])
        for name, threshold in (
            (f"recall {RIGHT_RECALL:.0%}", np.quantile(right, 1 - RIGHT_RECALL, method="lower")),
            (f"alarms {FEW_ALARMS:.0%}", np.quantile(wrong, 1 - FEW_ALARMS, method="higher")),
            ("0.5", 0.0),
        ):
            cells = [
                *(named(query, query_sec), f"{kind}s", name),
                f"{1 / (1 + np.exp(-threshold)):.3f}",
                f"{np.mean(right >= threshold):.3f}",
                f"{np.mean(wrong >= threshold):.3f}",
            ]
            print(f"| {' | '.join(cells)} |")


def named(query: Kind, query_sec: float) -> str:
    return f"{query_sec:g} s of sound" if query == "recording" else "photo-like page"


if __name__ == "__main__":
    main()
