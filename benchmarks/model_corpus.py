"""The corpus of the model that ships: songs, quartets and music made by rule (CC0), and Chopin (CC BY 4.0).

    python benchmarks/model_corpus.py OUT [--songs 220] [--quartets 6] [--chopin 24] [--textures 120]
        [--ensembles 60]
    fusili-mir render OUT/manifest.csv -o pairs --recipe training/recipes/render/world.toml

Takes training and validation pieces of `../shared/data`: songs and Chopin in a fixed random order, the shortest
quartets. Opuses of Chopin that other sets are measured on are left out. Textures are for piano, some on three
staves; ensembles are for two to twelve instruments, with cue notes.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from fusili_training.notation.written_ensembles import MOST_PARTS, write_ensemble
from fusili_training.notation.written_textures import write_texture
from fusili_training.random_streams import random_stream
from fusili_training.splits import stable_fraction

VALID_SHARE = 0.08
TEXTURE_MEASURES = 14
ENSEMBLE_MEASURES = 20
MEASURED_ON = ("chopin:006", "chopin:009", "chopin:010")  # opuses of the human performances and of MSMD
THIRD_STAFF = 5  # of so many textures, one has three staves


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out", type=Path, help="a new folder")
    parser.add_argument("--corpus", type=Path, default=Path("../shared/data/manifest.csv"))
    parser.add_argument("--songs", type=int, default=220)
    parser.add_argument("--quartets", type=int, default=6)
    parser.add_argument("--chopin", type=int, default=24)
    parser.add_argument("--textures", type=int, default=120)
    parser.add_argument("--ensembles", type=int, default=60)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True)
    rows = [
        *chosen_rows(arguments),
        *written(arguments.out, "texture", arguments.textures, texture),
        *written(arguments.out, "ensemble", arguments.ensembles, ensemble),
    ]
    with (arguments.out / "manifest.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["id", "file", "licence", "split"])
        writer.writeheader()
        writer.writerows(rows)
    print(f"{len(rows)} pieces -> {arguments.out / 'manifest.csv'}")


def chosen_rows(arguments: argparse.Namespace) -> Iterator[dict[str, str]]:
    with arguments.corpus.open(encoding="utf-8", newline="") as file:
        listed = list(csv.DictReader(file))
    listed = [row for row in listed if not row["id"].startswith(MEASURED_ON)]
    yield from _first(arguments, listed, "openscore_lieder", arguments.songs)
    yield from _first(arguments, listed, "openscore_quartets", arguments.quartets, shortest=True)
    yield from _first(arguments, listed, "chopin_first_editions", arguments.chopin)


def _first(
    arguments: argparse.Namespace,
    listed: list[dict[str, str]],
    source: str,
    number: int,
    shortest: bool = False,
) -> Iterator[dict[str, str]]:
    """Yield so many pieces for training, and some for validation."""
    own = [row for row in listed if f"/{source}/" in row["file"]]
    own.sort(key=lambda row: int(row["measures"]) if shortest else stable_fraction(row["id"]))
    for split, wanted in (("train", number), ("valid", round(number * VALID_SHARE))):
        for row in [row for row in own if row["split"] == split][:wanted]:
            path = arguments.corpus.absolute().parent / row["file"]
            yield {"id": row["id"], "file": str(path), "licence": row["licence"], "split": split}


def written(
    out: Path, kind: str, number: int, write: Callable[[int, np.random.Generator], bytes]
) -> Iterator[dict[str, str]]:
    """Write so many pieces for training, and some for validation; `write` is given their number and a stream."""
    for split, wanted in (("train", number), ("valid", round(number * VALID_SHARE))):
        for place in range(wanted):
            name = f"{kind}-{split}-{place:03d}"
            (out / f"{name}.musicxml").write_bytes(write(place, random_stream(0, name)))
            yield {"id": name, "file": f"{name}.musicxml", "licence": "CC0-1.0", "split": split}


def texture(place: int, rng: np.random.Generator) -> bytes:
    return write_texture(TEXTURE_MEASURES, rng, third_staff=place % THIRD_STAFF == THIRD_STAFF - 1)


def ensemble(place: int, rng: np.random.Generator) -> bytes:
    return write_ensemble(ENSEMBLE_MEASURES, 2 + place % (MOST_PARTS - 1), rng)


if __name__ == "__main__":
    main()
