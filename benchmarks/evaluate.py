"""The time and memory that evaluation takes, by the number of segments.

    python benchmarks/evaluate.py [SEGMENTS...]

The bundle has hand-made graphs (tests/example_bundles.py). Segments are random ink of 128 x 512 px with melodies
of 8 s as sines, 10 segments per piece. The time does not include the making of the pairs.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from example_bundles import NATURALS, melody_notes, sine_recording, write_pitch_bundle

from fusili_mir.model.encoder import Encoder
from fusili_training.data.shard_folder import Pair
from fusili_training.evaluation.compared_pairs import compare_by_bundle
from fusili_training.evaluation.local_task import grids_of, measure_local
from fusili_training.evaluation.point_task import measure_point
from fusili_training.evaluation.retrieval_task import measure_retrieval
from fusili_training.truth import TRUTH_DTYPE

_PER_PIECE = 10
_N_DIFFERENT = 20


class _Melodies:
    """Any number of segments: a few different ones, repeated."""

    name, has_truth = "melodies", True

    def __init__(self, n_segments: int) -> None:
        self.dropped: Counter[str] = Counter()
        self.pieces = [str(number) for number in range(n_segments // _PER_PIECE)]
        self._pairs = [_pair(number) for number in range(_N_DIFFERENT)]

    def read_piece(self, piece: str) -> Iterator[Pair]:
        for number in range(_PER_PIECE):
            yield self._pairs[(int(piece) * _PER_PIECE + number) % _N_DIFFERENT]


def _pair(number: int) -> Pair:
    rng = np.random.default_rng(number)
    notes = melody_notes([str(pitch) for pitch in rng.choice(NATURALS, 20)])
    truth = np.zeros(20, TRUTH_DTYPE)
    truth["x0"] = 24 * np.arange(20) + 20
    truth["x1"], truth["y1"], truth["struck"] = truth["x0"] + 8, 128, True
    truth["onset_sec"] = notes["onset_sec"]
    truth["offset_sec"] = notes["onset_sec"] + notes["duration_sec"]
    image = np.where(rng.random((128, 512)) < 0.1, 0, 255).astype(np.uint8)
    return Pair(f"melody.x.{number}", None, image, sine_recording(notes), truth, 128, 16_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("segments", type=int, nargs="*", help="numbers of segments (default: 500 5000)")
    sizes = parser.parse_args().segments or [500, 5000]
    print("| task | segments | seconds | peak memory of the process so far |")
    print("| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        encoder = Encoder(write_pitch_bundle(Path(folder) / "pitch"), n_threads=1)
        tasks = {
            "local": lambda source: measure_local(
                source, partial(compare_by_bundle, encoder), grids_of(encoder.bundle.image)
            ),
            "point": lambda source: measure_point(encoder, source, grids_of(encoder.bundle.image)),
            "retrieval, pooled": lambda source: measure_retrieval(encoder, source, ["pooled"]),
        }
        for n_segments in sizes:
            source = _Melodies(n_segments)
            for name, measure in tasks.items():
                begin = time.perf_counter()
                measure(source)
                seconds = time.perf_counter() - begin
                peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                print(f"| {name} | {n_segments} | {seconds:.1f} | {peak_mb:.0f} MB |", flush=True)


if __name__ == "__main__":
    main()
