"""What it should cost to leave the order that the signs of page images give: orders found at several prices.

    python benchmarks/fit_repeats.py --keep FOLDER [--human FOLDER] [--corpus ../shared/data] [--split valid]

The recordings are those of `benchmarks/repeats.py`, whose FOLDER keeps their embeddings. For each price, the
order of measures that the search finds is compared with the one that is played: the share of recordings in which
both are the same, and of measures that are in order, with repeats and without. Prices are in nats:
`AS_WRITTEN_COST`, `CUT_COST` and `JUMP_COST` of `fusili_mir.alignment.unfolding_choice`.
"""

from __future__ import annotations

from collections import defaultdict
from difflib import SequenceMatcher

import numpy as np

import fusili_mir as fm
from fusili_benchmarks.played_measures import PlayedPiece
from fusili_mir.alignment.aligning import decoding_options
from fusili_mir.alignment.column_order import measure_columns
from fusili_mir.alignment.unfolding_choice import AS_WRITTEN_COST, CUT_COST, JUMP_COST, section_graph
from fusili_mir.decoding.course import reading_course
from fusili_mir.decoding.rough_search import DecodingOptions
from fusili_mir.decoding.section_search import search_sections
from fusili_mir.decoding.similarity import CourseSimilarity
from fusili_mir.model.encoder import Encoder
from fusili_mir.scores.playing_graph import playing_graph
from repeats import parse_arguments, played_pieces

CUTS = (300.0, 500.0, CUT_COST, 2000.0, JUMP_COST / 2, JUMP_COST, 2 * JUMP_COST)
AS_WRITTEN = (AS_WRITTEN_COST / 4, AS_WRITTEN_COST, 4 * AS_WRITTEN_COST)


def main() -> None:
    arguments = parse_arguments(__doc__)
    encoder = Encoder(fm.default_bundle(), n_threads=1)
    scale, options = encoder.bundle.manifest.scale, decoding_options(encoder.bundle)
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
    piece: PlayedPiece, scale: float, options: DecodingOptions, cut: float, as_written: float
) -> list[int]:
    assert piece.scan.repeats is not None
    score, audio = piece.score, piece.audio
    course = reading_course(np.arange(len(score.axis)))
    heard = audio.frames[audio.sound.sounding]
    similarity = CourseSimilarity(score.embeddings, score.mask, heard, course)
    starts = measure_columns(piece.scan, score.axis)
    sections = section_graph(playing_graph(piece.scan.repeats), starts, cut, as_written)
    found = search_sections(similarity, sections, audio.grid.frame_sec, scale, options)
    return [measure for first, stop in found.measures for measure in range(first, stop)]


if __name__ == "__main__":
    main()
