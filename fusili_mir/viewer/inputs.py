"""Where the files of a result are, so that it can be decoded again: `inputs.json` in its folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fusili_mir.alignment.align_options import AlignOptions
from fusili_mir.alignment.swapped_files import refuse_swapped
from fusili_mir.boundary import refuse_address
from fusili_mir.dataclass_tables import read_table
from fusili_mir.errors import InputError
from fusili_mir.untrusted_json import read_json

__all__ = ["INPUTS_FILE", "Inputs", "load_inputs", "save_inputs"]

INPUTS_FILE = "inputs.json"
_FORMAT = 1


@dataclass(frozen=True)
class Inputs:
    """What a result was made from.

    Attributes
    ----------
    score : tuple of Path
        The file of the score, or those of its pages; a range such as ``#3-7`` may follow a name.
    recording : Path
    options : AlignOptions
        Without anchors, which are in a table of their own.
    model : Path, optional
        Folder of the bundle; None for the installed one.
    formats : tuple of str
        What was written; empty: all that applies.
    """

    score: tuple[Path, ...]
    recording: Path
    options: AlignOptions = AlignOptions()  # noqa: RUF009 (frozen)
    model: Path | None = None
    formats: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Kept:
    """The content of the file."""

    format: int
    score: tuple[str, ...] = ()
    recording: str | None = None
    model: str | None = None
    formats: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


def save_inputs(inputs: Inputs, filename: Path, folder: Path) -> None:
    """Write inputs with their places relative to the folder of the result."""
    content = {
        "format": _FORMAT,
        "score": [_relative(file, folder) for file in inputs.score],
        "recording": _relative(inputs.recording, folder),
        "model": None if inputs.model is None else str(inputs.model),
        "formats": inputs.formats,
        "options": replace(inputs.options, anchors=()).to_json(),
    }
    text = json.dumps(content, indent=1, ensure_ascii=False)
    filename.write_text(f"{text}\n", encoding="utf-8", errors="replace")  # names need not be valid Unicode


def load_inputs(folder: Path, score: Sequence[Path] = (), recording: Path | None = None) -> Inputs:
    """Read the inputs of a result; files that are given take the place of those that it names."""
    filename = folder / INPUTS_FILE
    kept = _read(filename) if filename.is_file() else _Kept(_FORMAT)
    scores = tuple(score) or tuple(folder / name for name in kept.score)
    sound = recording or (folder / kept.recording if kept.recording else None)
    if not scores or sound is None:
        raise InputError(
            f"{folder}: it does not say where score and recording are; give --score and --recording"
        )
    for file in (*scores, sound):
        refuse_address(file)
        if not _exists(Path(str(file).split("#")[0])):
            raise InputError(f"{file}: not found; give --score or --recording if it was moved")
    refuse_swapped(scores, sound, "exchange --score and --recording")
    try:
        options = AlignOptions.from_json(kept.options)
    except InputError as error:
        raise _damaged(filename, error) from error
    return Inputs(scores, sound, options, Path(kept.model) if kept.model else None, kept.formats)


def _read(filename: Path) -> _Kept:
    content = read_json(filename, "align again, or remove it")
    try:
        kept = read_table(_Kept, content)
    except InputError as error:
        raise _damaged(filename, error) from error
    if kept.format != _FORMAT:
        raise InputError(f"{filename}: format {kept.format}, expected {_FORMAT}; align again")
    return kept


def _damaged(filename: Path, error: InputError) -> InputError:
    return InputError(f"{filename}: damaged ({error}); align again, or remove it")


def _exists(file: Path) -> bool:
    try:
        return file.exists()
    except (OSError, ValueError):  # a name that no system has: too long, or with a NUL
        return False


def _relative(file: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(file.absolute(), folder.absolute())).as_posix()
    except ValueError:  # another drive
        return file.absolute().as_posix()
