"""Fit what the decoder needs for a bundle, and write it into the bundle's manifest.

    python benchmarks/fit_decoder.py law BUNDLE ../shared/data/human [--only NAME ...] [--rounds 2]
        [--ablate | --scan NAME]
    python benchmarks/fit_decoder.py certainty BUNDLE ../shared/data/human
    python benchmarks/fit_decoder.py piece BUNDLE ../shared/data/human [--corpus ../shared/data] [--songs 10]

`law` searches the parameters of `TimingLaw`, one after the
other, for the largest share of notes within 25, 50 and 250 ms in human performances (human_piano.py), with the
score and from images. `--ablate` prints instead what each part is worth: the same shares without it; `--scan
NAME` prints the same shares for each value of one parameter.

`certainty` fits, on the same performances, the probability that a note is right to 0.1 s and its interval; what
it prints, of notes, measures and frames, was measured on composers that were left out, with all performances
aligned again. `piece` fits the probability that a recording is of the
score: the same performances and songs of the validation split, clean and worn (noise, room, stained pages), with
their own recordings and with others', whole and in excerpts. Fit in this order: each rests on those before.

`--kept FOLDER` keeps encoded performances for the next time; encoding takes far longer than decoding.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fusili_benchmarks.certainty_fit import SeenNotes, fit_certainty, notes_from_images, notes_with_score
from fusili_benchmarks.held_out_shifts import BASE, PageShift, Shift, SoundShift
from fusili_benchmarks.judged_times import KINDS, JudgedTimes, judge, judged_report
from fusili_benchmarks.performances import Performance, encode_human, encode_songs, kept, with_deep_pickles
from fusili_benchmarks.piece_fit import SeenPair, fit_piece, piece_report, seen_pairs
from fusili_mir.alignment.encoded_alignment import align_encoded
from fusili_mir.alignment.fitted_decoding import decoding_options
from fusili_mir.dataclass_tables import read_table
from fusili_mir.decoding.rough_search import DecodingOptions
from fusili_mir.decoding.timing_law import TimingLaw
from fusili_mir.model.bundle import Bundle, load_bundle
from fusili_mir.model.encoder import Encoder
from human_piano import Measured, from_images, pooled, with_score

WORN = Shift("worn", page=PageShift(degraded=0.7), sound=SoundShift(snr_db=8, room_sec=1.2))
TRIED = {
    "duration_spread": (0.2, 0.3, 0.4, 0.5),
    "place_spread": (0.2, 0.28, 0.4),
    "onset_weight": (1.8, 2.5, 3.5, 5.0),
    "read_onset_weight": (0.7, 1.4, 2.2, 3.2),
    "read_onset_strength": (0.05, 0.1, 0.2),
    "envelope_weight": (1.5, 3.0, 5.0),
    "arrival_weight": (0.0, 3.0, 6.0, 10.0),
    "sound_weight": (0.08, 0.15, 0.3),
    "onset_strength": (0.08, 0.15, 0.3, 0.4),
    "most_onset_nats": (1.0, 1.6, 2.2),
    "least_onset_nats": (-1.3, -2.0, -3.0),
    "jitter_sec": (0.008, 0.015, 0.025),
    "rare_nats": (4.0, 6.0, 9.0, 14.0),
    "grace_sec": (0.06, 0.09, 0.13),
}
TRIED_OPTIONS = {
    "max_speed": (8.0, 16.0, 32.0),
    "skip_cost": (4.0, 8.0, 16.0),
    "filler_cost": (5.0, 10.0, 20.0),
    "margin_cost": (20.0, 40.0, 80.0),
    "hub_weight": (0.5, 1.0, 1.5),
    "column_hub_weight": (0.3, 0.6, 1.0),
    "band_stops": (128, 256, 512),
}
ABLATIONS = {
    "all parts": {},
    "no onsets": {"onset_weight": 0.0, "read_onset_weight": 0.0, "envelope_weight": 0.0},
    "no onsets along the path": {"arrival_weight": 0.0},
    "no sound in the timing": {"sound_weight": 0.0},
    "no tempo": {"duration_spread": 5.0, "place_spread": 5.0},
    "no pauses": {"rare_nats": 1e6},
    "no onset finer than a cell": {"refine_sec": 0.0, "chord_sec": 0.0},
    "chords struck together": {"chord_sec": 0.0},
    "no envelope beside pitches read from images": {"envelope_weight": 0.0},
    "no pitches read from images": {"read_onset_weight": 0.0},
}
PATH_ABLATIONS = {
    "no filler": {"filler_cost": 1e6},
    "skipping stops costs nothing": {"skip_cost": 0.0},
    "no stop counts as a hub": {"hub_weight": 0.0, "column_hub_weight": 0.0},
}


def measure(
    performances: list[Performance], scale: float, options: DecodingOptions
) -> tuple[Measured, Measured]:
    scores, images = [], []
    for each in performances:
        aligned = align_encoded(each.pages, each.score, each.audio, scale, options=options)
        seen = align_encoded(each.scan, each.scanned, each.audio, scale, options=options)
        scores.append(with_score(aligned, each.true, 0.0))
        images.append(from_images(seen, each.pages, each.true, 0.0))
    return pooled(scores), pooled(images)


def merit(found: tuple[Measured, Measured]) -> float:
    return sum(float(np.mean(part.errors_sec <= ms / 1000)) for part in found for ms in (25, 50, 250))


def fit_law(bundle: Bundle, performances: list[Performance], names: list[str], n_rounds: int) -> None:
    law, scale = decoding_options(bundle).law, bundle.manifest.scale
    best = merit(measure(performances, scale, DecodingOptions(law=law)))
    for _ in range(n_rounds):
        before = law
        for name, values in TRIED.items():
            for value in values:
                tried = replace(law, **{name: value})
                found = measure(performances, scale, DecodingOptions(law=tried))
                if merit(found) > best + 1e-4:
                    best, law = merit(found), tried
                    print(f"{name} = {value}: {best:.4f} | {found[0].row()} | {found[1].row()}", flush=True)
        if law == before:
            break
    write_decoder(bundle, {"law": asdict(law), "law_fitted_on": f"human performances: {', '.join(names)}"})


def ablate(bundle: Bundle, performances: list[Performance], scanned: str) -> None:
    """Print what each part of the decoder is worth, or how well it does with each value of one parameter."""
    options, scale = decoding_options(bundle), bundle.manifest.scale
    law = options.law
    if scanned in TRIED_OPTIONS:
        values: Iterable[float] = TRIED_OPTIONS[scanned]
        rows = {f"{scanned} = {value}": replace(options, **{scanned: value}) for value in values}
    elif scanned:
        laws = {f"{scanned} = {value}": replace(law, **{scanned: value}) for value in TRIED[scanned]}
        rows = {name: replace(options, law=changed) for name, changed in laws.items()}
    else:
        rows = {name: replace(options, law=replace(law, **changed)) for name, changed in ABLATIONS.items()}
        rows |= {name: replace(options, **changed) for name, changed in PATH_ABLATIONS.items()}
    print(
        "| decoder | score: median ms | 25 | 50 | 100 | 250 ms | images: median ms | 25 | 50 | 100 | 250 ms |"
    )
    print("|" + " --- |" * 11)
    for name, changed_options in rows.items():
        score, image = measure(performances, scale, changed_options)
        print(f"| {name} | {score.row()} | {image.row()} |", flush=True)


def fit_notes(bundle: Bundle, performances: dict[str, Callable[[], Performance]]) -> None:
    """Fit how sure times are, and print how that holds for composers that were left out."""
    options, scale = decoding_options(bundle), bundle.manifest.scale
    known: list[SeenNotes] = []
    seen: list[SeenNotes] = []
    for name, load in performances.items():
        each, composer = load(), name.split("_")[0]
        aligned = align_encoded(each.pages, each.score, each.audio, scale, options=options)
        known.append(notes_with_score(aligned, each, options.law.bias_sec, composer))
        aligned = align_encoded(each.scan, each.scanned, each.audio, scale, options=options)
        seen.append(notes_from_images(aligned, each, composer))
        print(f"{name}: {len(known[-1].errors_sec)} notes", flush=True)
    composers = {name: name.split("_")[0] for name in performances}
    judged: dict[str, list[JudgedTimes]] = {}
    for composer in sorted(set(composers.values())):
        law = with_certainty(
            bundle, *([each for each in notes if each.group != composer] for notes in (known, seen))
        )
        held_out = replace(options, law=read_table(TimingLaw, law, "decoder.law"))
        for name in (each for each in performances if composers[each] == composer):
            each = performances[name]()
            for knowledge, pages, encoded in (
                ("with the score", each.pages, each.score),
                ("from images", each.scan, each.scanned),
            ):
                aligned = align_encoded(pages, encoded, each.audio, scale, options=held_out)
                for kind, times in judge(aligned, each).items():
                    judged.setdefault(f"{kind}, {knowledge}", []).append(times)
    for name in (f"{kind}, {how}" for how in ("with the score", "from images") for kind in KINDS):
        print(f"\n{name}, held out by composer:\n\n{judged_report(JudgedTimes.joined(judged[name]))}\n")
    fitted_on = f"human performances: {', '.join(performances)}"
    write_decoder(bundle, {"law": with_certainty(bundle, known, seen), "certainty_fitted_on": fitted_on})


def with_certainty(bundle: Bundle, known: list[SeenNotes], seen: list[SeenNotes]) -> dict[str, Any]:
    """Return the law of a bundle, as a table, with how sure times are fitted to some notes."""
    law = asdict(decoding_options(bundle).law)
    for key, notes in (("certainty", known), ("read_certainty", seen)):
        law[key] = {**law.get(key, {}), **fit_certainty(notes)}
    return law


def fit_pairs(bundle: Bundle, performances: dict[str, Callable[[], Performance]]) -> None:
    """Fit the probability that a recording is of a score, and print how that holds for scores left out."""
    options, scale = decoding_options(bundle), bundle.manifest.scale
    groups = {name: name.split("_" if "_" in name else ".")[0] for name in performances}
    audio = {name: load().audio for name, load in performances.items()}
    pairs: list[SeenPair] = []
    for name, load in performances.items():
        pairs += seen_pairs(name, groups, load(), audio.__getitem__, scale, options)
        print(f"{name}: {len(pairs)} pairs", flush=True)
    law = asdict(options.law)
    for key, knowledge in (("certainty", "score"), ("read_certainty", "images")):
        some = [pair for pair in pairs if pair.knowledge == knowledge]
        print(f"\npiece, {knowledge}, held out by composer or song:\n\n{piece_report(some)}\n", flush=True)
        law[key] = {**law.get(key, {}), "piece": fit_piece(some)}
    write_decoder(bundle, {"law": law, "piece_fitted_on": f"pairs of: {', '.join(performances)}"})


def write_decoder(bundle: Bundle, fitted: dict[str, object]) -> None:
    """Add what was fitted to the manifest of a bundle."""
    decoder = {**bundle.manifest.decoder, **fitted}
    text = replace(bundle.manifest, decoder=decoder).to_json()
    (bundle.folder / "manifest.json").write_text(text, encoding="utf-8")
    print(json.dumps(fitted, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["law", "certainty", "piece"])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--soundfont", type=Path, default=Path("/usr/share/sounds/sf2/TimGM6mb.sf2"))
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--ablate", action="store_true")
    parser.add_argument("--scan", choices=["", *TRIED, *TRIED_OPTIONS], default="", metavar="NAME")
    parser.add_argument("--kept", type=Path, help="folder that keeps encoded performances for the next time")
    parser.add_argument("--corpus", type=Path, default=Path("../shared/data"))
    parser.add_argument("--songs", type=int, default=10, help="number of songs, for piece")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    bundle = load_bundle(arguments.bundle)
    stems = [file.with_suffix("") for file in sorted(arguments.data.glob("*.match"))]
    stems = [s for s in stems if not arguments.only or any(part in s.name for part in arguments.only)]
    encoder = Encoder(bundle, n_threads=1)
    encoding = {stem.name: partial(encode_human, stem, encoder, arguments.soundfont) for stem in stems}
    if arguments.what == "piece":
        for shift in (BASE, WORN):
            encoding |= encode_songs(arguments.corpus, arguments.songs, shift, encoder)
    loading = {name: partial(kept, name, encode, arguments.kept) for name, encode in encoding.items()}
    if arguments.what == "certainty":
        fit_notes(bundle, loading)
    elif arguments.what == "piece":
        fit_pairs(bundle, loading)
    elif arguments.ablate or arguments.scan:
        ablate(bundle, [load() for load in loading.values()], arguments.scan)
    else:
        fit_law(bundle, [load() for load in loading.values()], list(loading), arguments.rounds)


if __name__ == "__main__":
    with_deep_pickles(main)
