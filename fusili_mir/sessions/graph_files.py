"""Reading ONNX files: their size, their checksum, and that they keep all their weights themselves.

onnxruntime opens other files that a graph names, even if it is given as bytes: version 1.20 under any path, 1.31
in the working folder. So such a graph never reaches it. What a graph computes is not looked at.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from fusili_mir.boundary import read_limited
from fusili_mir.errors import InputError

__all__ = ["read_graph_file", "refuse_external_data"]

_EXTERNAL = (b"\x08location", b"\x00location")
"""The key of the name of a file, behind its length in protobuf: 8, whose last byte is one of these."""


def read_graph_file(path: Path, sha256: str) -> bytes:
    """Read a graph, which must match its checksum and contain all its weights."""
    graph = read_limited(path, "graph_bytes", "copy the whole folder")
    found = hashlib.sha256(graph).hexdigest()
    if found != sha256:
        raise InputError(
            f"{path}: sha256 {found[:12]}..., expected {sha256[:12]}... as recorded beside it; "
            "the file is damaged or belongs to another model: copy the whole folder again"
        )
    refuse_external_data(str(path), graph)
    return graph


def refuse_external_data(name: str, graph: bytes) -> None:
    """Raise an error if a graph keeps data in other files.

    Parameters
    ----------
    name : str
        Name of the file, for the message.
    graph : bytes
        Content of the file.
    """
    if any(key in graph for key in _EXTERNAL):
        raise InputError(
            f"{name}: keeps weights in another file; expected a graph that contains all its weights"
        )
