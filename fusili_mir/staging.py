"""Writing results so that nothing half-written ever stands under its final name."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fusili_mir.errors import OutputError

__all__ = ["check_output_folder", "staged_folder"]


def check_output_folder(out: str | Path, force: bool = False) -> None:
    """Refuse a place that `staged_folder` would refuse: call it before long work."""
    out = Path(out)
    try:
        if out.exists() and not out.is_dir():
            raise OutputError(f"{out}: a file stands there, expected a folder or a new name")
        if not force and out.is_dir() and any(out.iterdir()):
            raise OutputError(
                f"{out}: the folder is not empty; choose another one, or add --force to replace files"
            )
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{out}: cannot be written ({error.strerror})") from error


@contextmanager
def staged_folder(out: str | Path, force: bool = False) -> Iterator[Path]:
    """Give a folder to write into, and move its files to `out` when all is done.

    Parameters
    ----------
    out : str or Path
        Where the files shall stand in the end; made if it does not exist.
    force : bool
        Whether files may be added to, and replaced in, a folder that already holds some.

    Yields
    ------
    Path
        An empty folder beside `out`. It is gone after an error, and `out` is as it was.
    """
    check_output_folder(out, force)
    out = Path(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    except OSError as error:
        raise OutputError(f"{out}: cannot be written ({error.strerror})") from error
    try:
        yield stage
        out.mkdir(exist_ok=True)
        for file in sorted(stage.iterdir()):
            file.replace(out / file.name)
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{out}: cannot be written ({error.strerror or error})") from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)
