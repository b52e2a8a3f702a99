"""What is the same for all pairs of a run, and the key that says whether a result is still the one asked for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fusili_mir import __version__
from fusili_mir.batch.pair_request import PairRequest
from fusili_mir.dataclass_tables import read_table

__all__ = ["WorkSettings", "settings_of_json", "stamp_files"]


@dataclass(frozen=True)
class WorkSettings:
    """Settings of a run.

    Attributes
    ----------
    out : str
        Folder of all results.
    model : str, optional
        Folder of the bundle; None: the installed one.
    model_key : str
        Checksum of the bundle.
    device : str
    device_options : dict
    batch_size : int, optional
    formats : tuple of str
        What is written of each result; empty: all that applies.
    """

    out: str
    model: str | None
    model_key: str
    device: str
    device_options: dict[str, str]
    batch_size: int | None
    formats: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Folder of all results."""
        return Path(self.out)

    @property
    def drafts(self) -> Path:
        """Where results are written until they are whole."""
        return self.folder / ".drafts"

    def key(self, request: PairRequest) -> str:
        """Return a key of what a result depends on: files by size and time of change, options, model, version."""
        depends = {
            "request": request.to_json(),
            "files": stamp_files([*request.score, request.recording]),
            "model": self.model_key,
            "formats": self.formats,
            "version": __version__,
        }
        return hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return them as values that JSON can represent."""
        return asdict(self)


def settings_of_json(content: dict[str, Any]) -> WorkSettings:
    """Return the settings that `WorkSettings.to_json` described."""
    return read_table(WorkSettings, content, complete=True)


def stamp_files(files: Iterable[Path]) -> list[list[object]]:
    """Return names, sizes and times of files, and of the files in folders; those that are not there have none."""
    stamps: list[list[object]] = []
    for file in files:
        bare = Path(str(file).split("#")[0])
        try:
            for each in sorted(bare.iterdir()) if bare.is_dir() else [bare]:
                stamps.append([str(each), each.stat().st_size, each.stat().st_mtime_ns])
        except (OSError, ValueError):
            stamps.append([str(bare)])
    return stamps
