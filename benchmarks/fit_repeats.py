"""What it should cost to leave the order that the signs of page images give: orders found at several prices.

    python benchmarks/fit_repeats.py --keep FOLDER [--human FOLDER] [--corpus ../shared/data] [--split valid]

The recordings are those of `benchmarks/repeats.py`, whose FOLDER keeps their embeddings. For each price, the
order of measures that the search finds is compared with the one that is played: the share of recordings in which
both are the same, and of measures that are in order, with repeats and without. Prices are in nats:
`AS_WRITTEN_COST`, `CUT_COST` and `JUMP_COST` of `fusili_mir.alignment.unfolding_choice`.

With `--da-capo 8`, eight songs of the split that have no repeats are played and then begun again, as after a da
capo, and the orders are shown that are found at several prices of going back after the last measure
(`RETURN_COST`); with `--only`, also those of the recordings that it names.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import chain
from pathlib import Path

import numpy as np

import fusili_mir as fm
from fusili_benchmarks.played_measures import PlayedPiece, da_capo_pieces, kept
from fusili_mir.alignment.column_order import measure_columns
from fusili_mir.alignment.fitted_decoding import decoding_options
from fusili_mir.alignment.unfolding_choice import (
    AS_WRITTEN_COST,
    CUT_COST,
    JUMP_COST,
    RETURN_COST,
    section_graph,
)
from fusili_mir.decoding.course import reading_course
from fusili_mir.decoding.rough_search import DecodingOptions
from fusili_mir.decoding.section_search import search_sections
from fusili_mir.decoding.similarity import CourseSimilarity
from fusili_mir.model.encoder import Encoder
from fusili_mir.scores.playing_graph import playing_graph
from fusili_mir.scores.unfolding import stretches_of
from repeats import parse_arguments, played_pieces

CUTS = (300.0, 500.0, CUT_COST, 2000.0, JUMP_COST / 2, JUMP_COST, 2 * JUMP_COST)
RETURNS = (CUT_COST, RETURN_COST, 500.0, 300.0, 150.0)
AS_WRITTEN = (AS_WRITTEN_COST / 4, AS_WRITTEN_COST, 4 * AS_WRITTEN_COST)


def main() -> None:
    arguments = parse_arguments(__doc__)
    encoder = Encoder(fm.default_bundle(), n_threads=1)
    scale, options = encoder.bundle.manifest.scale, decoding_options(encoder.bundle)
    if arguments.da_capo:
        show_returns(arguments, encoder)
        return
    prices = [(cut, AS_WRITTEN_COST) for cut in sorted(set(CUTS))]
    prices += [(CUT_COST, price) for price in AS_WRITTEN if price != AS_WRITTEN_COST]
    shares: dict[tuple[float, float, bool], list[float]] = defaultdict(list)
    n_measures: dict[bool, list[int]] = defaultdict(list)
    for piece in played_pieces(arguments, encoder):
        true = true_order(piece)
        n_measures[piece.has_repeats].append(len(true))
        for cut, as_written in prices:
            found = found_order(piece, scale, options, cut, as_written)
            blocks = SequenceMatcher(None, true, found, autojunk=False).get_matching_blocks()
            same = sum(block.size for block in blocks) / max(len(true), len(found))
            shares[cut, as_written, piece.has_repeats].append(same)
            if same < 1 and cut == CUT_COST and as_written == AS_WRITTEN_COST:
                print(f"{piece.name}, {piece.how}: {100 * same:.1f} % in order", flush=True)
    print("| cut | as written | repeats | recordings | order right | measures in order |")
    print("| --- | --- | --- | --- | --- | --- |")
    for (cut, as_written, has_repeats), same in sorted(shares.items()):
        right = sum(share == 1 for share in same)
        mean = np.average(same, weights=n_measures[has_repeats])
        yes_or_no = "yes" if has_repeats else "no"
        print(f"| {cut:g} | {as_written:g} | {yes_or_no} | {len(same)} | {right} | {100 * mean:.2f} % |")


def show_returns(arguments: argparse.Namespace, encoder: Encoder) -> None:
    """Print the orders that are found at several prices of going back after the last measure."""
    scale, options = encoder.bundle.manifest.scale, decoding_options(encoder.bundle)
    pieces = songs_with_da_capo(arguments, encoder)
    others = played_pieces(arguments, encoder) if arguments.only else ()
    print("| piece | played | order | " + " | ".join(f"{price:g}" for price in RETURNS) + " |")
    print("|" + " --- |" * (3 + len(RETURNS)))
    for piece in chain(pieces, others):
        orders = [stretches_of(true_order(piece))]
        orders += [
            stretches_of(found_order(piece, scale, options, CUT_COST, AS_WRITTEN_COST, price))
            for price in RETURNS
        ]
        print(f"| {piece.name} | {piece.how} | " + " | ".join(map(str, orders)) + " |", flush=True)


def songs_with_da_capo(arguments: argparse.Namespace, encoder: Encoder) -> Iterator[PlayedPiece]:
    """Yield songs of 21 to 59 measures, every other one begun again in its first third."""
    with (arguments.corpus / "manifest.csv").open() as manifest:
        rows = [
            row
            for row in csv.DictReader(manifest)
            if row["split"] == arguments.split
            and "lieder" in row["file"]
            and 20 < int(row["measures"] or 0) < 60
        ]
    np.random.default_rng(5).shuffle(rows)  # type: ignore[arg-type]
    n_songs = 0
    for row in rows:
        if n_songs == arguments.da_capo:
            return
        file = arguments.corpus / row["file"]

        def made(own: Path, file: Path = file, from_start: bool = n_songs % 2 == 0) -> list[PlayedPiece]:
            return da_capo_pieces(file, encoder, arguments.soundfont, own, from_start)

        pieces = list(kept(arguments.keep, f"{file.stem} da capo", made))
        n_songs += bool(pieces)
        yield from pieces


def true_order(piece: PlayedPiece) -> list[int]:
    """Return the measures that are read on the pages, in the order in which they are truly played."""
    read, order = piece.scan.measures, []
    for row in piece.measures:
        x, y = (row["x0"] + row["x1"]) / 2, (row["y0"] + row["y1"]) / 2
        inside = (read["x0"] <= x) & (x < read["x1"]) & (read["y0"] <= y) & (y <= read["y1"])
        place = np.flatnonzero(inside & (read["page"] == row["page"]))
        if len(place):
            order.append(int(place[0]))
    return order


def found_order(
    piece: PlayedPiece,
    scale: float,
    options: DecodingOptions,
    cut: float,
    as_written: float,
    after_last: float | None = None,
) -> list[int]:
    assert piece.scan.repeats is not None
    score, audio = piece.score, piece.audio
    course = reading_course(np.arange(len(score.axis)))
    heard = audio.frames[audio.sound.sounding]
    similarity = CourseSimilarity(score.embeddings, score.mask, heard, course)
    starts = measure_columns(piece.scan, score.axis)
    costs = np.full(len(starts) - 1, cut, np.float32)
    if after_last is not None:
        costs[-1] = after_last
    sections = section_graph(playing_graph(piece.scan.repeats), starts, costs, as_written)
    found = search_sections(similarity, sections, audio.grid.frame_sec, scale, options)
    return [measure for first, stop in found.measures for measure in range(first, stop)]


if __name__ == "__main__":
    main()
