"""A score or a recording as an index holds it: local embeddings in order, and pooled ones of overlapping windows.

The steps of a score are its columns, those of a recording its frames. All embeddings are unit vectors in float16,
which changes cosines by less than 0.001.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fusili_mir.arrays import Bool, Float32, Int64, Table
from fusili_mir.collection.kinds import Kind
from fusili_mir.collection.vectors import how_to_repair
from fusili_mir.errors import InputError
from fusili_mir.pages.score_axis import COLUMN_DTYPE
from fusili_mir.short_repr import short_repr
from fusili_mir.untrusted_arrays import read_arrays
from fusili_mir.untrusted_json import parse_json

__all__ = ["EncodedPiece", "Float16", "load_piece"]

Float16: TypeAlias = npt.NDArray[np.float16]


@short_repr
@dataclass(frozen=True, eq=False)
class EncodedPiece:
    """An encoded score or recording.

    Attributes
    ----------
    kind : "score" or "recording"
    steps : np.ndarray [shape=(n, R, d)], float16
        Unit vectors of the R patches of each column; of each frame, with R = 1.
    mask : np.ndarray [shape=(n, R)], bool
        Patches that exist.
    windows : np.ndarray [shape=(w, d)], float16
        Pooled embeddings of overlapping windows.
    spans : np.ndarray of int [shape=(w, 2)]
        First step of each window, and the one after its last.
    columns : np.ndarray of `COLUMN_DTYPE` [shape=(n,)]
        Of a score: where each column lies, in pixels of the original pages. Empty for recordings.
    start_sec, frame_sec : float
        Of a recording: start of the first frame, and time from one to the next. 0 for scores.
    """

    kind: Kind
    steps: Float16
    mask: Bool
    windows: Float16
    spans: Int64
    columns: Table
    start_sec: float = 0.0
    frame_sec: float = 0.0

    def __post_init__(self) -> None:
        n, w = len(self.steps), len(self.windows)
        n_columns = n if self.kind == "score" else 0
        if (
            self.steps.ndim != 3
            or self.mask.shape != self.steps.shape[:2]
            or self.spans.shape != (w, 2)
            or len(self.columns) != n_columns
        ):
            raise InputError(f"an encoded {self.kind} whose arrays do not fit together")

    def __len__(self) -> int:
        return len(self.steps)

    def seconds(self, step: int) -> float:
        """Return the second at which a frame starts."""
        return self.start_sec + step * self.frame_sec

    def part(self, first: int, stop: int) -> Float32:
        """Return the embeddings of some steps [shape=(n, R, d)], 0 for patches that do not exist."""
        return np.asarray(self.steps[first:stop], np.float32) * self.mask[first:stop, :, None]

    def to_bytes(self, about: dict[str, Any]) -> bytes:
        """Return the content of a file with the piece and a table of facts about it."""
        file = io.BytesIO()
        np.savez(
            file,
            about=np.array(json.dumps({**about, "kind": self.kind})),
            steps=self.steps,
            mask=self.mask,
            windows=self.windows,
            spans=self.spans,
            columns=self.columns,
            times=np.array([self.start_sec, self.frame_sec]),
        )
        return file.getvalue()


def load_piece(filename: Path) -> tuple[EncodedPiece, dict[str, Any]]:
    """Load what `EncodedPiece.to_bytes` gave: the piece, and the facts about it."""
    try:
        arrays = read_arrays(filename)
        about = parse_json(str(arrays["about"]), filename, "expected facts about a piece")
        columns = arrays["columns"]
        if columns.dtype != COLUMN_DTYPE:
            raise ValueError("columns")
        start_sec, frame_sec = arrays["times"].tolist()
        steps, mask, windows, spans = (arrays[name] for name in ("steps", "mask", "windows", "spans"))
        piece = EncodedPiece(about["kind"], steps, mask, windows, spans, columns, start_sec, frame_sec)
    except Exception as error:  # whatever is wrong with it, it is to be encoded anew
        raise InputError(f"{filename}: missing or damaged; {how_to_repair()}") from error
    return piece, about
