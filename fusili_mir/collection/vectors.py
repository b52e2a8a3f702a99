"""Vectors that are searched by inner product, behind one small interface: faiss in a folder, or a Milvus server.

`benchmarks/vector_indexes.py` compares the kinds of index that faiss has; the limits below follow its table.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fusili_mir.arrays import Float32, Int64
from fusili_mir.boundary import check_regular
from fusili_mir.errors import InputError, MissingExtraError, option
from fusili_mir.whole_files import write_whole

__all__ = [
    "FaissVectors",
    "Vectors",
    "faiss_factory",
    "how_to_repair",
    "import_faiss",
    "refine",
    "save_faiss",
]

_FLAT_MOST = 20_000
_SCALAR_MOST = 200_000
_LISTED_MOST = 5_000_000
_GRAPH_WIDTH = 512  # of the search, in an index that is a graph
_PROBED, _LEAST_PROBED = 16, 32  # one list in so many is searched, and no fewer lists
_TRAINED = 64  # vectors for each list
# The head of a file: kind, dimension, vectors, two numbers of no meaning, whether it is trained, metric (0: inner
# product), and, in an index of kind "IxFI" (flat), the floats that follow.
_FAISS_HEAD = struct.Struct("<4siq16x?iq")


def how_to_repair() -> str:
    """Say how a damaged index becomes whole."""
    return option("run `fusili-mir index` again with --repair", "call build_index again with repair=True")


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


def refine(queries: Float32, numbers: Int64, vectors: npt.NDArray[np.float16]) -> tuple[Float32, Int64]:
    """Rank what was found by the vectors themselves: indexes hold them with fewer digits.

    Parameters
    ----------
    queries : np.ndarray [shape=(n, d)]
    numbers : np.ndarray of int [shape=(n, k)]
        Vectors that were found for each query; -1 for none.
    vectors : np.ndarray [shape=(N, d)]
        All vectors, perhaps mapped from a file; only those that were found are read.

    Returns
    -------
    similarity, numbers : np.ndarray [shape=(n, k)]
        The largest inner products first.
    """
    found = np.asarray(vectors[np.maximum(numbers, 0)], np.float32)  # (n, k, d)
    similarity = np.where(numbers < 0, -1.0, np.einsum("nkd,nd->nk", found, queries)).astype(np.float32)
    order = np.argsort(-similarity, axis=1, kind="stable")
    return np.take_along_axis(similarity, order, axis=1), np.take_along_axis(numbers, order, axis=1)


def faiss_factory(n_vectors: int) -> str:
    """Return the kind of index for a number of vectors, as `faiss.index_factory` names it.

    >>> [faiss_factory(n) for n in (1_000, 100_000, 1_000_000)]
    ['Flat', 'SQ8', 'IVF4000,SQ8']
    >>> faiss_factory(16_000_000)
    'IVF16000_HNSW32,PQ64x8'
    """
    if n_vectors <= _FLAT_MOST:
        return "Flat"
    if n_vectors <= _SCALAR_MOST:
        return "SQ8"
    lists = 4 * int(n_vectors**0.5)
    return f"IVF{lists},SQ8" if n_vectors <= _LISTED_MOST else f"IVF{lists}_HNSW32,PQ64x8"


def save_faiss(path: Path, vectors: Float32, factory: str | None = None) -> None:
    """Write vectors [shape=(n, d)] as an index of faiss; by default of the kind for their number."""
    faiss = import_faiss()
    index = faiss.index_factory(
        vectors.shape[1], factory or faiss_factory(len(vectors)), faiss.METRIC_INNER_PRODUCT
    )
    if len(vectors):
        n_trained = min(len(vectors), max(_TRAINED * 4 * int(len(vectors) ** 0.5), _FLAT_MOST))
        index.train(
            np.ascontiguousarray(vectors[np.linspace(0, len(vectors) - 1, n_trained).astype(np.int64)])
        )
        index.add(vectors)
    write_whole(path, lambda file: faiss.write_index(index, faiss.PyCallbackIOWriter(file.write)))


def _check_faiss_file(path: Path) -> None:
    """Raise an error if a file is no index of ours, or too small for what its head says: faiss would crash."""
    check_regular(path, how_to_repair())
    with path.open("rb") as file:
        kind, dim, number, is_trained, metric, n_floats = _FAISS_HEAD.unpack(file.read(_FAISS_HEAD.size))
    bytes_of_one = dict.fromkeys((b"IxFI", b"IHNf", b"IwFl"), 4 * dim)
    bytes_of_one |= dict.fromkeys((b"IxSQ", b"IwSq", b"IHNs"), dim) | {b"IwPQ": 1}
    if kind not in bytes_of_one or number < 0 or dim <= 0 or (is_trained, metric) != (1, 0):
        raise ValueError("not an index of inner products")
    if path.stat().st_size < number * bytes_of_one[kind] or (kind == b"IxFI" and n_floats != number * dim):
        raise ValueError("too small")


class FaissVectors:
    """Vectors in a file of faiss, mapped into memory; the first has the number `first`."""

    def __init__(self, path: Path, embedding_dim: int, first: int = 0) -> None:
        faiss = import_faiss()
        try:
            _check_faiss_file(path)
            self._index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        except Exception as error:  # faiss raises whatever a damaged file makes it trip over
            raise InputError(f"{path}: missing or damaged; {how_to_repair()}") from error
        if self._index.d != embedding_dim:
            raise InputError(
                f"{path}: vectors of {self._index.d} numbers, expected {embedding_dim}; {how_to_repair()}"
            )
        self._first = first
        if hasattr(self._index, "hnsw"):
            self._index.hnsw.efSearch = _GRAPH_WIDTH
        elif not isinstance(self._index, faiss.IndexFlat | faiss.IndexScalarQuantizer):
            lists = faiss.extract_index_ivf(self._index).nlist
            faiss.ParameterSpace().set_index_parameter(
                self._index, "nprobe", min(lists, max(_LEAST_PROBED, lists // _PROBED))
            )

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def search(self, queries: Float32, k: int) -> tuple[Float32, Int64]:
        """See `Vectors.search`."""
        similarity, place = self._index.search(np.ascontiguousarray(queries), k)
        return similarity, np.where(place < 0, -1, place + self._first)
