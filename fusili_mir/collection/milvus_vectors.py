"""Vectors on a Milvus server, or in a file of milvus-lite: the same client talks to both."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np

from fusili_mir.arrays import Float32, Int64
from fusili_mir.boundary import reason
from fusili_mir.collection.kinds import KINDS, Kind
from fusili_mir.errors import FusiliError, MissingExtraError, option

__all__ = ["MilvusVectors", "drop_from_milvus", "save_to_milvus"]

_BATCH = 2_000  # vectors that are sent together
TOKEN_VARIABLE = "MILVUS_TOKEN"  # noqa: S105
"""Environment variable with the token or user:password of a server."""


def save_to_milvus(server: str, index_id: str, kind: Kind, generation: int, vectors: Float32) -> None:
    """Send the vectors of one kind to a server, as a collection of their own."""
    client = _connect(server)
    name = _name(index_id, kind, generation)
    with _errors(server):
        if client.has_collection(name):  # of a run that was killed
            client.drop_collection(name)
        client.create_collection(
            name, dimension=vectors.shape[1], metric_type="IP", auto_id=False, consistency_level="Strong"
        )
        for first in range(0, len(vectors), _BATCH):
            rows = vectors[first : first + _BATCH].astype(np.float32)
            client.insert(
                name, [{"id": first + place, "vector": row.tolist()} for place, row in enumerate(rows)]
            )
        client.flush(name)


def drop_from_milvus(server: str, index_id: str, generation: int) -> None:
    """Remove the collections of a generation."""
    client = _connect(server)
    with _errors(server):
        for kind in KINDS:
            client.drop_collection(_name(index_id, kind, generation))


class MilvusVectors:
    """Vectors of one kind on a server; the first has the number `first`."""

    def __init__(self, server: str, index_id: str, kind: Kind, generation: int, first: int = 0) -> None:
        self._server, self._first = server, first
        self._client, self._name = _connect(server), _name(index_id, kind, generation)
        with _errors(server):
            if not self._client.has_collection(self._name):
                raise FusiliError(
                    f"{_shown(server)}: the vectors of this index are not there; index the files again with "
                    f"{option('--server', 'server')}"
                )
            self._client.load_collection(self._name)

    def search(self, queries: Float32, k: int) -> tuple[Float32, Int64]:
        """See `fusili_mir.collection.vectors.Vectors.search`."""
        with _errors(self._server):
            found = self._client.search(self._name, data=np.asarray(queries, np.float32).tolist(), limit=k)
        similarity = np.full((len(queries), k), -1.0, np.float32)
        number = np.full((len(queries), k), -1, np.int64)
        for row, hits in enumerate(found):
            for place, hit in enumerate(hits):
                similarity[row, place], number[row, place] = hit["distance"], hit["id"] + self._first
        return similarity, number


class _errors:  # noqa: N801
    """Turn the errors of a server into ours."""

    def __init__(self, server: str) -> None:
        self._server = server

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, FusiliError):
            raise FusiliError(
                f"{_shown(self._server)}: the Milvus server failed ({reason(error)})"
            ) from error


def _connect(server: str) -> Any:
    try:
        from pymilvus import MilvusClient
    except ImportError as error:
        raise MissingExtraError(
            f"{option('--server', 'server')} needs pymilvus: pip install 'fusili-mir[milvus]'"
        ) from error
    try:
        return MilvusClient(server, token=os.environ.get(TOKEN_VARIABLE, ""))
    except Exception as error:  # whatever the client or its transport raises
        raise FusiliError(f"{_shown(server)}: no Milvus server answers there ({reason(error)})") from error


def _name(index_id: str, kind: Kind, generation: int) -> str:
    return f"fusili_{index_id}_{kind}_{generation}"


def _shown(server: str) -> str:
    """Return an address without the password in it."""
    return re.sub(r"//[^/@]*@", "//", server)
