"""The machine as tests see it: what `make test` installs, and what no Debian is without.

Soundfonts, fonts, browsers, programs and settings that happen to lie on the machine are hidden, from the
processes that tests start too: everything is said by the environment. So a missing line of
``system-packages.txt`` fails on every machine, and not on the next one.

Other systems than Debian and its relatives show themselves as they are.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

__all__ = ["essential_packages", "listed_packages", "sealed"]

ROOT = Path(__file__).parent.parent
PACKAGES = ROOT / "system-packages.txt"
OUR_FONTS = ROOT / "fusili_mir" / "pages" / "fonts"
HIDDEN = ("FUSILI_", "PYTHON")  # PYTHONUNBUFFERED, for one, hides what happens to buffered output
KEPT = ("PYTHONPATH", "PYTHONHOME")
PROGRAM_FOLDERS = {"/bin", "/sbin", "/usr/bin", "/usr/sbin"}


def listed_packages() -> list[str]:
    """Return the packages of the list, those of which one is enough one by one."""
    entries = (line.partition("#")[0] for line in PACKAGES.read_text(encoding="utf-8").splitlines())
    return [name.strip() for entry in entries for name in entry.split("|") if name.strip()]


def sealed(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return an environment in which only what `make test` installs is seen.

    Parameters
    ----------
    environment : mapping of str to str
        Variables of a process.
    folder : Path
        An empty folder for links to programs and soundfonts.

    Returns
    -------
    dict of str to str
        The same variables, without settings of ours and of Python's; on systems that are not Debian, all of them.
    """
    banks = {"FUSILI_SOUNDBANKS": str(folder / "soundbanks")}
    essential = essential_packages()
    if not essential:
        return {**environment, **banks}
    programs, soundfonts = folder / "programs", folder / "soundfonts"
    for made in (programs, soundfonts):
        made.mkdir()
    for file in _files([*essential, *listed_packages()]):
        if str(file.parent) in PROGRAM_FOLDERS:
            _link(programs / file.name, file)
        elif file.suffix in (".sf2", ".sf3"):
            _link(soundfonts / file.name, file)
    (folder / "fonts.conf").write_text(
        f"<fontconfig><dir>{OUR_FONTS}</dir><cachedir>{folder / 'fonts'}</cachedir></fontconfig>\n"
    )
    seen = {"PATH": programs, "FUSILI_SOUNDFONTS": soundfonts, "FONTCONFIG_FILE": folder / "fonts.conf"}
    return {
        **{name: value for name, value in environment.items() if name in KEPT or not name.startswith(HIDDEN)},
        **banks,
        **{name: str(path) for name, path in seen.items()},
    }


def essential_packages() -> list[str]:
    """Return the packages that no Debian is without: a shell, cp, sed, ...; none on other systems."""
    if shutil.which("dpkg-query") is None:
        return []
    lines = _dpkg_query("--show", "--showformat", "${Essential} ${Package}\n").splitlines()
    return [line.removeprefix("yes ") for line in lines if line.startswith("yes ")]


def _files(packages: list[str]) -> list[Path]:
    """Return the files of those of the packages that are installed."""
    files = map(Path, _dpkg_query("--listfiles", *packages).splitlines())
    return [file for file in files if file.is_file()]


def _dpkg_query(*arguments: str) -> str:
    # its exit code says that some package is not installed
    return subprocess.run(["dpkg-query", *arguments], capture_output=True, text=True, check=False).stdout


def _link(link: Path, target: Path) -> None:
    if not link.is_symlink():  # /bin/sh and /usr/bin/sh
        link.symlink_to(target)
