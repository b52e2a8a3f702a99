"""An index, opened for reading: its pieces, their vectors, and their embeddings."""

from __future__ import annotations

import os
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fusili_mir.argument_kinds import checked
from fusili_mir.arrays import Float32, Int64, Table
from fusili_mir.boundary import check_regular
from fusili_mir.collection.encoded_piece import EncodedPiece, Float16, load_piece
from fusili_mir.collection.index_files import (
    MANIFEST,
    WINDOW_DTYPE,
    IndexManifest,
    bundle_fingerprint,
    piece_file,
    read_index_manifest,
    read_pieces,
)
from fusili_mir.collection.kinds import KINDS, Kind
from fusili_mir.collection.vectors import FaissVectors, Vectors, how_to_repair, refine
from fusili_mir.errors import InputError, option
from fusili_mir.model.bundle import Bundle

__all__ = ["Index", "open_index", "refuse_swapped"]

_CACHED_PIECES = 64


class Index:
    """An index on disk; see `open_index`.

    Attributes
    ----------
    folder : Path
    manifest : IndexManifest
    pieces : list of IndexedPiece
        Scores first, then recordings, each with its `path` and `kind`.
    """

    def __init__(self, folder: Path, manifest: IndexManifest, server: str | None = None) -> None:
        self.folder, self.manifest = folder, manifest
        self.pieces = read_pieces(folder, manifest.generation)
        self._server = server or manifest.server
        self.load_piece = lru_cache(_CACHED_PIECES)(self._load_piece)

    def __len__(self) -> int:
        return len(self.pieces)

    def __repr__(self) -> str:
        counts = ", ".join(f"{sum(piece.kind == kind for piece in self.pieces)} {kind}s" for kind in KINDS)
        return f"Index({str(self.folder)!r}: {counts}, {self.manifest.n_windows} windows)"

    def check_bundle(self, bundle: Bundle) -> None:
        """Raise an error unless a model is the one that encoded the index."""
        if bundle_fingerprint(bundle) != self.manifest.bundle:
            raise InputError(
                f"{self.folder}: encoded by another model ({self.manifest.bundle_name}, "
                f"{self.manifest.bundle[:12]}...) than {bundle.folder}; give that one with "
                f"{option('--model', 'model')}, or index "
                "the files again"
            )

    @cached_property
    def windows(self) -> Table:
        """The windows of all pieces, of `WINDOW_DTYPE`; those of one kind follow each other."""
        return self._map(f"windows-{self.manifest.generation}.npy", WINDOW_DTYPE)

    @cached_property
    def vectors(self) -> Float16:
        """The pooled embeddings of all windows, float16 [shape=(n, d)]."""
        return self._map(f"vectors-{self.manifest.generation}.npy", np.dtype(np.float16))

    @cached_property
    def kind_rows(self) -> dict[Kind, slice]:
        """Which rows of `windows` are of each kind."""
        rows, first = {}, 0
        for kind in KINDS:
            stop = first + sum(piece.n_windows for piece in self.pieces if piece.kind == kind)
            rows[kind], first = slice(first, stop), stop
        return rows

    def hold(self) -> None:
        """Open all tables, so that a writer who replaces them does not disturb this reader."""
        if self.manifest.generation:
            _ = self.windows, self.vectors
            for kind, rows in self.kind_rows.items():
                if rows.start < rows.stop and self._server is None:
                    self._vectors_of(kind)

    def search_vectors(self, queries: Float32, kind: Kind, k: int) -> tuple[Float32, Int64]:
        """Return the largest inner products with vectors of one kind, and the rows of these in `windows`."""
        rows = self.kind_rows[kind]
        if rows.start == rows.stop:
            return np.zeros((len(queries), 0), np.float32), np.zeros((len(queries), 0), np.int64)
        _, found = self._vectors_of(kind).search(queries, min(k, rows.stop - rows.start))
        return refine(queries, found, self.vectors)

    def _load_piece(self, number: int) -> EncodedPiece:
        piece, _ = load_piece(piece_file(self.folder, self.pieces[number].id))
        return piece

    def _vectors_of(self, kind: Kind) -> Vectors:
        if kind not in self._opened:
            self._opened[kind] = self._open_vectors(kind)
        return self._opened[kind]

    @cached_property
    def _opened(self) -> dict[Kind, Vectors]:
        return {}

    def _open_vectors(self, kind: Kind) -> Vectors:
        rows, manifest = self.kind_rows[kind], self.manifest
        if self._server is not None:
            from fusili_mir.collection.milvus_vectors import MilvusVectors

            return MilvusVectors(self._server, manifest.id, kind, manifest.generation, rows.start)
        path = self.folder / f"{kind}-{manifest.generation}.faiss"
        found = FaissVectors(path, manifest.embedding_dim, rows.start)
        if len(found) != rows.stop - rows.start:
            raise InputError(
                f"{path}: {len(found)} vectors, expected {rows.stop - rows.start}; {how_to_repair()}"
            )
        return found

    def _map(self, name: str, dtype: np.dtype[np.generic]) -> np.ndarray:  # type: ignore[type-arg]
        path = self.folder / name
        try:
            check_regular(path, how_to_repair())
            table: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)  # type: ignore[type-arg]
        except Exception as error:  # numpy raises whatever a damaged header makes it trip over
            raise InputError(f"{path}: missing or damaged; {how_to_repair()}") from error
        if table.dtype != dtype or len(table) != self.manifest.n_windows:
            raise InputError(f"{path}: damaged, {len(table)} rows; {how_to_repair()}")
        return table


def refuse_swapped(index: Any, query: Any) -> None:
    """Raise an `InputError` if the query is an index and the index is none."""
    names = [name for name in (index, query) if isinstance(name, str | os.PathLike)]
    if [(Path(name) / MANIFEST).is_file() for name in names] == [False, True]:
        raise InputError(
            f"index and query seem to be swapped: {query} is an index; the index comes first, then the query"
        )


@checked
def open_index(path: str | Path, server: str | None = None) -> Index:
    """Open an index.

    Parameters
    ----------
    path : str or Path
        Folder that `build_index` or `fusili-mir index` has written.
    server : str, optional
        Address of the Milvus server that holds its vectors, if it has moved.

    Returns
    -------
    Index
        ``index.pieces`` lists what is in it.
    """
    folder = Path(path)
    manifest = read_index_manifest(folder)
    while True:
        try:
            index = Index(folder, manifest, server)
            index.hold()
        except InputError:
            before, manifest = manifest, read_index_manifest(folder)
            if before.generation == manifest.generation:
                raise
        else:
            return index  # no writer has replaced the tables meanwhile
