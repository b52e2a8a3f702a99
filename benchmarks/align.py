"""What aligning costs: decoding, whole runs from files, and similarity with and without Sinkhorn.

    python benchmarks/align.py [--model BUNDLE] [--minutes 1 5 10 60] [--repeats 3]

Decoding and whole runs are measured in fresh processes, so that the peak of memory is theirs. The pieces grow
with the recordings: four systems, or 32 measures, a minute. Without --model, whole runs use the bundle of the
tests, whose graphs cost next to nothing: what is left is everything but the model.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp

from fusili_mir.audio.onset_map import N_PITCHES, OnsetMap
from fusili_mir.audio.sound_envelope import FrameSound, SoundEnvelope
from fusili_mir.decoding.course import reading_course
from fusili_mir.decoding.onset_evidence import OnsetEvidence, StopPitches
from fusili_mir.decoding.similarity import CourseSimilarity, frame_similarity, unit_vectors
from fusili_mir.decoding.timing_law import TimingLaw
from fusili_mir.decoding.warping_path import decode_path
from fusili_mir.geometry import FrameGrid
from fusili_mir.pages.score_axis import COLUMN_DTYPE

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

FRAME_SEC, D, COLUMNS_PER_SYSTEM, SYSTEMS_PER_MINUTE = 0.04, 128, 128, 4
MEASURES_PER_MINUTE, MEASURE_SEC = 32, 1.92  # about 32 measures of 1.92 s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--minutes", type=int, nargs="+", default=[1, 5, 10, 60])
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()

    print("Decoding, page images (every column is a stop); CPU seconds, median\n")
    print(
        "| recording | systems | similarity | decoding alone | peak memory, MB | off by more than a column |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for minutes in arguments.minutes:
        runs = [in_fresh_process(decode_once, minutes) for _ in range(arguments.repeats)]
        middle = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        print(
            f"| {minutes} min | {minutes * SYSTEMS_PER_MINUTE} | {middle['similarity']:.2f} "
            f"| {middle['decoding']:.2f} | {middle['memory_mb']:.0f} | {100 * middle['wrong']:.2f} % |"
        )

    print("\nWhole runs from files, MusicXML and WAV to all formats; seconds\n")
    print(
        "| recording | measures | engraving, wall | aligning, wall | aligning, CPU | writing, CPU | peak, MB |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for minutes in arguments.minutes:
        run = in_fresh_process(align_once, minutes, arguments.model)
        print(
            f"| {minutes} min | {minutes * MEASURES_PER_MINUTE} | {run['engraving']:.1f} | {run['aligning']:.1f} "
            f"| {run['aligning_cpu']:.1f} | {run['writing_cpu']:.1f} | {run['memory_mb']:.0f} |"
        )

    print("\nSimilarity of a segment, 49 patches x 256 frames, d = 512; CPU ms, median\n")
    print("| cosines alone | cosines and 20 Sinkhorn iterations |")
    print("| --- | --- |")
    print(f"| {cpu_ms(similarity_once(0)):.2f} | {cpu_ms(similarity_once(20)):.2f} |")


def in_fresh_process(work: Callable[..., dict[str, float]], *arguments: Any) -> dict[str, float]:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


@dataclass(frozen=True)
class TimedSimilarity(CourseSimilarity):
    """Adds up the CPU seconds spent on similarities."""

    spent: ClassVar[list[float]] = [0.0]

    def block(self, *arguments: Any) -> Any:
        start = time.process_time()
        result = super().block(*arguments)
        self.spent[0] += time.process_time() - start
        return result

    def baseline(self, *arguments: Any) -> Any:
        start = time.process_time()
        result = super().baseline(*arguments)
        self.spent[0] += time.process_time() - start
        return result


def decode_once(minutes: int) -> dict[str, float]:
    """Decode a noisy recording of random columns at a changing tempo."""
    rng = np.random.default_rng(0)
    n_columns, n_frames = minutes * SYSTEMS_PER_MINUTE * COLUMNS_PER_SYSTEM, round(minutes * 60 / FRAME_SEC)
    embeddings = unit_vectors(rng.standard_normal((n_columns, 1, D), dtype=np.float32))
    pace = np.cumsum(rng.uniform(0, 2, n_frames))
    true = np.minimum(pace / pace[-1] * n_columns, n_columns - 1).astype(np.int64)
    noise = rng.standard_normal((n_frames, D), dtype=np.float32) / np.sqrt(D)
    frames = unit_vectors(embeddings[true, 0] + noise)
    columns = np.zeros(n_columns, COLUMN_DTYPE)
    columns["system"] = np.arange(n_columns) // COLUMNS_PER_SYSTEM
    columns["x0"] = np.arange(n_columns) % COLUMNS_PER_SYSTEM
    columns["x1"] = columns["x0"] + 1
    mask = np.ones((n_columns, 1), bool)
    similarity = TimedSimilarity(embeddings, mask, frames, reading_course(np.arange(len(columns))))
    start = time.process_time()
    evidence = nothing_heard(n_frames, n_columns)
    path = decode_path(
        similarity, FrameGrid(n_frames, FRAME_SEC), 20.0, FrameSound(np.zeros(n_frames, bool)), evidence
    ).path
    total = time.process_time() - start
    return {
        "similarity": similarity.spent[0],
        "decoding": total - similarity.spent[0],
        "memory_mb": peak_mb(),
        "wrong": float(np.mean(np.abs(path.stop - true) > 1)),
    }


def nothing_heard(n_frames: int, n_stops: int) -> OnsetEvidence:
    """Evidence in which nothing begins, of pitches that say nothing."""
    steps = np.zeros(round(n_frames * FRAME_SEC / 0.01), np.float32)
    onsets = OnsetMap(np.zeros((len(steps), N_PITCHES), np.float16))
    pitches = StopPitches(np.zeros((n_stops, N_PITCHES), np.float32), np.zeros(n_stops, np.float32))
    return OnsetEvidence(onsets, SoundEnvelope(steps, steps), pitches, TimingLaw())


def align_once(minutes: int, model: Path | None) -> dict[str, float]:
    """Engrave, encode, align and write a melody."""
    import soundfile
    from example_bundles import sine_recording, write_pitch_bundle
    from example_performances import PITCHES, perform, tune

    from fusili_mir.alignment.aligning import align_recording
    from fusili_mir.alignment.played import play_pages
    from fusili_mir.model.bundle import load_bundle
    from fusili_mir.output.alignment_files import save_alignment
    from fusili_mir.pages.pages import render_pages

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bundle = load_bundle(model) if model else write_pitch_bundle(folder / "bundle", clip_sec=20.0)
        rng = np.random.default_rng(0)
        pitches = rng.choice(PITCHES, 2 * minutes * MEASURES_PER_MINUTE)
        (folder / "piece.musicxml").write_text(tune([str(pitch) for pitch in pitches]))
        start = time.perf_counter()
        pages = render_pages(folder / "piece.musicxml")
        engraving = time.perf_counter() - start
        performed = perform(play_pages(pages), beat_sec=MEASURE_SEC / 2)
        with soundfile.SoundFile(folder / "piece.wav", "w", 16_000, 1) as file:
            for first in range(0, len(performed), 64):  # not all at once: the peak of memory is measured
                some = performed[first : first + 64].copy()
                begin_sec = float(some["onset_sec"][0]) if first else 0.0
                some["onset_sec"] -= begin_sec
                end_sec = float(some["onset_sec"][-1]) + MEASURE_SEC / 2
                file.write(sine_recording(some, end_sec=end_sec))
        wall, cpu = time.perf_counter(), time.process_time()
        alignment = align_recording(pages, folder / "piece.wav", model=bundle)
        aligning, aligning_cpu = time.perf_counter() - wall, time.process_time() - cpu
        start = time.process_time()
        save_alignment(alignment, folder / "out")
        writing_cpu = time.process_time() - start
    return {
        "engraving": engraving,
        "aligning": aligning,
        "aligning_cpu": aligning_cpu,
        "writing_cpu": writing_cpu,
        "memory_mb": peak_mb(),
    }


def similarity_once(n_iterations: int) -> Callable[[], None]:
    """Compare one segment with one clip; with Sinkhorn, turn the cosines into a soft alignment, too."""
    rng = np.random.default_rng(0)
    patches = rng.standard_normal((49, 512), dtype=np.float32)
    frames = rng.standard_normal((256, 512), dtype=np.float32)

    def work() -> None:
        log_plan = 20.0 * frame_similarity(patches, frames)
        for _ in range(n_iterations):
            log_plan = log_plan - logsumexp(log_plan, axis=1, keepdims=True) - np.log(49)
            log_plan = log_plan - logsumexp(log_plan, axis=0, keepdims=True) - np.log(256)

    return work


def cpu_ms(work: Callable[[], None], repeats: int = 50) -> float:
    spent = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        spent.append(1000 * (time.process_time() - start))
    return statistics.median(spent)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
