"""How well could local alignment do at best? Top-1 of a reader who makes no mistake, but sees only so far.

    python benchmarks/local_ceiling.py SHARDS [--split valid] [--context 0.43 0.86 2 1000]

Songs repeat themselves: within a system the same notes often stand in several places, and a frame in which they
sound resembles all of them (`fusili_benchmarks.ideal_reading`). Frames and columns are those of the model that
ships.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fusili_benchmarks.ideal_reading import ideal_reading
from fusili_mir.geometry import FrameGrid, PatchGrid
from fusili_mir.model.bundle import default_bundle
from fusili_training.evaluation.bootstrap import ratio_interval
from fusili_training.evaluation.shard_dataset import ShardDataset


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("shards", type=Path)
    parser.add_argument("--split", default="valid")
    parser.add_argument("--context", type=float, nargs="+", default=[0.43, 0.86, 2.0, 1000.0])
    arguments = parser.parse_args()
    bundle = default_bundle()
    patch_px, frame_sec = bundle.manifest.image.patch_width_px, bundle.manifest.audio.frame_sec
    dataset = ShardDataset(arguments.shards, [arguments.split], bundle.manifest.image)
    counts: dict[float, tuple[list[float], list[int]]] = {context: ([], []) for context in arguments.context}
    for piece in dataset.pieces:
        truths = []
        for pair in dataset.read_piece(piece):
            width_px, seconds = pair.image.shape[-1], float(pair.truth["offset_sec"].max())
            patches = PatchGrid(1, width_px // patch_px, patch_px, pair.image.shape[-2])
            truths.append((pair.truth, patches, FrameGrid(int(seconds / frame_sec) + 1, frame_sec)))
        for context, (right, judged) in counts.items():
            found = [ideal_reading(*each, context) for each in truths]
            right.append(sum(each.sum() for each in found))
            judged.append(sum(len(each) for each in found))
    print("| context, s to either side | frames | top-1 of an ideal reader |\n| --- | --- | --- |")
    for context, (right, judged) in counts.items():
        share = ratio_interval(right, judged)
        print(f"| {context:g} | {sum(judged):,} | {share.value:.3f} ({share.low:.3f} - {share.high:.3f}) |")


if __name__ == "__main__":
    main()
