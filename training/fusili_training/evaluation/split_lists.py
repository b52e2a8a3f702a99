"""Split files: YAML with one list of piece names per split, nothing else.

Only the YAML of such files is understood: keys at the left, items after a dash or in brackets, comments, quotes.
"""

from __future__ import annotations

from pathlib import Path

from fusili_mir.boundary import reason
from fusili_mir.errors import InputError

__all__ = ["read_split_lists"]


def read_split_lists(filename: str | Path) -> dict[str, list[str]]:
    """Read the lists of a split file.

    Parameters
    ----------
    filename : str or Path

    Returns
    -------
    dict of str to list of str
        Name of a split -> names of its pieces.
    """
    filename = Path(filename)
    try:
        lines = filename.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{filename}: cannot be read ({reason(error)}); expected a split file") from error
    lists: dict[str, list[str]] = {}
    current: list[str] | None = None
    for number, raw in enumerate(lines, start=1):
        line = raw.split(" #")[0].strip()
        if not line or line.startswith("#") or line in ("---", "..."):
            continue
        if line.startswith("- ") and current is not None:
            current.append(_plain(line[2:]))
            continue
        name, colon, rest = line.partition(":")
        if not colon or raw[0].isspace() or (rest.strip() and not rest.strip().startswith("[")):
            raise InputError(
                f"{filename}: line {number} is {line!r}; expected a split such as `test:` and its pieces"
            )
        inner = rest.strip().strip("[]")
        current = lists[_plain(name)] = [_plain(item) for item in inner.split(",") if item.strip()]
    if not lists:
        raise InputError(f"{filename}: no splits; expected `train:`, `valid:` or `test:` and lists of pieces")
    return lists


def _plain(item: str) -> str:
    return item.strip().strip("'\"")
