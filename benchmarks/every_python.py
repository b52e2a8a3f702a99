"""A short pass on every Python that pyproject.toml promises and that is found here.

In an environment of its own for each, the wheel is built and installed; in an empty folder the demo runs into a
relative place, a score is aligned, and a plain script, without a guard around its main part, indexes the example
with two processes.

python benchmarks/every_python.py [VERSION...]
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = "cpu,collections"
TIME_LIMIT_SEC = 1800
EXAMPLE = (
    "from shutil import copy; from fusili_mir.demo.example import load_example; example = load_example(); "
    "copy(example.score, 'song.mxl'); copy(example.recording, 'song.ogg')"
)
SCRIPT = """\
import fusili_mir as fm

report = fm.build_index(["song.mxl", "song.ogg"], "index", jobs=2)
assert [file.status for file in report.files] == ["added", "added"], report.files
print("indexed once")
"""
"""Workers import the main module: without care, each would run this script again."""


class FailedError(Exception):
    """A step of the pass did not do what it should."""


def promised() -> list[str]:
    """Return the versions of Python in the classifiers of the project, such as 3.11."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = (
        re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in project["classifiers"]
    )
    return [version[1] for version in versions if version]


def find_python(version: str) -> str | None:
    """Return an interpreter of a version that can make environments: this one, on the path, or one of pyenv."""
    return next((each for each in _candidates(version) if _is_usable(each, version)), None)


def _candidates(version: str) -> Iterator[str]:
    yield sys.executable
    for name in (f"python{version}", "python3"):
        yield from filter(None, [shutil.which(name)])
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python3")))


def _is_usable(python: str, version: str) -> bool:
    code = "import ensurepip, sys, venv; print(*sys.version_info[:2], sep='.')"
    asked = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return asked.stdout.strip() == version


def try_python(python: str, folder: Path) -> None:
    """Run the pass in an empty folder."""
    run(folder, python, "-m", "venv", "venv")
    programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    pip = (str(programs / "python"), "-m", "pip", "--quiet")
    run(folder, *pip, "wheel", "--no-deps", "--wheel-dir", "dist", str(ROOT))
    (wheel,) = (folder / "dist").glob("*.whl")
    run(folder, *pip, "install", f"{wheel}[{EXTRAS}]")
    empty = folder / "empty"
    empty.mkdir()
    fusili_mir, python = str(programs / "fusili-mir"), str(programs / "python")
    run(empty, fusili_mir, "demo", "-o", "demo")
    run(empty, python, "-c", EXAMPLE)
    run(empty, fusili_mir, "align", "song.mxl", "song.ogg", "-o", "result")
    (empty / "index_it.py").write_text(SCRIPT, encoding="utf-8")
    said = run(empty, python, "index_it.py")
    if said.count("indexed once") != 1:
        raise FailedError(f"index_it.py printed {said!r}, expected one line")
    for file in (
        "demo/from-score/view.html",
        "demo/from-image/view.html",
        "result/view.html",
        "index/report.csv",
    ):
        if not (empty / file).is_file():
            raise FailedError(f"{file} was not written")


def run(folder: Path, *command: str) -> str:
    """Run a program without the packages of this environment; return what it prints."""
    around = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        command,
        cwd=folder,
        env=around,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        timeout=TIME_LIMIT_SEC,
        check=False,
    )
    if done.returncode:
        raise FailedError(f"{' '.join(command)} ended with exit code {done.returncode}:\n{done.stdout}")
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "versions", nargs="*", metavar="VERSION", help="Such as 3.12.  [default: all promised]"
    )
    versions = parser.parse_args().versions or promised()
    n_tried = n_failed = 0
    for version in versions:
        python = find_python(version)
        if python is None:
            print(f"Python {version}: not found, not tried", flush=True)
            continue
        n_tried += 1
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="fusili-mir-") as folder:
            try:
                try_python(python, Path(folder))
            except (FailedError, subprocess.TimeoutExpired) as error:
                n_failed += 1
                print(f"Python {version} ({python}): {error}", flush=True)
                continue
        print(f"Python {version} ({python}): passed in {time.monotonic() - start:.0f} s", flush=True)
    return 1 if n_failed or not n_tried else 0


if __name__ == "__main__":
    sys.exit(main())
