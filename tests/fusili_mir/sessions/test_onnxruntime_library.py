from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fusili_mir.model.encoder import SIMILARITY_GRAPH

ROOT = Path(__file__).parents[3]
PACKAGES = ("fusili_mir", "training", "export", "integrations", "benchmarks")
RUN = """
import subprocess, sys
from pathlib import Path
from fusili_mir.sessions.graph_session import open_session
open_session(Path({graph!r}).read_bytes(), "cpu")
"""


@pytest.mark.parametrize("by", ["itself", "a process that it starts"])
def test_a_session_leaves_nothing_at_home(tmp_path: Path, by: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    code = RUN.format(graph=str(SIMILARITY_GRAPH))
    if by != "itself":
        code += 'subprocess.run([sys.executable, "-c", "import onnxruntime"], check=True)'
    run_at(home, code)
    assert not list(home.rglob("*"))


def run_at(home: Path, code: str) -> None:
    hidden = {"XDG_CACHE_HOME", "ORT_DISABLE_TELEMETRY"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    subprocess.run([sys.executable, "-c", code], env={**environment, "HOME": str(home)}, check=True)


def test_it_is_imported_in_one_place() -> None:
    importing = re.compile(r"^ *(from|import) onnxruntime\b|import_module\(f?.onnxruntime", re.MULTILINE)
    sources = [source for folder in PACKAGES for source in (ROOT / folder).rglob("*.py")]
    found = [source for source in sources if importing.search(source.read_text(encoding="utf-8"))]
    assert [source.name for source in found] == ["onnxruntime_library.py"]
