"""Recordings in another key, at another tuning or speed: is their pitch found, and are they aligned as well?

    python benchmarks/pitch.py [--parts found shifts unshifted wrong drift] [--pieces 12] [--results FILE]

found: the search alone, many shifts; shifts: whole alignments; unshifted: recordings at the pitch of their score,
and excerpts of them, among them odd pieces; wrong: recordings of other pieces; drift: tapes that run unevenly.

Songs of the split valid, engraved and played with expressive timing by TimGM6mb, which no model was trained on,
with instruments of it that are in tune to within 4 cents. A shifted recording is the same recording, played back
faster or slower: in one that is played slower, errors in seconds grow as well, so shares are also given with
errors at the unshifted speed. The cost of the search is its share of the whole, which is encoding the pages, the
search, encoding the recording and aligning; engraving, or finding the systems on images, comes on top.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from fusili_benchmarks.held_out_pieces import HeldOutPiece, Playing, choose_layouts, choose_pieces, open_piece
from fusili_benchmarks.held_out_shifts import BASE
from fusili_benchmarks.odd_pieces import ODD_KINDS, write_odd_piece
from fusili_benchmarks.pitch_results import CloseHeads, KeptResults, PitchResult
from fusili_benchmarks.pitch_runs import Played, align_played, look_for_pitch, percussive, played
from fusili_mir.alignment.results import RELIABLE
from fusili_mir.errors import FusiliWarning
from fusili_mir.model.bundle import default_bundle, load_bundle
from fusili_mir.model.encoded import EncodedScore
from fusili_mir.model.encoder import Encoder
from fusili_training.evaluation.whole_pieces import Knowledge, WholePiece
from fusili_training.notation.layouts import Layout
from fusili_training.rendering.corpus import CorpusPiece, list_corpus, select_pieces
from fusili_training.rendering.render_recipe import load_render_recipe

RECIPE = Path(__file__).parents[1] / "training" / "recipes" / "render" / "strips-held-out.toml"
SOUNDFONT = "TimGM6mb"
IN_TUNE = (40, 53, 71)  # violin, voice, clarinet
SHIFTS: dict[str, float] = {
    "none": 0.0,
    **{f"{cents:+d} cents": cents for cents in (-700, -612, -500, -388, -300, -212, -100, -50, -20)},
    **{f"{cents:+d} cents": cents for cents in (20, 50, 100, 163, 200, 300, 412, 500, 588, 700)},
    **{f"A = {hz} Hz": 1200 * float(np.log2(hz / 440)) for hz in (392, 415, 430, 466)},
}
DRIFTS = {
    "-20 to +20 cents": (-20.0, 20.0),
    "+30 to -30 cents": (30.0, -30.0),
    "-240 to -180 cents": (-240.0, -180.0),
}
LEAST_DRIFT_SEC = 90.0
FOUND_CENTS = 5.0
RETUNED_CENTS = 10.0  # from which a recording is read at another pitch
EXCERPTS_SEC = (90.0, 60.0, 45.0, 30.0, 24.0, 20.0, 15.0, 10.0, 6.0, 3.0)
KNOWLEDGE: tuple[Knowledge, ...] = ("images", "score")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", type=Path, help="folder of a bundle; by default the installed one")
    parser.add_argument("--corpus", type=Path, default=Path("../shared/data/manifest.csv"))
    parser.add_argument("--pieces", type=int, default=12)
    parser.add_argument("--first", type=int, default=0, help="number of pieces to leave out before those")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--knows", nargs="+", choices=KNOWLEDGE, default=KNOWLEDGE)
    parser.add_argument("--shifts", nargs="+", choices=list(SHIFTS), default=list(SHIFTS))
    parser.add_argument(
        "--results", type=Path, help="file that keeps the results of each run, to go on later"
    )
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", FusiliWarning)
    bundle = load_bundle(arguments.model) if arguments.model else default_bundle()
    measure = Measuring(
        Encoder(bundle, n_threads=1),
        arguments.knows,
        arguments.shifts,
        songs(arguments),
        KeptResults(arguments.results),
    )
    for part in arguments.parts:
        PARTS[part](measure)


def songs(arguments: argparse.Namespace) -> list[tuple[CorpusPiece, Layout]]:
    pieces = select_pieces(list_corpus(arguments.corpus), ["CC0-1.0"], ["valid"], "*/openscore_lieder/*")
    chosen = choose_pieces(pieces, arguments.first + arguments.pieces)
    return list(zip(chosen, choose_layouts(chosen), strict=True))[arguments.first :]


@dataclass
class Measuring:
    """What all parts need."""

    encoder: Encoder
    knows: Sequence[Knowledge]
    shifts: Sequence[str]
    pieces: list[tuple[CorpusPiece, Layout]]
    results: KeptResults

    @contextmanager
    def open(self, piece: CorpusPiece, layout: Layout) -> Iterator[Opened]:
        recipe = load_render_recipe(RECIPE)
        audio = replace(recipe.audio, soundfonts=(SOUNDFONT,), other_programs=IN_TUNE)
        with open_piece(piece, layout, Playing(recipe.expression, audio, audio, recipe.seed)) as held_out:
            yield Opened(held_out, self.encoder)

    def knows_in_turn(self, number: int) -> Knowledge:
        return self.knows[number % len(self.knows)]


@dataclass
class Opened:
    """A piece, whose pages are encoded when they are needed."""

    held_out: HeldOutPiece
    encoder: Encoder

    def knowing(self, knowledge: Knowledge) -> Known:
        return Known(self.held_out, knowledge, self.encoder)


@dataclass
class Known:
    """A piece as images or with its score."""

    held_out: HeldOutPiece
    knowledge: Knowledge
    encoder: Encoder

    @property
    def name(self) -> str:
        return f"{self.held_out.name} {self.knowledge}"

    @cached_property
    def whole(self) -> WholePiece:
        return self.held_out.under(BASE, self.knowledge)

    @cached_property
    def _encoded(self) -> tuple[EncodedScore, float]:
        whole, begin = self.whole, time.process_time()
        return self.encoder.encode_pages(whole.pages), time.process_time() - begin

    @property
    def score(self) -> EncodedScore:
        return self._encoded[0]

    @property
    def score_cpu_sec(self) -> float:
        return self._encoded[1]

    @cached_property
    def level(self) -> Played:
        return played(self.whole, (0.0, 0.0))

    @cached_property
    def unshifted(self) -> CloseHeads:
        run = align_played(self.whole, self.score, self.level, self.encoder, semitones=0.0)
        return CloseHeads.of(run.errors_sec)

    def look_at(self, recording: Played, cents: float = 0.0) -> PitchResult:
        return PitchResult.of(cents, look_for_pitch(self.whole, self.score, recording, self.encoder))

    def align(self, cents: tuple[float, float]) -> PitchResult:
        recording = played(self.whole, cents)
        run = align_played(self.whole, self.score, recording, self.encoder)
        slower = len(recording.samples) / len(self.level.samples)
        seconds = np.linspace(0.0, len(recording.samples) / recording.sample_rate_hz, 50)
        off_cents = float(np.abs(run.pitch.curve.at(seconds) - recording.cents.at(seconds)).max())
        return PitchResult.of(
            float(np.mean(cents)), run.pitch, run, self.unshifted, slower, self.score_cpu_sec, off_cents
        )


def is_found(result: PitchResult) -> bool:
    return result.source == "found" and result.off_cents <= FOUND_CENTS


def print_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(f"\n| {' | '.join(names)} |\n|{' --- |' * len(names)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print(flush=True)


def over_pieces(
    measure: Measuring, part: str, cases: Sequence[str], run: Callable[[Known, str], PitchResult | None]
) -> dict[tuple[Knowledge, str], list[PitchResult]]:
    """Run cases for all pieces, from images and with the score; those for which `run` returns None are left out.

    The results of all cases are those of the case "all", too.
    """
    rows: dict[tuple[Knowledge, str], list[PitchResult]] = {}
    for piece, layout in measure.pieces:
        with measure.open(piece, layout) as opened:
            for knowledge in measure.knows:
                known = opened.knowing(knowledge)
                for case in cases:
                    name = f"{part} {known.name} {case}"
                    if name not in measure.results:
                        result = run(known, case)
                        if result is None:
                            continue
                        measure.results.keep(name, lambda result=result: result)  # type: ignore[misc]
                    result = measure.results[name]
                    for row in (case, "all"):
                        rows.setdefault((knowledge, row), []).append(result)
                    if not is_found(result):
                        print(f"  {name}: {result.source}, {result.found_cents:.1f}", flush=True)
    return rows


def print_found(measure: Measuring) -> None:
    """Only look for the pitch, of whole pieces at many shifts."""

    def look(known: Known, shift: str) -> PitchResult:
        cents = SHIFTS[shift]
        return known.look_at(played(known.whole, (cents, cents)), cents)

    rows = over_pieces(measure, "found", measure.shifts, look)
    names, table = ["shift"], [[shift] for shift in (*measure.shifts, "all")]
    for knowledge in measure.knows:
        names += [f"{knowledge}: found within 5 cents", "median off, cents"]
        for row in table:
            results = rows[knowledge, row[0]]
            median = float(np.median([result.off_cents for result in results]))
            row += [f"{sum(map(is_found, results))} of {len(results)}", f"{median:.1f}"]
    print_table(names, table)


ALIGNED = ("median ms", "within 250 ms, %", "against unshifted, points", "the same at the unshifted speed")


def aligned_cells(results: Sequence[PitchResult]) -> list[str]:
    heads = [result.heads for result in results if result.heads is not None]
    unshifted = [result.unshifted for result in results if result.unshifted is not None]
    n_heads = sum(each.n_heads for each in heads)
    now, scaled, before = (
        100 * sum(counts) / n_heads
        for counts in (
            [each.within_250 for each in heads],
            [each.within_250_unshifted for each in heads],
            [each.within_250 for each in unshifted],
        )
    )
    share = sum(r.pitch_cpu_sec for r in results) / sum(r.pitch_cpu_sec + r.rest_cpu_sec for r in results)
    return [
        f"{sum(map(is_found, results))} of {len(results)}",
        f"{np.median([each.median_ms for each in heads]):.1f}",
        f"{now:.2f}",
        f"{now - before:+.2f}",
        f"{scaled - before:+.2f}",
        f"{100 * share:.0f} %",
    ]


def print_shifts(measure: Measuring) -> None:
    """Align whole pieces at many shifts."""
    rows = over_pieces(
        measure, "shifts", measure.shifts, lambda known, shift: known.align((SHIFTS[shift], SHIFTS[shift]))
    )
    table = [
        [knowledge, shift, *aligned_cells(rows[knowledge, shift])]
        for knowledge in measure.knows
        for shift in (*measure.shifts, "all")
    ]
    print_table(["knows", "shift", "found within 5 cents", *ALIGNED, "cost of the search"], table)


def print_drift(measure: Measuring) -> None:
    """Align recordings whose pitch drifts."""

    def align(known: Known, drift: str) -> PitchResult | None:
        if len(known.level.samples) < LEAST_DRIFT_SEC * known.level.sample_rate_hz:
            return None
        return known.align(DRIFTS[drift])

    rows = over_pieces(measure, "drift", list(DRIFTS), align)
    table = [[*row, *aligned_cells(results)] for row, results in rows.items()]
    names = ["knows", "drift", "within 5 cents all the time", *ALIGNED, "cost of the search"]
    print_table(names, table)


def print_unshifted(measure: Measuring) -> None:
    """Count false shifts of recordings and excerpts that sound at the pitch of their score."""
    counts: dict[tuple[str, str], list[int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        odd = [(kind, write_odd_piece(kind, seed, Path(folder))) for kind in ODD_KINDS for seed in range(3)]
        pieces = [
            ("voice alone" if layout == "voice" else "songs", piece, layout)
            for piece, layout in measure.pieces
        ]
        pieces += [("songs, struck as on drums", piece, layout) for piece, layout in measure.pieces[:4]]
        pieces += [(kind, piece, "whole") for kind, piece in odd]
        for number, (kind, piece, layout) in enumerate(pieces):
            with measure.open(piece, layout) as opened:
                known = opened.knowing(measure.knows_in_turn(number))
                for length, result in look_at_excerpts(measure, known, kind, number):
                    count = counts.setdefault((kind, length), [0, 0, 0])
                    count[0] += 1
                    count[1] += result.source == "found"
                    count[2] += abs(result.found_cents) >= RETUNED_CENTS
    counts["all", ""] = np.sum(list(counts.values()), axis=0).tolist()
    print_table(
        ["recording", "length", "runs", "pitch found", "false shifts"],
        [[*row, *map(str, count)] for row, count in sorted(counts.items())],
    )


def look_at_excerpts(
    measure: Measuring, known: Known, kind: str, seed: int
) -> Iterator[tuple[str, PitchResult]]:
    """Look for the pitch of a whole recording, and of shorter and shorter excerpts."""
    rng = np.random.default_rng(seed)
    level = known.level
    length_sec = len(level.samples) / level.sample_rate_hz
    for excerpt_sec in (length_sec, *(sec for sec in EXCERPTS_SEC if sec < length_sec)):
        start_sec = rng.uniform(0.0, length_sec - excerpt_sec)
        part = played(known.whole, (0.0, 0.0), (start_sec, start_sec + excerpt_sec))
        part = percussive(part) if "drums" in kind else part
        if not np.any(np.abs(part.samples) > 0.01):
            continue  # a rest
        name = f"unshifted {kind} {known.name} {excerpt_sec:.0f} s from {start_sec:.0f}"
        result = measure.results.keep(name, lambda part=part: known.look_at(part))  # type: ignore[misc]
        if abs(result.found_cents) >= RETUNED_CENTS:
            print(f"  {name}: {result.found_cents:.1f}", flush=True)
        whole = excerpt_sec == length_sec
        yield "whole" if whole else "20 s or more" if excerpt_sec >= 20 else "shorter", result


def print_wrong(measure: Measuring) -> None:
    """Count the recordings of other pieces that are taken to be of a score, without and with the search."""
    counts = {length: [0, 0, 0, 0] for length in ("whole", "60 s", "30 s")}
    for number, (piece, layout) in enumerate(measure.pieces):
        with measure.open(piece, layout) as opened:
            known = opened.knowing(measure.knows_in_turn(number))
            for step in (1, 3, 5):
                other_piece, other_layout = measure.pieces[(number + step) % len(measure.pieces)]
                with measure.open(other_piece, other_layout) as other:
                    align_other(measure, known, other.knowing("score"), counts)
    names = ["runs", "reliable, pitch not looked for", "reliable, pitch looked for", "shifted"]
    print_table(
        ["recording of another piece", *names],
        [[length, *map(str, count)] for length, count in counts.items()],
    )


def align_other(measure: Measuring, known: Known, other: Known, counts: dict[str, list[int]]) -> None:
    length_sec = len(other.level.samples) / other.level.sample_rate_hz
    for length, count in counts.items():
        limit_sec = length_sec if length == "whole" else float(length.split()[0])
        if limit_sec > length_sec:
            continue
        part = played(other.whole, (0.0, 0.0), (0.0, limit_sec))
        part = replace(part, onset_sec=np.zeros(len(known.whole.heads)))
        results = []
        for semitones in (0.0, None):

            def align(part: Played = part, semitones: float | None = semitones) -> PitchResult:
                run = align_played(known.whole, known.score, part, known.encoder, semitones)
                return PitchResult.of(0.0, run.pitch, run)

            name = f"wrong {known.name} {other.name} {length} {semitones}"
            results.append(measure.results.keep(name, align))
        off, auto = results
        count[0] += 1
        count[1] += off.reliability >= RELIABLE
        count[2] += auto.reliability >= RELIABLE
        count[3] += abs(auto.found_cents) >= RETUNED_CENTS


PARTS: dict[str, Callable[[Measuring], None]] = {
    "found": print_found,
    "shifts": print_shifts,
    "unshifted": print_unshifted,
    "wrong": print_wrong,
    "drift": print_drift,
}


if __name__ == "__main__":
    main()
