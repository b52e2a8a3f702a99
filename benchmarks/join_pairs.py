"""Join folders of pairs into one, to train on all of them.

    python benchmarks/join_pairs.py OUT PAIRS [PAIRS ...]

PAIRS were written by `fusili-mir render` or `lilypond_pairs.py`, with segments of the same shape and clips at the
same rate. Shards are linked, not copied. Of a folder that is still being rendered, the finished shards are used.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from fusili_mir.errors import FusiliError, InputError
from fusili_training.rendering.render import save_manifest_so_far
from fusili_training.rendering.shards import shard_name, sidecar_of, write_json
from fusili_training.splits import SPLITS

SETTINGS = "render.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out", type=Path, help="a new folder, on the same disk")
    parser.add_argument("pairs", type=Path, nargs="+")
    arguments = parser.parse_args()
    try:
        manifest = join_pairs(arguments.pairs, arguments.out)
    except (FusiliError, OSError) as error:
        sys.exit(str(error))
    print(f"{manifest['pieces']} pieces, {manifest['segments']} pairs -> {arguments.out}")


def join_pairs(folders: list[Path], out: Path) -> dict[str, Any]:
    """Link the shards of some folders into a new one, and return its manifest."""
    settings = {folder: read_json(folder / SETTINGS) for folder in folders}
    first = settings[folders[0]]
    for folder, own in settings.items():
        if shape(own) != shape(first):
            raise InputError(f"{folder}: pairs of {shape(own)}; expected {shape(first)}, as in {folders[0]}")
        if own["recipe"]["audio"].get("codec") == "notes":
            raise InputError(
                f"{folder}: clips are stored as notes; expected flac or opus, without sound banks"
            )
    check_pieces(folders)
    out.mkdir(parents=True)
    for split in SPLITS:
        sidecars = [file for folder in folders for file in sorted(folder.glob(f"shard-{split}-*.json"))]
        for number, sidecar in enumerate(sidecars):
            shard = out / shard_name(split, number)
            os.link(sidecar.with_suffix(".tar"), shard)
            write_json(sidecar_of(shard), read_json(sidecar) | {"shard": shard.name})
    joined = [
        {"name": folder.name, "corpus_sha256": own["corpus_sha256"]} for folder, own in settings.items()
    ]
    write_json(out / SETTINGS, first | {"joined": joined})
    return save_manifest_so_far(out)


def check_pieces(folders: list[Path]) -> None:
    """Refuse pieces that are in two of the folders: they would be counted as wrong answers for themselves."""
    found: dict[str, Path] = {}
    for folder in folders:
        listed = [piece for sidecar in folder.glob("shard-*.json") for piece in read_json(sidecar)["pieces"]]
        for name in {piece["id"] for piece in listed if piece["segments"]}:
            if name in found:
                raise InputError(
                    f"{folder}: has the piece {name}, as {found[name]} does; expected other pieces"
                )
            found[name] = folder


def shape(settings: dict[str, Any]) -> dict[str, Any]:
    recipe = settings["recipe"]
    return recipe["segment"] | {"sample_rate_hz": recipe["audio"]["sample_rate_hz"]}


def read_json(file: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: cannot be read ({error}); expected a folder of rendered pairs") from error
    return content


if __name__ == "__main__":
    main()
