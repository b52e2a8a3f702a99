"""Join folders of pairs into one, to train on all of them.

    python benchmarks/join_pairs.py OUT PAIRS [PAIRS ...]

PAIRS were written by `fusili-mir render` or `lilypond_pairs.py`, with segments of the same shape and clips at the
same rate. Shards are linked, not copied. Of a folder that is still being rendered, the complete shards are used.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fusili_mir.errors import FusiliError, InputError
from fusili_training.rendering.shards import shard_name, sidecar_of, write_json
from fusili_training.splits import SPLITS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out", type=Path, help="a new folder")
    parser.add_argument("pairs", type=Path, nargs="+")
    arguments = parser.parse_args()
    try:
        manifest = join_pairs(arguments.pairs, arguments.out)
    except FusiliError as error:
        sys.exit(str(error))
    print(f"{manifest['pieces']} pieces, {manifest['segments']} pairs -> {arguments.out}")


def join_pairs(folders: list[Path], out: Path) -> dict[str, Any]:
    """Link the shards of some folders into a new one, and return its manifest."""
    settings = [json.loads((folder / "render.json").read_text(encoding="utf-8")) for folder in folders]
    for folder, own in zip(folders, settings, strict=True):
        if _shape(own) != _shape(settings[0]):
            raise InputError(
                f"{folder}: pairs of {_shape(own)}; expected {_shape(settings[0])}, as in {folders[0]}"
            )
    out.mkdir(parents=True)
    splits: dict[str, Any] = {}
    licences: Counter[str] = Counter()
    for split in SPLITS:
        shards, reports = [], []
        for number, sidecar in enumerate(_sidecars(folders, split)):
            name = shard_name(split, number)
            content = json.loads(sidecar.read_text(encoding="utf-8"))
            os.link(sidecar.with_suffix(".tar"), out / name)
            write_json(sidecar_of(out / name), content | {"shard": name})
            shards.append({key: content[key] for key in ("bytes", "sha256")} | {"name": name})
            reports += content["pieces"]
        for report in reports:
            licences[report["licence"]] += report["segments"]
        segments = sum(report["segments"] for report in reports)
        splits[split] = {"pieces": len(reports), "segments": segments, "mutants": 0, "shards": shards}
    manifest = settings[0] | {
        "n_pieces": sum(own["pieces"] for own in splits.values()),
        "joined": [
            {"name": folder.name, "corpus_sha256": own["corpus_sha256"]}
            for folder, own in zip(folders, settings, strict=True)
        ],
        "pieces": sum(own["pieces"] for own in splits.values()),
        "segments": sum(own["segments"] for own in splits.values()),
        "mutants": 0,
        "licences": dict(sorted(licences.items())),
        "splits": splits,
    }
    write_json(out / "manifest.json", manifest)
    return manifest


def _sidecars(folders: list[Path], split: str) -> Iterator[Path]:
    """Yield the JSON files of the complete shards of a split."""
    for folder in folders:
        yield from sorted(folder.glob(f"shard-{split}-*.json"))


def _shape(settings: dict[str, Any]) -> dict[str, Any]:
    recipe = settings["recipe"]
    return recipe["segment"] | {"sample_rate_hz": recipe["audio"]["sample_rate_hz"]}


if __name__ == "__main__":
    main()
