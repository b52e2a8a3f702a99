"""Shards as an evaluation dataset: originals only, each layout by itself, without overlap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from fusili_mir.errors import InputError
from fusili_mir.model.bundle import ImageSpec
from fusili_training.data.shard_folder import Pair, PairEntry, ShardFolder

__all__ = ["ShardDataset"]


class ShardDataset:
    """The pairs of some splits of a rendered corpus.

    A piece rendered in several layouts counts as several pieces: each layout has a recording of its own.
    Overlapping squares are thinned out until every measure is shown once.

    Parameters
    ----------
    url : str or Path
        The folder, or any fsspec URL.
    splits : sequence of str
    image : ImageSpec, optional
        Images that the bundle takes; checked against the shards.
    """

    has_truth = True

    def __init__(self, url: str | Path, splits: Sequence[str], image: ImageSpec | None = None) -> None:
        self.name = f"{Path(str(url)).name} ({', '.join(splits)})"
        self.dropped: Counter[str] = Counter()
        self._entries: dict[str, list[tuple[ShardFolder, PairEntry]]] = {}
        for split in splits:
            folder = ShardFolder(url, split)
            _check_shape(folder, image)
            step = _overlap(folder)
            for entry in folder.entries:
                if entry.mutant_of is not None:
                    continue
                if int(entry.key.split(".")[2]) % step:
                    self.dropped["overlapping"] += 1
                    continue
                self._entries.setdefault(entry.rendering, []).append((folder, entry))
        self.pieces: Sequence[str] = sorted(self._entries)

    def read_piece(self, piece: str) -> Iterator[Pair]:
        """Yield the pairs of a rendering in the order of the score."""
        for folder, entry in sorted(self._entries[piece], key=lambda item: int(item[1].key.split(".")[2])):
            yield folder.read(entry)


def _overlap(folder: ShardFolder) -> int:
    """Return how many consecutive squares show the same measure."""
    segment = folder.segment
    if segment["shape"] != "square":
        return 1
    return -(-int(segment["n_measures"]) // int(segment["hop_measures"]))


def _check_shape(folder: ShardFolder, image: ImageSpec | None) -> None:
    if image is None:
        return
    shape = folder.segment["shape"]
    nouns = {"square": "squares", "staff_strips": "staff strips"}
    if shape != image.segment:
        raise InputError(
            f"{folder.url}: shards of {nouns[shape]}, but the bundle takes {nouns[image.segment]}; render the "
            "corpus with another recipe"
        )
    space_px = folder.segment.get("space_px")
    if shape == "staff_strips" and image.space_px is not None and space_px != image.space_px:
        raise InputError(
            f"{folder.url}: strips with staff spaces of {space_px} px, but the bundle takes "
            f"{image.space_px:g} px; render the corpus with another recipe"
        )
