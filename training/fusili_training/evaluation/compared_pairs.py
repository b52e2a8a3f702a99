"""Pairs with their similarity matrix, from whichever system."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fusili_mir.arrays import Float32
from fusili_mir.geometry import FrameGrid, PatchGrid
from fusili_mir.model.encoder import Encoder
from fusili_training.data.shard_folder import Pair
from fusili_training.evaluation.matrices import MatrixFiles
from fusili_training.evaluation.pair_encoder import clips_divide_the_protocol, compare_squares, encode_pairs
from fusili_training.truth import TruthArray

__all__ = ["ComparedPair", "MatrixGrid", "compare_by_bundle", "compare_by_matrices"]


@dataclass(frozen=True, eq=False)
class ComparedPair:
    """A pair's similarities [shape=(N, M)] on the grids of its system, and its truth."""

    key: str
    similarity: Float32
    patch_grid: PatchGrid
    frame_grid: FrameGrid
    truth: TruthArray


@dataclass(frozen=True)
class MatrixGrid:
    """The grid of another system: `rows` x `cols` patches over the image, and frames over `clip_sec` seconds."""

    rows: int
    cols: int
    clip_sec: float

    def patches(self, pair: Pair) -> PatchGrid:
        """Return the patches of a pair's image."""
        height_px, width_px = pair.image.shape
        return PatchGrid(self.rows, self.cols, width_px / self.cols, height_px / self.rows)

    def frames(self, n_frames: int) -> FrameGrid:
        """Return the frames of a clip."""
        return FrameGrid(n_frames, self.clip_sec / n_frames)


def compare_by_bundle(encoder: Encoder, pairs: Iterable[Pair]) -> Iterator[ComparedPair]:
    """Compare pairs by the cosines of a bundle; those of squares are computed on its device."""
    if clips_divide_the_protocol(encoder):
        for square, patches, frames, similarity in compare_squares(encoder, pairs):
            yield ComparedPair(square.key, similarity, patches, frames, square.truth)
        return
    for pair in encode_pairs(encoder, pairs):
        yield ComparedPair(pair.key, pair.similarity, pair.patch_grid, pair.frame_grid, pair.truth)


def compare_by_matrices(
    files: MatrixFiles, grid: MatrixGrid, pairs: Iterable[Pair]
) -> Iterator[ComparedPair]:
    """Compare pairs by matrices from files; pairs without a file are skipped."""
    for pair in pairs:
        if pair.key in files:
            matrix = files.read(pair.key)
            yield ComparedPair(pair.key, matrix, grid.patches(pair), grid.frames(matrix.shape[1]), pair.truth)
