"""Each room imports only rooms before it. Imports are read from the source, so a failure names the import."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import fusili_mir
import fusili_training

ROOMS = {
    "fusili_mir": (
        "",
        "scores",
        "pages",
        "audio",
        "sessions",
        "hearing",
        "model",
        "decoding",
        "alignment",
        "viewer",
        "output",
        "demo",
        "collection",
        "batch",
        "cli",
    ),
    "fusili_training": (
        "",
        "sound",
        "notation",
        "rendering",
        "data",
        "backbones",
        "listening",
        "reading",
        "model",
        "losses",
        "evaluation",
        "loop",
    ),
}
"""Rooms in the order of the data flow; "" is the top level, which all rooms share."""

FOLDERS = {
    "fusili_mir": Path(fusili_mir.__file__).parent,
    "fusili_training": Path(fusili_training.__file__).parent,
}


@dataclass(frozen=True)
class Import:
    """One import statement: where it is, and which of our modules it names."""

    file: str
    line: int
    room: str
    named: str


def imports(package: str) -> Iterator[Import]:
    folder = FOLDERS[package]
    for file in sorted(folder.rglob("*.py")):
        path = file.relative_to(folder)
        room = path.parts[0] if len(path.parts) > 1 else ""
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            for name in names_in(node):
                if name.split(".")[0] == package:
                    yield Import(str(path), node.lineno, room, name)  # type: ignore[attr-defined]


def names_in(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def room_of(name: str, package: str) -> str:
    parts = name.split(".")[1:]
    return parts[0] if parts and parts[0] in ROOMS[package] else ""


@pytest.mark.parametrize("package", ROOMS)
def test_a_room_imports_only_rooms_before_it(package: str) -> None:
    order = {room: number for number, room in enumerate(ROOMS[package])}
    back_steps = [
        f"{each.file}:{each.line} imports {each.named}"
        for each in imports(package)
        if order[room_of(each.named, package)] > order[each.room]
        and each.file not in ("__main__.py",)  # which only calls the command line
    ]
    assert not back_steps, "\n".join(back_steps)


@pytest.mark.parametrize("package", ROOMS)
def test_every_folder_with_code_is_a_room_with_a_sentence_about_it(package: str) -> None:
    folders = {file.relative_to(FOLDERS[package]).parts[0] for file in FOLDERS[package].glob("*/*.py")}
    assert folders == set(ROOMS[package]) - {""}
    for room in folders:
        source = (FOLDERS[package] / room / "__init__.py").read_text(encoding="utf-8")
        assert ast.get_docstring(ast.parse(source))


def test_the_decoding_room_needs_nothing_but_numpy() -> None:
    modules = [
        f"fusili_mir.decoding.{file.stem}" for file in (FOLDERS["fusili_mir"] / "decoding").glob("*.py")
    ]
    code = (
        f"import importlib, sys; [importlib.import_module(name) for name in {modules!r}]; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert "numpy" in loaded
    assert not loaded & {"scipy", "partitura", "verovio", "PIL", "pypdfium2", "soundfile", "soxr", "lxml"}
