"""Reference pages, made when mkdocs builds the site: every public name, the integrations, and every `--help`.

The public names are read from `fusili_mir/__init__.pyi`. Each room of the runtime that has public names gets a
page, which begins with the docstring of the room's `__init__.py`: new names and rooms need no change here.
"""

from __future__ import annotations

import ast
import functools
import io
import re
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from fusili_mir.cli.main import main

ROOT = Path(__file__).parent.parent
ROOMS = ("alignment", "scores", "pages", "audio", "model", "decoding", "output")
"""In the order of the navigation; rooms that are not named here follow, and what all rooms share comes last."""


_IMPORT = (
    "All names are attributes of `fusili_mir`, loaded when they are first used: `import fusili_mir as fm`."
)
_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)#]+)(?:#[^)]*)?\)")  # links to files that are not in docs/


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the generated pages to the navigation."""
    pages = [{text.splitlines()[0].removeprefix("# "): name} for name, text in reference_pages().items()]
    config.nav = [*(config.nav or []), {"Reference": pages}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to the files of the site."""
    for name, text in reference_pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Name the files of the project that a page links to: they are not part of the site."""

    def named(link: re.Match[str]) -> str:
        return f"{link[1]} (`{link[2]}`)" if (ROOT / link[2]).exists() else link[0]

    return _OUTSIDE.sub(named, markdown)


@functools.cache
def reference_pages() -> dict[str, str]:
    """Write the text of each page, by its name in the site."""
    pages = {"reference/command-line.md": _command_line()}
    names = _public_names()
    rooms = sorted(names, key=lambda room: (room == "", room not in ROOMS, (*ROOMS, room).index(room)))
    for room in rooms:
        pages[f"reference/{room or 'shared'}.md"] = _room_page(room, names[room])
    pages["reference/integrations.md"] = _integrations()
    return pages


def _public_names() -> dict[str, list[str]]:
    """Full names of all public names, by room, in the order of the stub."""
    names: dict[str, list[str]] = {}
    for statement in ast.parse((ROOT / "fusili_mir/__init__.pyi").read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.ImportFrom) and statement.module:
            room = statement.module.split(".")[0] if "." in statement.module else ""
            found = [f"fusili_mir.{statement.module}.{alias.name}" for alias in statement.names]
            names.setdefault(room, []).extend(found)
    return names


def _room_page(room: str, names: list[str]) -> str:
    if room:
        title, sentence = _docstring(ROOT / "fusili_mir" / room / "__init__.py").split(": ", 1)
    else:
        title, sentence = "Shared", "what all of the above use."
    parts = (f"# {title}", sentence[0].upper() + sentence[1:].replace("->", "\N{RIGHTWARDS ARROW}"), _IMPORT)
    return "\n\n".join((*parts, *_entries(names)))


def _integrations() -> str:
    """Describe the names in `__all__` of every module of the integrations."""
    installed = '`pip install "fusili-mir[integrations]"`'
    parts = ["# Integrations", f"Bridges to other tools, in the package `fusili_integrations`: {installed}."]
    for file in sorted((ROOT / "integrations/fusili_integrations").glob("[!_]*.py")):
        module = f"fusili_integrations.{file.stem}"
        parts += [f"## `{module}`", _docstring(file)]
        parts += _entries([f"{module}.{name}" for name in _all_of(file)], level=3)
    return "\n\n".join(parts)


def _entries(names: list[str], level: int = 2) -> list[str]:
    return [f"::: {name}\n    options:\n      heading_level: {level}" for name in names]


def _docstring(file: Path) -> str:
    return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""


def _all_of(file: Path) -> list[str]:
    """Return what a module lists in `__all__` and defines itself."""
    module = ast.parse(file.read_text(encoding="utf-8"))
    defined = {node.name for node in module.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in module.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [name for name in ast.literal_eval(node.value) if name in defined]
    return []


def _command_line() -> str:
    """Show the help of every command, as it is printed."""
    files = sorted((ROOT / "fusili_mir/cli/commands").glob("[!_]*.py"))
    parts = ["# Command line", _help()]
    for command in (file.stem.replace("_", "-") for file in files):
        parts += [f"## fusili-mir {command}", _help(command)]
    return "\n\n".join(parts)


def _help(*command: str) -> str:
    printed = io.StringIO()
    with redirect_stdout(printed), suppress(SystemExit):
        main([*command, "--help"])
    return f"```text\n{printed.getvalue().rstrip()}\n```"
