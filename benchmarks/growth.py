"""How do CPU seconds and memory grow with the length of the sound, the number of pages, and silence?

    python benchmarks/growth.py                    # all cases, each in a process of its own
    python benchmarks/growth.py --case sound:30    # one of them

`sound:N` aligns N minutes of the example with N copies of its page; `silence:N` encodes N minutes of which one is
music; `pdf:N` reads a PDF of N pages. The processes that draw and engrave pages are counted.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import soundfile
from PIL import Image

from fusili_mir.alignment.aligner import Aligner
from fusili_mir.demo.example import load_example
from fusili_mir.model.bundle import default_bundle
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import load_pages

STAGES = ("pages", "recording", "recording and alignment", "alignment again")
CASES = ("sound:5", "sound:30", "sound:120", "silence:120", "silence:1380", "pdf:30", "pdf:300")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--case", action="append", help="only this case; may be repeated")
    parser.add_argument("--alone", help=argparse.SUPPRESS)  # in this process
    arguments = parser.parse_args()
    if arguments.alone:
        print(json.dumps(measure(arguments.alone)))
        return
    print(f"| case | CPU s | {' | '.join(STAGES)} | peak MB |\n" + "| --- " * (3 + len(STAGES)) + "|")
    for case in arguments.case or CASES:
        done = subprocess.run(
            [sys.executable, __file__, "--alone", case], capture_output=True, text=True, check=True
        )
        stages = json.loads(done.stdout.splitlines()[-1])
        cells = [f"{stages[name]:.1f}" if name in stages else "" for name in STAGES]
        print(
            f"| {case} | {stages['total']:.1f} | {' | '.join(cells)} | {stages['peak_mb']:.0f} |", flush=True
        )


def measure(case: str) -> dict[str, float]:
    """Run a case; return the CPU seconds of its stages and the peak of the memory."""
    kind, _, number = case.partition(":")
    stages: dict[str, float] = {}
    encoder = Encoder(default_bundle(), n_threads=1)
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "sound":
            _align(Path(name), int(number), encoder, stages)
        elif kind == "silence":
            sound = _write_sound(Path(name), int(number), n_sounding=1)
            with _stage("recording", stages):
                encoder.encode_recording(sound)
        else:
            pdf = _write_pdf(Path(name), int(number))
            with _stage("pages", stages):
                load_pages(pdf)
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    stages["total"] = sum(stages.values())
    stages["peak_mb"] = max(own.ru_maxrss, others.ru_maxrss) / (2**20 if sys.platform == "darwin" else 2**10)
    return stages


def _align(folder: Path, n_minutes: int, encoder: Encoder, stages: dict[str, float]) -> None:
    sound = _write_sound(folder, n_minutes, n_minutes)
    with _stage("pages", stages):
        aligner = Aligner(encoder)
        pages = load_pages([load_example().page] * n_minutes)
        aligner.encode(pages)
    with _stage("recording and alignment", stages):
        result = aligner.align(pages, sound)
    with _stage("alignment again", stages):
        result.again(())


@contextmanager
def _stage(name: str, stages: dict[str, float]) -> Iterator[None]:
    start = time.process_time()
    yield
    stages[name] = time.process_time() - start


def _write_sound(folder: Path, n_minutes: int, n_sounding: int) -> Path:
    """Write the example some times over, and silence until the minutes are full."""
    samples, rate_hz = soundfile.read(load_example().recording, dtype="float32")
    filename = folder / "sound.flac"
    with soundfile.SoundFile(filename, "w", rate_hz, 1) as file:
        for minute in range(n_minutes):
            file.write(samples if minute < n_sounding else np.zeros(60 * rate_hz, np.float32))
    return filename


def _write_pdf(folder: Path, n_pages: int) -> Path:
    """Write the page of the example some times over."""
    filename = folder / "pages.pdf"
    with Image.open(load_example().page) as page:
        grey = page.convert("L")
    grey.save(filename, save_all=True, append_images=[grey] * (n_pages - 1), resolution=200)
    return filename


if __name__ == "__main__":
    main()
