"""From JavaScript modules to one inline script.

A page that is opened from disk cannot import modules. So each module becomes a function that is called once, in
an order in which all it imports comes first. The modules of `page/` keep to what this reads: imports of names
from a neighbour, and `export` before a declaration, each at the start of a line.
"""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["inline_modules"]

_IMPORT = re.compile(r'^import \{ (?P<names>[\w, ]+) \} from "\./(?P<module>\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (?P<name>\w+))", re.MULTILINE)
_LEFT_OVER = re.compile(r"^\s*(?:import|export)\b", re.MULTILINE)


def inline_modules(folder: Path, main: str) -> str:
    """Return a script that does what importing a module does.

    Parameters
    ----------
    folder : Path
        Folder of all modules.
    main : str
        Name of the module, without its suffix.

    Returns
    -------
    str
    """
    parts: dict[str, str] = {}
    _add(folder, main, parts, ())
    return '"use strict";\n' + "".join(parts.values())


def _add(folder: Path, module: str, parts: dict[str, str], importers: tuple[str, ...]) -> None:
    if module in parts:
        return
    if module in importers:
        raise ValueError(f"{module}.js imports itself by way of {', '.join(importers)}")
    source = (folder / f"{module}.js").read_text(encoding="utf-8")
    for each in _IMPORT.finditer(source):
        _add(folder, each["module"], parts, (*importers, module))
    names = [each["name"] for each in _EXPORT.finditer(source)]
    body = _IMPORT.sub(lambda each: f"const {{ {each['names']} }} = ${each['module']};\n", source)
    body = _EXPORT.sub("", body)
    if left_over := _LEFT_OVER.search(body):
        line = body[left_over.start() :].strip().splitlines()[0]
        raise ValueError(
            f"{module}.js: {line!r}; expected imports and exports as script_inlining.py reads them"
        )
    parts[module] = f"const ${module} = (() => {{\n{body}return {{ {', '.join(names)} }};\n}})();\n"
