"""Real recordings: a violinist plays Bach, beside the alignments that come with the recordings.

    python benchmarks/real_violin.py bach-violin [--model BUNDLE] [--out FOLDER]

`bach-violin` is the folder of that name in github.com/salu133445/bach-violin-dataset. The movements of BWV 1002
that John Garner plays (CC BY 3.0) are aligned with their scores. The times of the dataset are estimates on a grid
of 32 ms, not the truth; where they were made without the silence at the beginning, all of them are early by the
same time: the shift with the smallest median error is stated, and taken into account. `--out` keeps the results,
with pages to look at.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np

import fusili_mir as fm
from fusili_mir.arrays import Float64, Int64, Table
from fusili_mir.errors import FusiliError

PLAYER, PIECE = "john-garner", "bwv1002"
SHIFTS_SEC = np.arange(-3.0, 3.001, 0.02)
LEAST_SHIFT_SEC = 0.2
TOLERANCES_MS = (50, 100, 250)


def estimate(folder: Path, stem: str) -> tuple[Float64, Int64]:
    """Return the seconds [shape=(n,)] that the dataset gives, and the pitches of these notes."""
    times, notes = (folder / kind / PLAYER / f"{stem}.csv" for kind in ("alignments", "notes"))
    with times.open() as seconds, notes.open() as pitches:
        return (
            np.array([float(row["start"]) for row in csv.DictReader(seconds)]),
            np.array([int(row["pitch"]) for row in csv.DictReader(pitches)]),
        )


def nearest(notes: Table, second: Float64, pitch: Int64) -> tuple[float, Float64]:
    """Return the shift that brings the notes nearest, and their distances with it; infinite if there is none.

    The n-th note of a pitch belongs to the n-th note of that pitch.
    """
    apart = np.full(len(second), np.inf)
    for key in np.unique(pitch):
        ours = np.sort(notes["onset_sec"][notes["pitch"] == key])
        theirs = np.flatnonzero(pitch == key)[np.argsort(second[pitch == key], kind="stable")]
        both = min(len(ours), len(theirs))
        apart[theirs[:both]] = ours[:both] - second[theirs[:both]]

    def distances(shift_sec: float) -> Float64:
        return np.abs(apart - shift_sec)

    shift_sec = min(SHIFTS_SEC, key=lambda shift: float(np.median(distances(shift))))
    shift_sec = 0.0 if abs(shift_sec) < LEAST_SHIFT_SEC else shift_sec
    return float(shift_sec), distances(shift_sec)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", type=Path, help="bundle; by default the one that is installed")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    bundle = fm.load_bundle(arguments.model) if arguments.model else fm.default_bundle()
    limits = " | ".join(f"within {ms} ms" for ms in TOLERANCES_MS)
    print(f"| movement | notes | reliability | shift, s | median ms | {limits} |")
    print("|" + " --- |" * (5 + len(TOLERANCES_MS)))
    for sound in sorted((arguments.folder / "audio" / PLAYER).glob(f"{PLAYER}_{PIECE}_*.mp3")):
        name = sound.stem.removeprefix(f"{PLAYER}_")
        try:
            aligned = fm.align_recording(
                arguments.folder / "scores" / PIECE / f"{name}.mxl", sound, model=bundle
            )
        except FusiliError as error:
            print(f"| {name} | {error} |")
            continue
        estimated_sec, pitch = estimate(arguments.folder, sound.stem)
        shift_sec, errors = nearest(aligned.notes, estimated_sec, pitch)
        shares = " | ".join(f"{100 * np.mean(errors <= ms / 1000):.1f} %" for ms in TOLERANCES_MS)
        print(
            f"| {name} | {len(pitch)} | {aligned.reliability:.2f} | {shift_sec:.2f} "
            f"| {1000 * np.median(errors):.0f} | {shares} |",
            flush=True,
        )
        if arguments.out is not None:
            fm.save_alignment(aligned, arguments.out / name, force=True)


if __name__ == "__main__":
    main()
