"""Encoding one file of many for an index, in whatever process: what is wrong with it is part of the result."""

from __future__ import annotations

import time
import warnings
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from fusili_mir.boundary import unexpected
from fusili_mir.collection.encoding import encode_file
from fusili_mir.collection.file_states import file_state, piece_id, sha256_of
from fusili_mir.collection.index_files import IndexedPiece
from fusili_mir.errors import FusiliError
from fusili_mir.model.bundle import load_bundle
from fusili_mir.model.encoder import Encoder

__all__ = ["EncodedFile", "EncodingTask", "encode_task"]


@dataclass(frozen=True)
class EncodingTask:
    """A file to be encoded, for a process that knows nothing else."""

    path: Path
    bundle: Path
    device: str


@dataclass(frozen=True)
class EncodedFile:
    """A file that was encoded, as bytes; or why not."""

    piece: IndexedPiece | None
    content: bytes
    seconds: float
    message: str = ""


@lru_cache(maxsize=1)
def _encoder(bundle: Path, device: str) -> Encoder:
    return Encoder(load_bundle(bundle), device)


def encode_task(task: EncodingTask) -> EncodedFile:
    """Encode a file; what is wrong with it is part of the result."""
    begin_sec = time.perf_counter()
    try:
        state = file_state(task.path)
        sha256 = sha256_of(task.path)
        encoder = _encoder(task.bundle, task.device)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            encoded = encode_file(task.path, encoder)
    except FusiliError as error:
        message = " ".join(str(error).split())
        return EncodedFile(None, b"", time.perf_counter() - begin_sec, message)
    except Exception as error:  # noqa: BLE001 - one bad file among thousands must not end the run
        message = f"{task.path}: {unexpected(error)}"
        return EncodedFile(None, b"", time.perf_counter() - begin_sec, message)
    piece = IndexedPiece(
        piece_id(task.path),
        str(task.path),
        encoded.kind,
        state.size,
        state.mtime_ns,
        sha256,
        len(encoded.windows),
    )
    content = encoded.to_bytes({"piece": asdict(piece)})
    return EncodedFile(piece, content, time.perf_counter() - begin_sec)
