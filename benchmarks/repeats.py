"""Recordings with repeats, aligned with page images alone: how many measures are right each time.

    python benchmarks/repeats.py --keep FOLDER [--human FOLDER] [--corpus ../shared/data] [--split valid]

Human piano performances (n-ASAP) and the songs of a split that have repeats; each song is played twice, with all
repeats and with none. The pages are images, on which bar lines, repeat signs and endings are read. A measure is
right if, in the middle of the time in which it is played, the music is shown in it. Three ways to decode are
compared: the pages from beginning to end, the repeats as they are read (what happens without options), and the
same with cuts expected. FOLDER keeps embeddings for the next time.
"""

from __future__ import annotations

import argparse
import csv
import warnings
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import fusili_mir as fm
from fusili_benchmarks.played_measures import PlayedPiece, human_piece, kept, right_measures, song_pieces
from fusili_mir.alignment.encoded_alignment import align_encoded
from fusili_mir.alignment.fitted_decoding import decoding_options
from fusili_mir.model.encoder import Encoder

WAYS = {"as written": {"unfold": "none"}, "repeats": {}, "jumps": {"jumps": True}}


def main() -> None:
    arguments = parse_arguments(__doc__)
    warnings.simplefilter("ignore")
    encoder = Encoder(fm.default_bundle(), n_threads=1)
    scale, options = encoder.bundle.manifest.scale, decoding_options(encoder.bundle)
    right: dict[tuple[str, bool], dict[str, list[np.ndarray]]] = defaultdict(lambda: defaultdict(list))
    print("| piece | played by | measures | " + " | ".join(WAYS) + " | order that is found |")
    print("|" + " --- |" * (4 + len(WAYS)))
    for piece in played_pieces(arguments, encoder):
        shares, found = [], ""
        for way, wanted in WAYS.items():
            alignment = align_encoded(piece.scan, piece.score, piece.audio, scale, options=options, **wanted)
            is_right = right_measures(piece, alignment)
            right[piece.how, piece.has_repeats][way].append(is_right)
            shares.append(f"{100 * is_right.mean():.1f}")
            found = str(alignment.stretches) if way == "repeats" else found
        print(
            f"| {piece.name} | {piece.how} | {len(piece.measures)} | {' | '.join(shares)} | {found} |",
            flush=True,
        )
    print()
    for (how, has_repeats), by_way in sorted(right.items()):
        total = {way: np.concatenate(parts) for way, parts in by_way.items()}
        shares = [f"{way} {100 * every.mean():.2f} %" for way, every in total.items()]
        with_or_without = "with" if has_repeats else "without"
        n_measures = len(next(iter(total.values())))
        print(f"{how}, {with_or_without} repeats, {n_measures} measures: " + ", ".join(shares))


def parse_arguments(description: str | None) -> argparse.Namespace:
    """Read which recordings are wanted."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--human", type=Path, default=Path("../shared/data/human"))
    parser.add_argument("--corpus", type=Path, default=Path("../shared/data"))
    parser.add_argument("--split", default="valid")
    parser.add_argument("--soundfont", type=Path, default=Path("/usr/share/sounds/sf2/TimGM6mb.sf2"))
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--only", nargs="+", default=[], help="names of pieces, or parts of them")
    parser.add_argument("--da-capo", type=int, default=0, metavar="N", help="for fit_repeats.py: N songs")
    return parser.parse_args()


def played_pieces(arguments: argparse.Namespace, encoder: Encoder) -> Iterator[PlayedPiece]:
    """Yield human performances, then songs."""
    wanted = arguments.only
    for match in sorted(arguments.human.glob("*.match")):
        if not wanted or any(part in match.name for part in wanted):
            stem = match.with_suffix("")
            yield from kept(
                arguments.keep,
                stem.name,
                lambda own, stem=stem: human_piece(stem, encoder, arguments.soundfont, own),
            )
    for file in songs_with_repeats(arguments.corpus, arguments.split):
        if not wanted or any(part in file.name for part in wanted):
            yield from kept(
                arguments.keep,
                file.stem,
                lambda own, file=file: song_pieces(file, encoder, arguments.soundfont, own),
            )


def songs_with_repeats(corpus: Path, split: str) -> Iterator[Path]:
    with (corpus / "manifest.csv").open() as manifest:
        rows = [row for row in csv.DictReader(manifest) if row["split"] == split and "lieder" in row["file"]]
    for row in rows:
        with zipfile.ZipFile(corpus / row["file"]) as archive:
            names = [name for name in archive.namelist() if name.endswith(".xml") and "META" not in name]
            if any(b'direction="backward"' in archive.read(name) for name in names):
                yield corpus / row["file"]


if __name__ == "__main__":
    main()
