"""Held-out pairs like those that a model was trained on, read once and kept in memory for several models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from fusili_mir.errors import InputError
from fusili_training.data.shard_folder import Pair, ShardFolder

__all__ = ["KeptPairs"]


class KeptPairs:
    """The original pairs of a split that show one layout and are short enough, in memory.

    Durations are those of the recordings themselves: not every index of shards has them.

    Parameters
    ----------
    url : str or Path
        Folder of shards.
    split : str
    layout : str
        Layout to keep, see `ShardFolder`; "": all.
    max_duration_sec : float
        Longest recording to keep; 0: any.
    """

    has_truth = True

    def __init__(self, url: str | Path, split: str, layout: str = "", max_duration_sec: float = 0.0) -> None:
        folder = ShardFolder(url, split, layout, max_duration_sec)
        self.name = f"{Path(str(url)).name} ({split})"
        self.dropped: Counter[str] = Counter()
        self._pairs: dict[str, list[Pair]] = {}
        for entry in folder.entries:
            if entry.mutant_of is not None:
                continue
            pair = folder.read(entry)
            if 0 < max_duration_sec < len(pair.waveform) / pair.sample_rate_hz:
                self.dropped[f"over {max_duration_sec:g} s"] += 1
                continue
            self._pairs.setdefault(entry.rendering, []).append(pair)
        if not self._pairs:
            raise InputError(f"{self.name}: no pairs of at most {max_duration_sec:g} s")
        self.pieces: Sequence[str] = sorted(self._pairs)

    def __len__(self) -> int:
        return sum(map(len, self._pairs.values()))

    def read_piece(self, piece: str) -> Iterator[Pair]:
        """Yield the pairs of a rendering in the order of the score."""
        return iter(sorted(self._pairs[piece], key=lambda pair: int(pair.key.split(".")[2])))
