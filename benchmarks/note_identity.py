"""Do the notes keep their identity? Boxes, ink, ids and onsets of engraved notes, for each kind of score.

    python benchmarks/note_identity.py [--corpus ../shared/data] [--songs 160] [--quartets 6] [--kern 51]
        [--midi FOLDER]

A note counts as printed unless the file says otherwise (print-object="no", notehead "none"). Ids are compared
with those that `partitura.load_score` gives to the notes of the same file, onsets and pitches with partitura's
for the same id; for kern, which partitura misreads where spines split, onsets with those that the definition of
Humdrum gives. MIDI of Mutopia is what `lilypond -dno-print-pages` makes of its sources.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import random
import re
import time
import warnings
from collections.abc import Iterator
from dataclasses import astuple, dataclass, field
from pathlib import Path

import numpy as np
import partitura as pt

from fusili_benchmarks.kern_clock import kern_onsets
from fusili_mir.arrays import GreyImage
from fusili_mir.pages.engraving import EngravingOptions
from fusili_mir.pages.engraving_check import hidden_notes
from fusili_mir.pages.pages import render_pages
from fusili_mir.scores.humdrum import humdrum_to_mei
from fusili_mir.scores.mei_score import read_mei_score
from fusili_mir.scores.part_times import quarters_of
from fusili_mir.scores.score_file import parse_score

INK = 128
FONTS = ("Leipzig", "Bravura", "Leland", "Gootville", "Petaluma")
SAME_QUARTER = 1e-3
COLUMNS = (
    "files",
    "failed",
    "pages",
    "notes",
    "with a box",
    "boxes with ink",
    "partitura's ids",
    "same onset",
)


@dataclass
class Counts:
    """What was counted over files of one kind: notes, and how many of them pass each check."""

    files: int = 0
    failed: int = 0
    pages: int = 0
    printed: int = 0
    boxed: int = 0
    inked: int = 0
    named: int = 0
    joined: int = 0
    timed: int = 0
    on_time: int = 0
    seconds: float = field(default=0.0, compare=False)

    def __iadd__(self, other: Counts) -> Counts:
        return Counts(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def row(self, name: str) -> str:
        """Return a row of the table."""
        shares = [
            f"{part / max(1, whole):.4%}"
            for part, whole in (
                (self.boxed, self.printed),
                (self.inked, self.boxed),
                (self.joined, self.named),
                (self.on_time, self.timed),
            )
        ]
        cells = [name, self.files, self.failed, self.pages, self.printed, *shares]
        return "| " + " | ".join(str(cell) for cell in cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=Path("../shared/data"))
    parser.add_argument("--songs", type=int, default=160)
    parser.add_argument("--quartets", type=int, default=6)
    parser.add_argument("--kern", type=int, default=51)
    parser.add_argument("--midi", type=Path, help="a folder of MIDI files")
    parser.add_argument("--rasteriser", default="auto", choices=["auto", "resvg", "skia"])
    arguments = parser.parse_args()
    kinds = {
        "songs": corpus_files(arguments.corpus, "openscore_lieder", arguments.songs),
        "quartets": corpus_files(arguments.corpus, "openscore_quartets", arguments.quartets),
        "kern": corpus_files(arguments.corpus, "chopin_first_editions", arguments.kern),
        "MIDI": [] if arguments.midi is None else sorted(arguments.midi.glob("*.mid*")),
    }
    table = ["| | " + " | ".join(COLUMNS) + " |", "|" + " --- |" * (len(COLUMNS) + 1)]
    warnings.simplefilter("ignore")
    for name, files in kinds.items():
        total = Counts()
        for number, file in enumerate(files):
            start = time.process_time()
            try:
                counts = count(file, FONTS[number % len(FONTS)], arguments.rasteriser)
            except Exception as error:  # noqa: BLE001 - a benchmark reports what fails and goes on
                counts = Counts(files=1, failed=1)
                print("failed:", file.name, error, flush=True)
            counts.seconds = time.process_time() - start
            total += counts
        if files:
            table.append(total.row(name))
            print(f"{name}: {total.pages / total.seconds:.2f} pages per second of CPU", flush=True)
    print("\n".join(["", *table]))


def corpus_files(corpus: Path, folder: str, n_files: int) -> list[Path]:
    with (corpus / "manifest.csv").open() as manifest:
        files = [corpus / row["file"] for row in csv.DictReader(manifest) if f"/{folder}/" in row["file"]]
    random.Random(0).shuffle(files)
    return files[:n_files]


def count(file: Path, font: str, rasteriser: str) -> Counts:
    """Engrave one file and count; what does not pass is printed."""
    pages = render_pages(file, EngravingOptions(font=font), rasteriser=rasteriser)
    assert pages.score is not None
    assert pages.score_file is not None
    has_ties = not file.suffix.startswith(
        ".mid"
    )  # partitura ties notes at barlines, engraving may tie others
    notes = {
        str(note.id) for part in pages.score.parts for note in (part.notes if has_ties else part.notes_tied)
    }
    printed = notes - hidden_notes(pages.score_file)
    heads = pages.notes[np.isin(pages.notes["notated_id"], list(printed))]
    boxed = set(heads["notated_id"].tolist())
    n_inked = 0
    for page, image in enumerate(pages.images):
        own = heads[heads["page"] == page]
        n_inked += sum(
            _holds_ink(image, own[own["notated_id"] == head][0]) for head in set(own["notated_id"])
        )
    counts = Counts(1, 0, len(pages.images), len(printed), len(boxed), n_inked)
    say(file, "without a box", printed - boxed, len(printed))
    reference = load_with_partitura(file)
    if reference is not None:
        theirs = dict(note_times(reference))
        ours = dict(note_times(pages.score))
        counts.named = len(theirs)
        counts.joined = len(theirs.keys() & ours.keys())
        say(file, "ids of partitura's are not ours", theirs.keys() - ours.keys(), len(theirs))
        if file.suffix != ".krn":
            late = {each for each in theirs.keys() & ours.keys() if not same(theirs[each], ours[each])}
            counts.timed, counts.on_time = counts.joined, counts.joined - len(late)
            say(file, "at another time or pitch", late, counts.joined)
    if file.suffix == ".krn":
        counts.timed, counts.on_time = count_kern_onsets(file)
    return counts


def load_with_partitura(file: Path) -> pt.score.Score | None:
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return pt.load_score(str(file), quiet=True)
    except Exception as error:  # noqa: BLE001 - partitura raises whatever its parsing trips over
        print(f"{file.name}: partitura cannot read it ({type(error).__name__}: {error})", flush=True)
        return None


def note_times(score: pt.score.Score) -> Iterator[tuple[str, tuple[float, int]]]:
    """Yield id, onset in quarters and pitch of all notes."""
    for part in score.parts:
        onsets = quarters_of(part)([note.start.t for note in part.notes]) if part.notes else []
        for note, onset in zip(part.notes, onsets, strict=True):
            yield str(note.id), (float(onset), note.midi_pitch)


def same(one: tuple[float, int], other: tuple[float, int]) -> bool:
    return abs(one[0] - other[0]) < SAME_QUARTER and one[1] == other[1]


def count_kern_onsets(file: Path) -> tuple[int, int]:
    """Return how many notes a kern file has, and how many are read at the onset that their token has."""
    text = file.read_text()
    tree = parse_score(humdrum_to_mei(str(file), text).encode(), str(file))
    onsets = kern_onsets(text)
    names = {own: given or own for own, given in tree.given_ids.items()}
    late = set()
    n_notes = 0
    for own, (onset, _) in note_times(read_mei_score(tree.root)):
        place = re.match(r"note-L(\d+)F(\d+)", names.get(own, own))
        assert place is not None
        n_notes += 1
        if abs(float(onsets[int(place[1]), int(place[2])]) - onset) >= SAME_QUARTER:
            late.add(names.get(own, own))
    say(file, "at another time", late, n_notes)
    return n_notes, n_notes - len(late)


def say(file: Path, what: str, ids: set[str], n_all: int) -> None:
    if ids:
        print(f"{file.name}: {len(ids)} of {n_all} {what}: {sorted(ids)[:4]}", flush=True)


def _holds_ink(image: GreyImage, head: np.void) -> bool:
    y0, y1 = int(np.floor(head["y0"])), int(np.ceil(head["y1"]))
    x0, x1 = int(np.floor(head["x0"])), int(np.ceil(head["x1"]))
    return bool((image[y0:y1, x0:x1] < INK).any())


if __name__ == "__main__":
    main()
