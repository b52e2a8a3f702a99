"""Putting a network into the package, beside which it is recorded what it was made from."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from fusili_mir.hearing.networks import NETWORK_FOLDER, NetworkName
from fusili_mir.whole_files import write_bytes, write_text

__all__ = ["save_network"]


def save_network(
    name: NetworkName, graph: bytes, licence: str, origin: dict[str, Any], folder: Path = NETWORK_FOLDER
) -> None:
    """Write a network, and record its checksum, its licence, and what it was made from."""
    table = folder / "networks.json"
    recorded = json.loads(table.read_text(encoding="utf-8")) if table.exists() else {}
    sha256 = hashlib.sha256(graph).hexdigest()
    recorded[name] = {"sha256": sha256, "licence": licence, "origin": origin}
    write_bytes(folder / f"{name}.onnx", graph)
    write_text(table, json.dumps(recorded, indent=1, ensure_ascii=False) + "\n")
