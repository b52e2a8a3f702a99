"""Do other programs take what we write for them? alphaTab its sync points, the schema of MEI our MEI.

    python benchmarks/read_back.py [SCORE ...] [--schema mei-all.rng]

Scores (without any: those of the tests) are played by fluidsynth as they are notated, with all repeats, and
aligned. alphaTab comes from npm, so this needs node, npm and a network. The schema is that of
https://music-encoding.org/schema/dev, for the MEI that this version of Verovio writes; without it, MEI is left
out.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path

import numpy as np
import partitura as pt
from lxml import etree

from fusili_mir.alignment.aligning import align_recording
from fusili_mir.alignment.results import Alignment
from fusili_mir.output.alphatab_sync import save_sync_points, sync_points
from fusili_mir.output.mei_recording import mei_with_recording
from fusili_mir.pages.pages import render_pages

SCORES = Path(__file__).parent.parent / "tests" / "fusili_mir" / "scores" / "files"
PACKAGE = "@coderline/alphatab@1.8.4"
READ = """
import * as at from './package/dist/alphaTab.mjs';
import fs from 'node:fs';
const [scoreFile, pointsFile] = process.argv.slice(2);
const data = new Uint8Array(fs.readFileSync(scoreFile));
const score = at.importer.ScoreLoader.loadScoreFromBytes(data, new at.Settings());
score.applyFlatSyncPoints(JSON.parse(fs.readFileSync(pointsFile)));
const points = at.midi.MidiFileGenerator.generateSyncPoints(score).map(
  (point) => [point.masterBarIndex, point.masterBarOccurence, point.synthTick / 960, point.syncTime]
);
console.log(JSON.stringify(points));
"""


def play(score: Path, folder: Path) -> Alignment:
    """Align a score with itself, played at its written tempo."""
    unfolded = render_pages(score, unfold="maximal").score
    assert unfolded is not None
    notes = unfolded.note_array()
    seconds = 0.5 * (notes["onset_quarter"] - notes["onset_quarter"].min()) + 0.5
    played = [
        {
            "id": f"n{number}",
            "midi_pitch": int(note["pitch"]),
            "note_on": float(second),
            "note_off": float(second + max(0.5 * note["duration_quarter"], 0.05)),
            "velocity": 64,
        }
        for number, (note, second) in enumerate(zip(notes, seconds, strict=True))
    ]
    pt.save_performance_midi(pt.performance.PerformedPart(played, id="P"), str(folder / "played.mid"))
    return align_recording(render_pages(score), folder / "played.mid", unfold="maximal")


def fetch_alphatab(folder: Path) -> Path:
    """Unpack alphaTab, and write the script that reads points with it."""
    subprocess.run(["npm", "pack", PACKAGE, "--silent"], cwd=folder, check=True, capture_output=True)
    shutil.unpack_archive(next(folder.glob("*.tgz")), folder, "gztar", filter="data")
    (folder / "read.mjs").write_text(READ)
    return folder


def read_points(alignment: Alignment, alphatab: Path) -> str:
    """Say how many points alphaTab has at our bars and times, and how many starts of measures at our quarters."""
    save_sync_points(alignment, alphatab / "points.json")
    command = ["node", "read.mjs", alignment.pages.filename, "points.json"]
    done = subprocess.run(command, cwd=alphatab, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    points = sync_points(alignment)
    ours = [(each["barIndex"], each["barOccurence"], each["millisecondOffset"]) for each in points]
    same = len({*ours} & {(bar, occurrence, time) for bar, occurrence, _, time in found})
    starts = {(bar, occurrence): quarter for bar, occurrence, quarter, _ in reversed(found)}
    told = {(each["barIndex"], each["barOccurence"]) for each in points}
    quarters = np.array([starts[bar] for bar in sorted(told & starts.keys(), key=lambda bar: starts[bar])])
    length = np.median(np.diff(quarters)) if len(quarters) > 1 else np.nan
    return f"{same} of {len(ours)} | {len(quarters)} of {len(told)}, {length:g} quarters apart"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("score", nargs="*", type=Path)
    parser.add_argument("--schema", type=Path)
    arguments = parser.parse_args()
    schema = arguments.schema and etree.RelaxNG(
        etree.parse(arguments.schema, etree.XMLParser(huge_tree=True))
    )
    print("| score | points that alphaTab has as they are | measures that it has | MEI |")
    print("| --- | --- | --- | --- |")
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        alphatab = fetch_alphatab(Path(folder))
        for score in arguments.score or sorted(SCORES.glob("*.m*xl")):
            alignment = play(score.absolute(), alphatab)
            valid = "not asked"
            if schema is not None:
                valid = (
                    "valid" if schema.validate(mei_with_recording(alignment)) else str(schema.error_log[0])
                )
            print(f"| {score.name} | {read_points(alignment, alphatab)} | {valid} |", flush=True)


if __name__ == "__main__":
    main()
