"""Human piano performances: how far notes are placed from the truth, with the score and from page images.

    python benchmarks/human_piano.py ../shared/data/human [--soundfont FILE] [--only NAME ...] [--kept FOLDER]

The folder holds scores (.mxl), performance MIDI and match files of n-ASAP (CC BY-NC-SA: for validation only). The
MIDI is played by fluidsynth with a soundfont that no model was trained on, pedal included. From images, the first
playing of each note counts; `benchmarks/repeats.py` counts all of them, by measures.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import fusili_mir as fm
from fusili_benchmarks.calibration import area_under_curve, calibration_error
from fusili_benchmarks.performances import Performance, encode_human, first_onsets, kept, with_deep_pickles
from fusili_mir.alignment.encoded_alignment import align_encoded
from fusili_mir.alignment.fitted_decoding import decoding_options
from fusili_mir.alignment.results import Alignment
from fusili_mir.arrays import Float64
from fusili_mir.decoding.certainty import NEAR_SEC
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import Pages

TOLERANCES_MS = (25, 50, 100, 250)


@dataclass(frozen=True)
class Measured:
    """Errors in seconds, (n,), infinite for notes that were not found, and the probability of each time."""

    errors_sec: Float64
    probability: Float64
    cpu_sec: float = 0.0

    def row(self) -> str:
        shares = (f"{100 * np.mean(self.errors_sec <= ms / 1000):.1f}" for ms in TOLERANCES_MS)
        return f"{1000 * np.median(self.errors_sec):.1f} | " + " | ".join(shares)


def with_score(alignment: Alignment, true: dict[str, float], cpu_sec: float) -> Measured:
    found = {str(note["id"]): note for note in alignment.notes}
    rows = [found.get(note_id, found.get(note_id.removesuffix("-1"))) for note_id in true]
    errors = [
        np.inf if row is None or not np.isfinite(row["onset_sec"]) else abs(row["onset_sec"] - second)
        for row, second in zip(rows, true.values(), strict=True)
    ]
    probability = [0.0 if row is None else float(row["confidence"]) for row in rows]
    return Measured(np.array(errors), np.array(probability), cpu_sec)


def from_images(alignment: Alignment, pages: Pages, true: dict[str, float], cpu_sec: float) -> Measured:
    boxes, true_sec = first_onsets(pages, true)
    x, y = (boxes["x0"] + boxes["x1"]) / 2, (boxes["y0"] + boxes["y1"]) / 2
    found_sec = alignment.position_maps.position_to_seconds(boxes["page"], x, y)
    probability = np.nan_to_num(alignment.certainty_at(boxes["page"], x, y).confidence)
    errors = np.abs(found_sec - true_sec)
    return Measured(np.where(np.isnan(errors), np.inf, errors), probability, cpu_sec)


def pooled(parts: list[Measured]) -> Measured:
    return Measured(
        np.concatenate([part.errors_sec for part in parts]),
        np.concatenate([part.probability for part in parts]),
        sum(part.cpu_sec for part in parts),
    )


def measure(performance: Performance, encoder: Encoder) -> tuple[Measured, Measured, str]:
    scale, options = encoder.bundle.manifest.scale, decoding_options(encoder.bundle)
    start = time.process_time()
    aligned = align_encoded(performance.pages, performance.score, performance.audio, scale, options=options)
    middle = time.process_time()
    seen = align_encoded(performance.scan, performance.scanned, performance.audio, scale, options=options)
    end = time.process_time()
    assert aligned.played is not None
    return (
        with_score(aligned, performance.true, middle - start),
        from_images(seen, performance.pages, performance.true, end - middle),
        str(aligned.played.unfold),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--soundfont", type=Path, default=Path("/usr/share/sounds/sf2/TimGM6mb.sf2"))
    parser.add_argument("--model", type=Path, help="bundle; by default the one that is installed")
    parser.add_argument("--only", nargs="+", default=[], help="names of pieces, or parts of them")
    parser.add_argument("--kept", type=Path, help="folder that keeps encoded performances for the next time")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    encoder = Encoder(
        fm.load_bundle(arguments.model) if arguments.model else fm.default_bundle(), n_threads=1
    )
    stems = [file.with_suffix("") for file in sorted(arguments.folder.glob("*.match"))]
    stems = [s for s in stems if not arguments.only or any(part in s.name for part in arguments.only)]
    limits = " | ".join(f"{ms} ms" for ms in TOLERANCES_MS)
    print(f"| piece | repeats | score: median ms | {limits} | images: median ms | {limits} |")
    print("|" + " --- |" * (4 + 2 * len(TOLERANCES_MS)))
    scores, images = [], []
    for stem in stems:
        encode = partial(encode_human, stem, encoder, arguments.soundfont)
        score, image, unfold = measure(kept(stem.name, encode, arguments.kept), encoder)
        scores.append(score)
        images.append(image)
        print(f"| {stem.name} | {unfold} | {score.row()} | {image.row()} |", flush=True)
    print(f"| all | | {pooled(scores).row()} | {pooled(images).row()} |\n")
    for name, parts in (("with the score", scores), ("from images", images)):
        every = pooled(parts)
        right = every.errors_sec <= NEAR_SEC
        print(
            f"{name}: area under the curve {area_under_curve(right, every.probability):.3f}, calibration error "
            f"{100 * calibration_error(right, every.probability):.1f} points, decoding {every.cpu_sec:.0f} CPU s"
        )


if __name__ == "__main__":
    with_deep_pickles(main)
