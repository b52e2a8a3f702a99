"""Surroundings in which a program must do the same: fonts, locale, CPUs, time zone, seeds."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fusili_mir.pages.glyphs import TEXT_FONTS

__all__ = ["Surroundings", "checksums", "make_surroundings", "run_in"]

_FONTS = '<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd"><fontconfig>{}</fontconfig>'
_CHOOSE_LOCALE = 'import locale\nlocale.setlocale(locale.LC_ALL, "")\n'
_ON_ONE_CPU = """
import os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.execv(sys.argv[1], sys.argv[1:])
"""


@dataclass(frozen=True)
class Surroundings:
    """What is different for a program.

    Attributes
    ----------
    environment : dict
        Environment variables.
    one_cpu : bool
        Whether it may use one CPU only, where the system can enforce that.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    one_cpu: bool = False

    def __or__(self, other: Surroundings) -> Surroundings:
        """Return both together."""
        return Surroundings({**self.environment, **other.environment}, self.one_cpu or other.one_cpu)


def make_surroundings(folder: Path) -> dict[str, Surroundings]:
    """Prepare the files for all surroundings in a folder; Turkish is left out without Debian's `locales`.

    Numbers of the Turkish locale have a decimal comma, and every Python process chooses that locale as a program
    with windows does.
    """
    (folder / "no-home").mkdir(parents=True)
    (folder / "no-fonts.conf").write_text(_FONTS.format(""))
    fonts = folder / "home" / ".fonts"
    fonts.mkdir(parents=True)
    (folder / "more-fonts.conf").write_text(_FONTS.format(f"<dir>{fonts}</dir>"))
    for font in TEXT_FONTS:
        shutil.copy(font, fonts)
    found = {
        "plain": Surroundings(),
        "one CPU": Surroundings({"OMP_NUM_THREADS": "1"}, one_cpu=True),
        "no fonts": Surroundings(
            {"FONTCONFIG_FILE": str(folder / "no-fonts.conf"), "HOME": str(folder / "no-home")}
        ),
        "more fonts": Surroundings(
            {"FONTCONFIG_FILE": str(folder / "more-fonts.conf"), "HOME": str(folder / "home")}
        ),
        "locale C": Surroundings({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
        "locale C.UTF-8": Surroundings({"LC_ALL": "C.UTF-8"}),
        "other seed and time zone": Surroundings({"PYTHONHASHSEED": "7", "TZ": "Asia/Kathmandu"}),
    }
    if _compile_turkish(folder / "locales"):
        (folder / "site").mkdir()
        (folder / "site" / "sitecustomize.py").write_text(_CHOOSE_LOCALE)
        found["locale tr_TR.UTF-8"] = Surroundings(
            {
                "LC_ALL": "tr_TR.UTF-8",
                "LOCPATH": str(folder / "locales"),
                "PYTHONPATH": os.pathsep.join([str(folder / "site"), *filter(None, sys.path)]),
            }
        )
    return found


def run_in(surroundings: Surroundings, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with arguments, in surroundings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
    kept.pop("OPENBLAS_NUM_THREADS", None)
    command = [sys.executable, *arguments]
    if surroundings.one_cpu and hasattr(os, "sched_setaffinity"):
        command = [sys.executable, "-c", _ON_ONE_CPU, *command]
    return subprocess.run(
        command,
        env={**kept, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **surroundings.environment},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )


def checksums(folder: Path) -> dict[str, str]:
    """Return the checksum of every file of a folder, by its name."""
    return {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def _compile_turkish(folder: Path) -> bool:
    compiler = shutil.which("localedef")
    if compiler is None:
        return False
    folder.mkdir()
    command = [compiler, "-i", "tr_TR", "-f", "UTF-8", str(folder / "tr_TR.UTF-8")]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
