"""The validation split of MSMD in batches: the paper's local criterion for the best checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import soxr

from fusili_mir.errors import InputError
from fusili_mir.model.bundle import ImageSpec
from fusili_training.data.batch import Batch, collate
from fusili_training.data.shard_folder import Pair
from fusili_training.evaluation.msmd import MsmdTree
from fusili_training.evaluation.pair_encoder import PROTOCOL_SEC
from fusili_training.loop.distributed import ProcessRanks
from fusili_training.model.model import FusiliModel

__all__ = ["MsmdBatches"]

_SPLIT = "valid"


class MsmdBatches:
    """The pieces of MSMD's validation split that fall to a rank, as squares with 20 s of sound.

    Parameters
    ----------
    folder : str
        Folder of MSMD pieces.
    split_file : str, optional
        MSMD's split file; without one, all pieces of the folder are used.
    model : FusiliModel
        A model that takes squares.
    ranks : ProcessRanks
    batch_size : int
        Pairs per batch, over all ranks.
    """

    def __init__(
        self, folder: str, split_file: str | None, model: FusiliModel, ranks: ProcessRanks, batch_size: int
    ) -> None:
        geometry = model.image.geometry
        if geometry.width_px != geometry.height_px:
            raise InputError("data.msmd is for models that take squares; leave it empty for staff strips")
        if not Path(folder).is_dir():
            raise InputError(f"data.msmd is {folder}, which is no folder; expected one of MSMD pieces")
        self._rate_hz = model.audio.geometry.sample_rate_hz
        self._tree = MsmdTree(
            Path(folder), _square(geometry.height_px), (_SPLIT,) if split_file else (), split_file
        )
        self._pieces = self._tree.pieces[ranks.rank :: ranks.n_ranks]
        self._batch_size = max(1, batch_size // ranks.n_ranks)

    def __iter__(self) -> Iterator[Batch]:
        held: list[Pair] = []
        for piece in self._pieces:
            for pair in self._tree.read_piece(piece):
                held.append(pair)
                if len(held) == self._batch_size:
                    yield self._batch(held)
                    held = []
        if held:
            yield self._batch(held)

    def _batch(self, pairs: list[Pair]) -> Batch:
        return collate([self._at_model_rate(pair) for pair in pairs], round(PROTOCOL_SEC * self._rate_hz))

    def _at_model_rate(self, pair: Pair) -> Pair:
        if pair.sample_rate_hz == self._rate_hz:
            return pair
        waveform = soxr.resample(pair.waveform, pair.sample_rate_hz, self._rate_hz)
        return Pair(
            pair.key,
            pair.mutant_of,
            pair.image,
            np.asarray(waveform, np.float32),
            pair.truth,
            pair.strip_height_px,
            self._rate_hz,
        )


def _square(side_px: int) -> ImageSpec | None:
    """Return what `MsmdTree` needs to know of an image: None stands for the paper's squares."""
    if side_px != 224:
        raise InputError(f"data.msmd is for squares of 224 px; the model takes {side_px}")
    return None
