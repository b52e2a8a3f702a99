"""Reading scores that only MuseScore reads: an installed MuseScore converts them to MusicXML."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from fusili_mir.boundary import read_limited, reason
from fusili_mir.brought_files import NOTATION_PROGRAMS
from fusili_mir.errors import InputError
from fusili_mir.limits import limit
from fusili_mir.worker_process import ending_with_caller

__all__ = ["convert_with_musescore", "find_musescore"]

_NAMES = (
    *("mscore4portable", "musescore4", "mscore4", "MuseScore4", "mscore", "musescore", "MuseScore"),
    *("mscore3", "musescore3", "MuseScore3", "mscore-portable", "musescore.mscore"),
)
_MAC = (
    "/Applications/MuseScore 4.app/Contents/MacOS/mscore",
    "/Applications/MuseScore 3.app/Contents/MacOS/mscore",
)


def find_musescore() -> str | None:
    """Return the path of an installed MuseScore, or None."""
    candidates = (*_NAMES, *(_MAC if sys.platform == "darwin" else ()))
    return next(filter(None, map(shutil.which, candidates)), None)


def convert_with_musescore(filename: str | Path) -> bytes:
    """Convert a score to MusicXML with MuseScore.

    Parameters
    ----------
    filename : str or Path
        A score in a format of MuseScore (.mscz, .mscx), or one that it imports (Guitar Pro, Capella, ...).

    Returns
    -------
    bytes
        The score as MusicXML.
    """
    program = find_musescore()
    if program is None:
        writer = NOTATION_PROGRAMS.get(Path(filename).suffix.lower(), "MuseScore")
        raise InputError(
            f"{filename}: can be read only with MuseScore, which is not installed (no program {_NAMES[4]} or "
            f"{_NAMES[1]} was found); install it, or export MusicXML from {writer}"
        )
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "score.musicxml"
        environment = {**os.environ}
        if sys.platform.startswith("linux") and "DISPLAY" not in environment:
            environment.setdefault("QT_QPA_PLATFORM", "offscreen")
        command = [program, "-f", "-o", str(result), str(Path(filename).resolve())]
        try:
            done = subprocess.run(  # noqa: S603 - a program from the path, without a shell
                ending_with_caller(command),
                capture_output=True,
                timeout=limit("musescore_sec"),
                env=environment,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise InputError(
                f"{filename}: {program} took more than {error.timeout:g} s to convert it; export MusicXML by hand"
            ) from error
        except OSError as error:
            raise InputError(f"{filename}: {program} cannot be started ({reason(error)})") from error
        if done.returncode or not result.is_file():
            said = done.stderr.decode(errors="replace").strip().splitlines()
            raise InputError(
                f"{filename}: {program} cannot convert it (exit code {done.returncode}"
                + (f": {said[-1][:200]}" if said else "")
                + "); can MuseScore open it?"
            )
        return read_limited(result, "score_bytes", "expected the score that MuseScore wrote")
