"""LilyPond as a program: sources of any age in, SVG pages and the table of their note heads out."""

from __future__ import annotations

import io
import os
import re
import resource
import shutil
import subprocess
from pathlib import Path

import numpy as np
import resvg_py
from PIL import Image

from fusili_benchmarks.held_out_lilypond import LilypondPage
from fusili_mir.arrays import GreyImage
from fusili_mir.errors import InputError
from fusili_mir.pages.glyphs import TEXT_FONTS

__all__ = ["draw_page", "is_only_scheme", "run_lilypond"]

HEADS = Path(__file__).parents[1] / "lilypond_heads.ly"
SPACE_PX = 10
_ERROR = re.compile(r":\d+:\d+: (?:fatal )?error: ")
_IN_SCHEME = "error: Guile signaled an error for the expression beginning here"
SIZE_MM = re.compile(r'width="[\d.]+mm" height="[\d.]+mm"')


def run_lilypond(source: Path, folder: Path, binaries: Path, limit_sec: float) -> list[str]:
    """Convert a source and its includes to the current syntax, and engrave it; return its pages."""
    sources = folder / "source"
    shutil.copytree(source.parent, sources)
    for file in [*sources.rglob("*.ly"), *sources.rglob("*.ily")]:
        _run([binaries / "convert-ly", "--loglevel=ERROR", "--edit", file], sources, limit_sec)
    options = ["--loglevel=ERROR", "-dbackend=svg", "-dno-point-and-click", f"-dinclude-settings={HEADS}"]
    heads = {"HEADS_FILE": str(folder / "heads.tsv")}
    _run([binaries / "lilypond", *options, "-o", folder / "page", source.name], sources, limit_sec, heads)
    pages = sorted(folder.glob("page*.svg"), key=_page_number)
    if not pages:
        raise InputError("LilyPond wrote no page")
    return [page.read_text(encoding="utf-8") for page in pages]


def _run(
    command: list[str | Path], folder: Path, limit_sec: float, variables: dict[str, str] | None = None
) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (round(limit_sec), round(limit_sec) + 1))

    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | (variables or {}),
        preexec_fn=limit,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode < 0:
        raise InputError(f"{Path(command[0]).name} took more than {limit_sec:g} s")
    if done.returncode and not is_only_scheme(done.stderr):
        complaint = next((line for line in done.stderr.splitlines() if "error" in line), "it gave no reason")
        raise InputError(f"{Path(command[0]).name} failed ({complaint.strip()[:80]})")


def is_only_scheme(complaints: str) -> bool:
    """Return whether all errors are Scheme expressions of the source, such as settings that no longer exist.

    LilyPond leaves such an expression out and engraves the rest. An error while it engraves (`init.ly`) or in the
    notes is another matter.
    """
    errors = [line for line in complaints.splitlines() if _ERROR.search(line)]
    return bool(errors) and all(_IN_SCHEME in line and "/init.ly:" not in line for line in errors)


def _page_number(page: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", page.stem))


def draw_page(svg: str, page: LilypondPage, space_px: float = SPACE_PX) -> GreyImage:
    """Draw a page with some pixels to the staff space."""
    size = f'width="{round(page.width * space_px)}" height="{round(page.height * space_px)}"'
    png = resvg_py.svg_to_bytes(
        svg_string=SIZE_MM.sub(size, svg, count=1),
        background="white",
        skip_system_fonts=True,
        font_files=[str(font) for font in TEXT_FONTS],
        serif_family="Liberation Serif",
    )
    with Image.open(io.BytesIO(bytes(png))) as image:
        return np.asarray(image.convert("L"))
