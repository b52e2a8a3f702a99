"""Vectors that are searched by inner product, behind one small interface: faiss in a folder, or a Milvus server.

`benchmarks/vector_indexes.py` compares the kinds of index that faiss has; the limits below follow its table.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np

from fusili_mir.arrays import Float32, Int64
from fusili_mir.errors import InputError, MissingExtraError, OutputError

__all__ = ["REPAIR", "FaissVectors", "Vectors", "faiss_factory", "import_faiss", "save_faiss"]

_FLAT_MOST = 20_000
_SCALAR_MOST = 200_000
_GRAPH_MOST = 3_000_000
_GRAPH_LINKS = 16
_GRAPH_WIDTH = 128  # of the search in a graph
_PROBED = 128  # one list in so many is searched

REPAIR = "run `fusili-mir index` again with --repair"
"""What to do about damaged files, for messages."""


class Vectors(Protocol):
    """Vectors with numbers, of one kind of piece."""

    def search(self, queries: Float32, k: int) -> tuple[Float32, Int64]:
        """Return the largest inner products, and the numbers of these vectors, [shape=(n_queries, k)] each.

        A number is -1 where there are fewer than k vectors.
        """
        ...


def import_faiss() -> Any:
    """Import faiss, or say how to install it."""
    try:
        import faiss
    except ImportError as error:
        raise MissingExtraError("an index needs faiss: pip install 'fusili-mir[collections]'") from error
    return faiss


def faiss_factory(n_vectors: int) -> str:
    """Return the kind of index for a number of vectors, as `faiss.index_factory` names it.

    >>> [faiss_factory(n) for n in (1_000, 100_000, 1_000_000)]
    ['Flat', 'SQ8', 'HNSW16_SQ8']
    >>> faiss_factory(16_000_000)
    'OPQ64_128,IVF16000_HNSW32,PQ64x8'
    """
    if n_vectors <= _FLAT_MOST:
        return "Flat"
    if n_vectors <= _SCALAR_MOST:
        return "SQ8"
    if n_vectors <= _GRAPH_MOST:
        return f"HNSW{_GRAPH_LINKS}_SQ8"
    return f"OPQ64_128,IVF{4 * int(n_vectors**0.5)}_HNSW32,PQ64x8"


def save_faiss(path: Path, vectors: Float32, factory: str | None = None) -> None:
    """Write vectors [shape=(n, d)] as an index of faiss; by default of the kind for their number."""
    faiss = import_faiss()
    index = faiss.index_factory(
        vectors.shape[1], factory or faiss_factory(len(vectors)), faiss.METRIC_INNER_PRODUCT
    )
    if len(vectors):
        index.train(vectors)
        index.add(vectors)
    stage = path.with_name(f".{path.name}.part")
    try:
        faiss.write_index(index, str(stage))
        stage.replace(path)
    except (RuntimeError, OSError) as error:
        raise OutputError(f"{path}: cannot be written ({error})") from error
    finally:
        stage.unlink(missing_ok=True)


class FaissVectors:
    """Vectors in a file of faiss, mapped into memory; the first has the number `first`."""

    def __init__(self, path: Path, embedding_dim: int, first: int = 0) -> None:
        faiss = import_faiss()
        try:
            self._index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:
            raise InputError(f"{path}: missing or damaged; {REPAIR}") from error
        if self._index.d != embedding_dim:
            raise InputError(
                f"{path}: vectors of {self._index.d} numbers, expected {embedding_dim}; {REPAIR}"
            )
        self._first = first
        if hasattr(self._index, "hnsw"):
            self._index.hnsw.efSearch = _GRAPH_WIDTH
        elif not isinstance(self._index, faiss.IndexFlat | faiss.IndexScalarQuantizer):
            lists = faiss.extract_index_ivf(self._index).nlist
            faiss.ParameterSpace().set_index_parameter(self._index, "nprobe", max(1, lists // _PROBED))

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def search(self, queries: Float32, k: int) -> tuple[Float32, Int64]:
        """See `Vectors.search`."""
        similarity, place = self._index.search(np.ascontiguousarray(queries), k)
        return similarity, np.where(place < 0, -1, place + self._first)
