"""The networks that ship with the package, as ONNX graphs in this folder.

They do not depend on the encoders of a bundle. `networks.json` has their checksums, their licences, and what they
were made from.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fusili_mir.sessions.graph_files import read_graph_file

__all__ = ["NETWORKS", "NETWORK_FOLDER", "Network", "NetworkName", "find_network"]

NetworkName = Literal["onsets", "reading"]
NETWORKS: tuple[NetworkName, ...] = ("onsets", "reading")
"""What hears onsets (`onset_listener`), and what reads notes (`note_reading`)."""

NETWORK_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Network:
    """A network that ships.

    Attributes
    ----------
    file : Path
        Its graph.
    sha256, licence : str
        Checksum of that file, and licence of its weights.
    origin : dict
        What it learnt from, and for how long.
    """

    file: Path
    sha256: str
    licence: str
    origin: dict[str, Any]

    def read(self) -> bytes:
        """Read the graph, which must match its checksum."""
        return read_graph_file(self.file, self.sha256)


def find_network(name: NetworkName) -> Network:
    """Return what is recorded about a network."""
    table = json.loads((NETWORK_FOLDER / "networks.json").read_text(encoding="utf-8"))
    return Network(NETWORK_FOLDER / f"{name}.onnx", **table[name])
