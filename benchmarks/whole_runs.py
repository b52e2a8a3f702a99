"""What one alignment with a symbolic score costs, from files to files: CPU seconds and memory of `align`.

    OMP_NUM_THREADS=1 python benchmarks/whole_runs.py SCORE ... [--formats json] [--soundfont FILE]

Each score is played as it is written by fluidsynth, at its own tempo, into a WAV file (stereo). Then the
command is called as a person would call it, in a process of its own; starting Python, importing, engraving by
Verovio's process, and writing count, too. Peak MB are those of the largest process.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import partitura as pt
import soundfile


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("scores", type=Path, nargs="+")
    parser.add_argument("--formats", nargs="+", default=[], help="formats to write; all by default")
    parser.add_argument("--soundfont", type=Path, default=Path("/usr/share/sounds/sf2/TimGM6mb.sf2"))
    parser.add_argument("--runs", type=int, default=1, help="the cheapest of so many runs counts")
    arguments = parser.parse_args()
    print("| score | sound, min | CPU s | peak MB | CPU s a minute |")
    print("| --- | --- | --- | --- | --- |")
    for score in arguments.scores:
        with tempfile.TemporaryDirectory() as folder:
            sound = play(score, Path(folder), arguments.soundfont)
            minutes = soundfile.info(sound).duration / 60
            formats = [part for name in arguments.formats for part in ("--format", name)]
            command = ["align", str(score), str(sound), "--quiet", "--force", *formats]
            runs = [cost([*command, "-o", str(Path(folder) / "out")]) for _ in range(arguments.runs)]
        cpu_sec, peak_mb = min(runs)
        print(
            f"| {score.stem} | {minutes:.1f} | {cpu_sec:.1f} | {peak_mb:.0f} | {cpu_sec / minutes:.2f} |",
            flush=True,
        )


def play(score: Path, folder: Path, soundfont: Path) -> Path:
    """Write a recording of a score, played as written."""
    midi, sound = folder / "played.mid", folder / "played.wav"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pt.save_score_midi(pt.load_score(str(score)), str(midi))
    command = ["fluidsynth", "-n", "-i", "-q", "-r", "44100", "-F", sound, soundfont, midi]
    subprocess.run(command, check=True)
    return sound


def cost(arguments: list[str]) -> tuple[float, float]:
    """Return the CPU seconds of a command with all its processes, and the memory of the largest, in MB."""
    program = [sys.executable, "-c", "from fusili_mir.cli.console import run; run()", *arguments]
    process = os.posix_spawn(sys.executable, program, os.environ)
    _, status, usage = os.wait4(process, 0)
    if os.waitstatus_to_exitcode(status):
        sys.exit(f"fusili-mir {' '.join(arguments)} failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


if __name__ == "__main__":
    main()
