"""The task of onset errors on a dataset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from fusili_mir.alignment.match_onsets import TOLERANCES_MS
from fusili_mir.arrays import Float64
from fusili_mir.errors import InputError
from fusili_mir.model.encoder import Encoder
from fusili_mir.progress import progress_bar
from fusili_training.evaluation.bootstrap import Interval
from fusili_training.evaluation.onset_errors import (
    ComparedErrors,
    errors_of_piece,
    errors_of_segment,
    median_error_ms,
    share_within,
)
from fusili_training.evaluation.pair_encoder import encode_pairs
from fusili_training.evaluation.report import Measurement
from fusili_training.evaluation.sources import PairSource
from fusili_training.evaluation.whole_pieces import PieceSource

__all__ = ["OnsetResult", "measure_piece_onsets", "measure_segment_onsets"]

_NAMES = {"score": "pieces, with score", "images": "pieces, images alone"}


@dataclass(frozen=True, eq=False)
class OnsetResult:
    """The measurements, the number of pieces or segments behind them, and all errors in seconds by variant."""

    measurements: tuple[Measurement, ...]
    n_pairs: int
    errors: dict[str, Float64]


def measure_segment_onsets(encoder: Encoder, source: PairSource, progress: bool = False) -> OnsetResult:
    """Measure onset errors within segments that show one line of music each."""
    if encoder.bundle.image.segment == "square":
        raise InputError(
            f"{source.name}: squares show several lines of music, which have no single path; measure onsets on "
            "MSMD or on a table of scores"
        )
    pieces: list[ComparedErrors] = []
    n_pairs = 0
    for piece in progress_bar(source.pieces, "onsets", shown=progress):
        found = [
            errors_of_segment(pair, encoder.bundle.manifest.scale)
            for pair in encode_pairs(encoder, source.read_piece(piece))
        ]
        n_pairs += len(found)
        if found:
            pieces.append(_join(found))
    return _result({"segments": pieces}, n_pairs)


def measure_piece_onsets(encoder: Encoder, source: PieceSource, progress: bool = False) -> OnsetResult:
    """Measure onset errors in whole pieces, from images alone and, where known, with the symbolic score."""
    pieces: dict[str, list[ComparedErrors]] = {_NAMES[knowledge]: [] for knowledge in source.knowledge}
    for piece in progress_bar(source.pieces, "onsets", shown=progress):
        for knowledge in source.knowledge:
            with source.open(piece, knowledge) as whole:
                pieces[_NAMES[knowledge]].append(errors_of_piece(whole, encoder))
    return _result(pieces, len(source.pieces))


def _join(parts: Sequence[ComparedErrors]) -> ComparedErrors:
    return ComparedErrors(
        np.concatenate([part.model for part in parts]),
        np.concatenate([part.straight for part in parts]),
        np.concatenate([part.shuffled for part in parts]),
    )


def _result(by_variant: dict[str, list[ComparedErrors]], n_pairs: int) -> OnsetResult:
    if not all(by_variant.values()):
        raise InputError("no notes to measure; expected pieces with known onsets")
    metrics: dict[str, Callable[[Sequence[Float64]], Interval]] = {"median ms": median_error_ms}
    for tolerance in TOLERANCES_MS:
        metrics[f"within {tolerance} ms"] = partial(share_within, tolerance_ms=tolerance)
    measurements = [
        _measurement(variant, metric, measure, pieces)
        for variant, pieces in by_variant.items()
        for metric, measure in metrics.items()
    ]
    errors = {variant: _join(pieces).model for variant, pieces in by_variant.items()}
    return OnsetResult(tuple(measurements), n_pairs, errors)


def _measurement(
    variant: str,
    metric: str,
    measure: Callable[[Sequence[Float64]], Interval],
    pieces: Sequence[ComparedErrors],
) -> Measurement:
    model = [piece.model for piece in pieces]
    baselines = {
        "straight line": measure([piece.straight for piece in pieces]).value,
        "shuffled": measure([piece.shuffled for piece in pieces]).value,
    }
    n_notes = sum(len(errors) for errors in model)
    return Measurement("onsets", variant, "", metric, measure(model), n_notes, baselines)
