"""The files of an index: a manifest, a file for each piece, and the vectors of all pieces.

    manifest.json          what the index is, and which generation of the other tables counts
    pieces/ID.npz          an encoded piece; ID is a checksum of its path
    pieces-N.json          the pieces of generation N
    windows-N.npy          whose window each vector is
    vectors-N.npy          the vectors, float16
    score-N.faiss, ...     the vectors of each kind as faiss searches them
    report.csv             what the last run did with each file

Every file gets its name when it is complete. A generation counts once the manifest names it, so a reader sees the
old one or the new one. A run that is killed leaves the old one, and encoded pieces that the next run uses.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fusili_mir.boundary import reading, refuse_address
from fusili_mir.collection.kinds import Kind
from fusili_mir.dataclass_tables import read_table
from fusili_mir.errors import InputError
from fusili_mir.model.bundle import Bundle
from fusili_mir.untrusted_json import read_json
from fusili_mir.whole_files import write_text

__all__ = [
    "INDEX_FORMAT",
    "MANIFEST",
    "WINDOW_DTYPE",
    "IndexManifest",
    "IndexedPiece",
    "bundle_fingerprint",
    "piece_file",
    "read_index_manifest",
    "read_pieces",
    "write_json",
    "write_manifest",
]

INDEX_FORMAT = 1
"""Version of the layout; raised whenever a reader of the old one would go wrong."""

WINDOW_DTYPE = np.dtype([("piece", "i4"), ("first", "i4"), ("stop", "i4")])
"""A window: the number of its piece, its first step and the one after its last."""

_PIECE_ID = re.compile(r"[0-9a-f]{24}")

MANIFEST = "manifest.json"
"""Name of the manifest."""


@dataclass(frozen=True)
class IndexManifest:
    """What an index is.

    Attributes
    ----------
    format : int
    id : str
        A random name, which its collections on a server have.
    made_by : str
        Program and version that wrote it last.
    bundle : str
        Checksum of the model that encoded it.
    bundle_name : str
    embedding_dim : int
    generation : int
        Number of the tables that count; 0 if there are none yet.
    n_pieces, n_windows : int
    server : str or None
        Address of the Milvus server that holds its vectors; None: faiss, in this folder.
    """

    format: int
    id: str
    made_by: str
    bundle: str
    bundle_name: str
    embedding_dim: int
    generation: int = 0
    n_pieces: int = 0
    n_windows: int = 0
    server: str | None = None


@dataclass(frozen=True)
class IndexedPiece:
    """A piece of an index.

    Attributes
    ----------
    id : str
        Checksum of its path, and name of its file in the index.
    path : str
        Absolute path of the score or recording.
    kind : "score" or "recording"
    size, mtime_ns : int
        Size and time of change of the file when it was encoded.
    sha256 : str
        Checksum of its content.
    n_windows : int
        Number of its vectors.
    """

    id: str
    path: str
    kind: Kind
    size: int
    mtime_ns: int
    sha256: str
    n_windows: int


def bundle_fingerprint(bundle: Bundle) -> str:
    """Return a checksum of the two graphs of a bundle."""
    return hashlib.sha256(f"{bundle.image.sha256} {bundle.audio.sha256}".encode()).hexdigest()


def piece_file(folder: Path, piece_id: str) -> Path:
    """Return the file of a piece; a folder for each first two digits keeps folders small."""
    return folder / "pieces" / piece_id[:2] / f"{piece_id}.npz"


def read_index_manifest(folder: Path) -> IndexManifest:
    """Read the manifest of an index."""
    path = folder / MANIFEST
    expected = "expected a folder that `fusili-mir index` has written"
    refuse_address(folder, "copy the index to this machine")
    with reading(folder, expected):
        is_index = path.is_file()
    if not is_index:
        found = "not an index" if folder.exists() else "not found"
        raise InputError(f"{folder}: {found}; {expected}")
    content = _read_json(path)
    if isinstance(content, dict) and content.get("format") != INDEX_FORMAT:
        raise InputError(
            f"{path}: an index of format {content.get('format')!r}, expected {INDEX_FORMAT}: it was written by "
            "another version of fusili-mir; index the files again"
        )
    try:
        return read_table(IndexManifest, content, name="the manifest", complete=True)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def read_pieces(folder: Path, generation: int) -> list[IndexedPiece]:
    """Read the table of pieces of a generation."""
    if generation == 0:
        return []
    path = folder / f"pieces-{generation}.json"
    content = _read_json(path)
    if not isinstance(content, list):
        raise InputError(f"{path}: damaged; index the files again into another folder")
    pieces = [read_table(IndexedPiece, row, name=f"{path}: a piece", complete=True) for row in content]
    if not all(_PIECE_ID.fullmatch(piece.id) for piece in pieces):  # they name files
        raise InputError(
            f"{path}: a piece whose id is no checksum; index the files again into another folder"
        )
    return pieces


def write_manifest(folder: Path, manifest: IndexManifest) -> None:
    """Write the manifest: from now on its generation counts."""
    write_json(folder / MANIFEST, asdict(manifest), indent=1)


def write_json(path: Path, content: Any, indent: int | None = None) -> None:
    """Write a table."""
    text = json.dumps(content, indent=indent, ensure_ascii=False)
    write_text(path, text)


def _read_json(path: Path) -> Any:
    return read_json(path, "index the files again into another folder", "index_bytes")
