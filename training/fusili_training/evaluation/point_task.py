"""The task of point-and-retrieve on a dataset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fusili_mir.arrays import Float32
from fusili_mir.errors import InputError
from fusili_mir.model.encoder import Encoder
from fusili_mir.progress import progress_bar
from fusili_training.data.shard_folder import Pair
from fusili_training.evaluation.baselines import even_reading, main_row
from fusili_training.evaluation.bootstrap import Interval, ratio_interval
from fusili_training.evaluation.compared_pairs import MatrixGrid
from fusili_training.evaluation.judging_grid import JudgingGrid
from fusili_training.evaluation.local_task import OWN_GRID, Grids
from fusili_training.evaluation.matching_rules import EXACT, POINT, MatchingRule
from fusili_training.evaluation.matrices import MatrixFiles
from fusili_training.evaluation.pair_encoder import EncodedPair, encode_pairs
from fusili_training.evaluation.point_and_retrieve import (
    BlockSimilarity,
    PointCounts,
    PointSegment,
    chance_point,
    judge_point,
)
from fusili_training.evaluation.report import Measurement
from fusili_training.evaluation.sources import PairSource
from fusili_training.random_streams import random_stream
from fusili_training.truth import TruthArray

__all__ = ["PointResult", "measure_point", "measure_point_matrices"]


@dataclass(frozen=True)
class PointResult:
    """The measurements, and the number of segments behind them."""

    measurements: tuple[Measurement, ...]
    n_pairs: int


@dataclass
class _PieceCounts:
    model: PointCounts
    chance: PointCounts
    straight: PointCounts
    shuffled: PointCounts | None


def measure_point(encoder: Encoder, source: PairSource, grids: Grids, progress: bool = False) -> PointResult:
    """Measure point-and-retrieve with a bundle, the embeddings of one piece in memory at a time.

    Parameters
    ----------
    encoder : Encoder
    source : PairSource
        Pairs with known notes.
    grids : Grids
    progress : bool
        Whether to show a bar on a terminal.

    Returns
    -------
    PointResult
    """
    counts: dict[str, list[_PieceCounts]] = {name: [] for name in grids}
    n_pairs = 0
    for piece in progress_bar(source.pieces, "point-and-retrieve", shown=progress):
        pairs = list(encode_pairs(encoder, source.read_piece(piece)))
        n_pairs += len(pairs)
        for name, grid_of in grids.items():
            on_grid = [grid_of(pair.patch_grid, pair.frame_grid) for pair in pairs]
            counts[name].append(_count_piece(piece, pairs, on_grid))
    return _result(source, counts, n_pairs)


def measure_point_matrices(
    files: MatrixFiles,
    grid: MatrixGrid,
    source: PairSource,
    a2i_rule: MatchingRule = POINT,
    i2a_rule: MatchingRule = EXACT,
    progress: bool = False,
) -> PointResult:
    """Measure point-and-retrieve with matrices from files, ``IMAGE_KEY@AUDIO_KEY.npy``.

    Parameters
    ----------
    files : MatrixFiles
        One matrix for every two segments of a piece; pieces without any are skipped.
    grid : MatrixGrid
    source : PairSource
        Pairs with known notes.
    a2i_rule, i2a_rule : MatchingRule
    progress : bool
        Whether to show a bar on a terminal.

    Returns
    -------
    PointResult
    """
    counts: list[_PieceCounts] = []
    n_pairs = 0
    for piece in progress_bar(source.pieces, "point-and-retrieve", shown=progress):
        pairs = list(source.read_piece(piece))
        if not any(_pair_name(pair, pair) in files for pair in pairs):
            continue
        for image in pairs:
            for recording in pairs:
                if _pair_name(image, recording) not in files:
                    raise InputError(
                        f"no matrix {_pair_name(image, recording)}.npy; expected one for every two segments"
                    )
        on_grid = []
        for pair in pairs:
            n_frames = files.read(_pair_name(pair, pair)).shape[1]
            on_grid.append(JudgingGrid.own(grid.patches(pair), grid.frames(n_frames)))
        truths = [pair.truth for pair in pairs]
        segments = [PointSegment.of(*each) for each in zip(truths, on_grid, strict=True)]

        def block(image: int, recording: int, pairs: Sequence[Pair] = pairs) -> Float32:
            return files.read(_pair_name(pairs[image], pairs[recording]))

        counts.append(
            _PieceCounts(
                judge_point(segments, block, a2i_rule, i2a_rule),
                chance_point(segments, a2i_rule, i2a_rule),
                judge_point(segments, _even_reading(segments, truths), a2i_rule, i2a_rule),
                None,
            )
        )
        n_pairs += len(pairs)
    return _result(source, {OWN_GRID: counts}, n_pairs)


def _pair_name(image: Pair, recording: Pair) -> str:
    return f"{image.key}@{recording.key}"


def _count_piece(piece: str, pairs: Sequence[EncodedPair], grids: Sequence[JudgingGrid]) -> _PieceCounts:
    truths = [pair.truth for pair in pairs]
    segments = [PointSegment.of(*each) for each in zip(truths, grids, strict=True)]
    frames = [
        pair.frames[grid.own_frame[: segment.right.shape[1]]]
        for pair, grid, segment in zip(pairs, grids, segments, strict=True)
    ]
    shuffled: list[Float32] = []
    if frames:
        together = np.concatenate(frames)
        together = together[random_stream(0, "point", piece).permutation(len(together))]
        shuffled = np.split(together, np.cumsum([len(each) for each in frames])[:-1])

    def cosines(heard: Sequence[Float32]) -> BlockSimilarity:
        return lambda image, recording: grids[image].merge_columns(pairs[image].patches @ heard[recording].T)

    return _PieceCounts(
        judge_point(segments, cosines(frames)),
        chance_point(segments),
        judge_point(segments, _even_reading(segments, truths)),
        judge_point(segments, cosines(shuffled)),
    )


def _even_reading(segments: Sequence[PointSegment], truths: Sequence[TruthArray]) -> BlockSimilarity:
    """Read all columns of the piece at an even pace, in each segment along the row with the most note heads."""
    cols = [segment.patches.cols for segment in segments]
    n_frames = [segment.right.shape[1] for segment in segments]
    rows = [main_row(truth, segment.patches) for truth, segment in zip(truths, segments, strict=True)]

    def block(image: int, recording: int) -> Float32:
        columns = (sum(cols[:image]) + np.arange(cols[image]) + 0.5) / sum(cols)
        frames = (sum(n_frames[:recording]) + np.arange(n_frames[recording]) + 0.5) / max(1, sum(n_frames))
        return even_reading(columns, frames, segments[image].patches, rows[image])

    return block


def _result(source: PairSource, counts: dict[str, list[_PieceCounts]], n_pairs: int) -> PointResult:
    if not n_pairs:
        raise InputError(f"{source.name}: no pairs to judge; expected pairs with notes")
    measurements = [
        each
        for name, pieces in counts.items()
        for each in (
            _measurement(name, pieces, "A2I", _frames_right),
            _measurement(name, pieces, "I2A", _patches_right),
        )
    ]
    return PointResult(tuple(measurements), n_pairs)


def _frames_right(counts: PointCounts) -> tuple[float, int]:
    return counts.n_frames_right, counts.n_frames


def _patches_right(counts: PointCounts) -> tuple[float, int]:
    return counts.n_patches_right, counts.n_patches


def _measurement(
    name: str,
    pieces: Sequence[_PieceCounts],
    direction: str,
    right_of: Callable[[PointCounts], tuple[float, int]],
) -> Measurement:
    def share(counts: Sequence[PointCounts]) -> Interval:
        right, asked = zip(*map(right_of, counts), strict=True)
        return ratio_interval(right, asked)

    baselines = {
        "chance": share([piece.chance for piece in pieces]).value,
        "straight line": share([piece.straight for piece in pieces]).value,
    }
    shuffled = [piece.shuffled for piece in pieces if piece.shuffled is not None]
    if shuffled:
        baselines["shuffled"] = share(shuffled).value
    n_asked = sum(right_of(piece.model)[1] for piece in pieces)
    return Measurement(
        "point", name, direction, "top-1", share([piece.model for piece in pieces]), n_asked, baselines
    )
