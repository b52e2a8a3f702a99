"""Fitting the probability that a recording is of a score: right pairs against wrong ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields

import numpy as np

from fusili_benchmarks.calibration import (
    area_under_curve,
    calibration_error,
    false_alarms,
    fit_logistic,
    held_out,
    reliability_table,
)
from fusili_benchmarks.performances import Performance, excerpt
from fusili_mir.alignment.encoded_alignment import align_encoded
from fusili_mir.arrays import Bool, Float64
from fusili_mir.decoding.certainty import PieceWeights
from fusili_mir.decoding.rough_search import DecodingOptions
from fusili_mir.errors import InputError
from fusili_mir.model.encoded import EncodedAudio
from fusili_training.random_streams import random_stream

__all__ = ["SeenPair", "fit_piece", "piece_report", "seen_pairs"]

_LENGTHS_SEC = (None, 60.0, 30.0)  # whole recordings, and excerpts of them
_EDGES = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 1.01)


@dataclass(frozen=True)
class SeenPair:
    """A score and a recording.

    Attributes
    ----------
    group : str
        What is held out together: the composer, or the song, of the score.
    knowledge : str
        "score" or "images".
    length : str
        How much of the recording was heard.
    is_right : bool
        Whether the recording is of the score.
    clues : np.ndarray [shape=(n_clues,)]
    """

    group: str
    knowledge: str
    length: str
    is_right: bool
    clues: Float64


def seen_pairs(
    name: str,
    groups: dict[str, str],
    performance: Performance,
    audio_of: Callable[[str], EncodedAudio],
    scale: float,
    options: DecodingOptions,
) -> list[SeenPair]:
    """Align the pages of a performance with its own recording and with those of others.

    Parameters
    ----------
    name : str
    groups : dict of str
        Group of every performance.
    performance : Performance
    audio_of : callable
        Returns the recording of a performance.
    scale : float
    options : DecodingOptions

    Returns
    -------
    list of SeenPair
        Pairs in which nothing sounds like the score are refused by the decoder, and not among them.
    """
    rng = random_stream(0, "pairs", name)
    own = name.split(".")[0]  # a song is itself in any layout, clean or worn
    others = [other for other in groups if other.split(".")[0] != own]
    pairs = []
    for length_sec in _LENGTHS_SEC:
        for is_right in (True, False):
            audio = performance.audio if is_right else audio_of(str(rng.choice(others)))
            if length_sec is not None:
                if audio.grid.end_sec < length_sec + 10:
                    continue
                start_sec = float(rng.uniform(0, audio.grid.end_sec - length_sec - 5))
                audio = excerpt(audio, start_sec, length_sec)
            length = "whole" if length_sec is None else f"{length_sec:g} s"
            for knowledge in ("score", "images"):
                has_score = knowledge == "score"
                pages, encoded = (
                    (performance.pages, performance.score)
                    if has_score
                    else (performance.scan, performance.scanned)
                )
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        path = align_encoded(pages, encoded, audio, scale, options=options).path
                except InputError:
                    continue
                if path.clues is not None:
                    clues = path.clues.of_piece.row()
                    pairs.append(SeenPair(groups[name], knowledge, length, is_right, clues))
    return pairs


def fit_piece(pairs: Sequence[SeenPair]) -> dict[str, float]:
    """Fit the weights to all pairs; as a table for a manifest."""
    clues, right = _arrays(pairs)
    return asdict(PieceWeights(*(round(float(weight), 4) for weight in fit_logistic(clues, right))))


def piece_report(pairs: Sequence[SeenPair]) -> str:
    """Measure the regression on groups that it was not fitted to, beside what single clues tell."""
    clues, right = _arrays(pairs)
    groups = [each.group for each in pairs]
    rows, targets = [each.clues[None] for each in pairs], [np.array([float(each.is_right)]) for each in pairs]
    odds = np.concatenate(held_out(groups, rows, targets, lambda x, y: fit_logistic(x, y > 0)))
    said = 1 / (1 + np.exp(-odds))
    names = [field.name for field in fields(PieceWeights)][:-1]
    alone = ", ".join(
        f"{name} {area_under_curve(right, column):.3f}" for name, column in zip(names, clues.T, strict=True)
    )
    by_order = fit_logistic(clues[:, :1], right)
    lines = [
        "| recordings | right, wrong | area under the curve | wrong ones above 95 % of the right "
        "| right below 0.5 | wrong above 0.5 |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for length in ("whole", "60 s", "30 s", "all"):
        some = np.array([length in (each.length, "all") for each in pairs])
        lines.append(f"| {length} | {_row(right[some], said[some])} |")
    told = 1 / (1 + np.exp(-(clues[:, 0] * by_order[0] + by_order[1])))
    lines.append(f"| all, by order alone | {_row(right, told)} |")
    return "\n".join(
        [
            *lines,
            "",
            reliability_table(right, said, _EDGES),
            f"\ncalibration error {100 * calibration_error(right, said):.1f} points; areas of single clues: "
            f"{alone}; order alone: weight {by_order[0]:.2f}, base {by_order[1]:.2f}",
        ]
    )


def _row(right: Bool, said: Float64) -> str:
    return (
        f"{np.count_nonzero(right)}, {np.count_nonzero(~right)} | {area_under_curve(right, said):.3f} "
        f"| {100 * false_alarms(right, said):.1f} % | {100 * np.mean(said[right] < 0.5):.1f} % "
        f"| {100 * np.mean(said[~right] >= 0.5):.1f} %"
    )


def _arrays(pairs: Sequence[SeenPair]) -> tuple[Float64, Bool]:
    return np.stack([each.clues for each in pairs]), np.array([each.is_right for each in pairs])
