"""Sources of pairs: piece by piece, with the same types whatever lies on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from fusili_mir.boundary import refuse_address
from fusili_mir.errors import InputError
from fusili_mir.model.bundle import ImageSpec
from fusili_training.data.shard_folder import Pair

__all__ = ["PairSource", "open_source"]


class PairSource(Protocol):
    """The pairs of a dataset.

    Attributes
    ----------
    name : str
    pieces : sequence of str
        In a fixed order.
    has_truth : bool
        Whether the places and times of the notes are known.
    dropped : Counter
        Number of pairs left out while reading, by reason.
    """

    name: str
    pieces: Sequence[str]
    has_truth: bool
    dropped: Counter[str]

    def read_piece(self, piece: str) -> Iterator[Pair]:
        """Yield the pairs of a piece in reading order; together they show every measure once."""
        ...


def open_source(
    data: str | Path,
    image: ImageSpec | None,
    splits: Sequence[str] = (),
    split_file: str | Path | None = None,
) -> PairSource:
    """Open a dataset: a folder of shards, a folder in MSMD's layout, or a CSV table of images and recordings.

    Parameters
    ----------
    data : str or Path
    image : ImageSpec, optional
        Images that the bundle takes; None: the paper's squares of 224 x 224 px.
    splits : sequence of str
        By default ``("test",)`` for shards, and all pieces otherwise.
    split_file : str or Path, optional
        YAML file that lists the pieces of MSMD's splits.

    Returns
    -------
    PairSource
    """
    from fusili_training.evaluation.listed_pairs import ListedPairs
    from fusili_training.evaluation.msmd import MsmdTree
    from fusili_training.evaluation.shard_dataset import ShardDataset

    path = Path(data)
    if "://" in str(data) or (path / "manifest.json").is_file():
        return ShardDataset(data, splits or ("test",), image)
    if path.suffix.lower() == ".csv":
        return ListedPairs(path, image)
    if path.is_dir() and next(path.glob("*/scores/*/img"), None) is not None:
        return MsmdTree(path, image, splits, split_file)
    refuse_address(data, "copy the folder to this machine")
    found = (
        "a folder of another kind"
        if path.is_dir()
        else "a file of another kind"
        if path.exists()
        else "not found"
    )
    raise InputError(
        f"{data}: {found}; expected a folder written by fusili-mir render, a folder of MSMD pieces, or a CSV "
        "table with image_filename and audio_filename"
    )
