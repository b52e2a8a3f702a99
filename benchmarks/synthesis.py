"""How fast scores are performed, synthesised, sung, augmented and mutated on one core.

python benchmarks/synthesis.py [--data ../shared/data] [--pieces 20] [--banks FOLDER]
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import partitura as pt

from fusili_mir.scores.score_file import read_score_file
from fusili_training.notation.mutations import mutate
from fusili_training.sound.augment_audio import AudioAugmentation, augment_audio
from fusili_training.sound.baking import cached_soundbank
from fusili_training.sound.expression import Expression, draw_expression, perform
from fusili_training.sound.score_notes import read_score_notes
from fusili_training.sound.singing import Singer
from fusili_training.sound.soundfonts import find_soundfonts
from fusili_training.sound.synthesis import synthesise
from fusili_training.sound.tempo import read_written_tempo

CLIP_SEC = 10.0
LIMITS = Expression(
    1.4, 0.15, jitter_sec=0.02, chord_spread_sec=0.03, marks=1, dynamics=12, articulation=0.2, pedal=0.6
)
AUGMENTATION = AudioAugmentation(detune_cents=20, colour_db=4, reverb_sec=1.5, lowest_snr_db=20, gain_db=9)
PIANO, VOICE = 0, 52  # General MIDI programs


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--pieces", type=int, default=20)
    parser.add_argument("--banks", type=Path, help="folder of sound banks; by default a temporary one")
    options = parser.parse_args()
    files = sorted((options.data / "scores" / "openscore_lieder").glob("*.mxl"))
    rng = np.random.default_rng(0)
    chosen = [files[i] for i in rng.permutation(len(files))[: options.pieces]]
    warnings.simplefilter("ignore")  # partitura warns while reading
    with tempfile.TemporaryDirectory() as folder:
        measure(chosen, options.banks or Path(folder), rng)


def measure(files: list[Path], banks_folder: Path, rng: np.random.Generator) -> None:
    print("| what | rate | unit |\n| --- | --- | --- |")
    font = min(find_soundfonts(), key=lambda found: found.path.stat().st_size)
    banks_by_rate = {}
    for rate_hz in (16_000, 48_000):
        started = time.perf_counter()
        piano = cached_soundbank(font, PIANO, rate_hz, banks_folder)
        banks_by_rate[rate_hz] = {0: cached_soundbank(font, VOICE, rate_hz, banks_folder), 1: piano}
        report(
            f"bake or open two banks, {font.name}, {rate_hz} Hz", time.perf_counter() - started, "s (wall)"
        )
        report(f"size of the piano bank, {rate_hz} Hz", piano.samples.nbytes / 1e6, "MB")
    scores = [load(file) for file in files]
    performances = []

    def perform_all() -> int:
        for notes, tempo in scores:
            performances.append(perform(notes, tempo, draw_expression(LIMITS, rng), rng))
        return sum(len(notes) for notes, _ in scores)

    report("perform", per_second(perform_all), "notes/s")
    clips: dict[int, list[np.ndarray]] = {16_000: [], 48_000: []}
    for rate_hz, banks in banks_by_rate.items():

        def synthesise_all(rate_hz: int = rate_hz, banks: dict = banks) -> int:
            for played in performances:
                playable = played[played["part"] < 2]
                for start_sec in np.arange(0.0, playable["onset_sec"].max() - CLIP_SEC, CLIP_SEC):
                    clips[rate_hz].append(synthesise(playable, banks, CLIP_SEC, start_sec))
            return len(clips[rate_hz])

        report(f"synthesise, {rate_hz} Hz", per_second(synthesise_all), f"clips of {CLIP_SEC:.0f} s/s")

        def sing_all(rate_hz: int = rate_hz) -> int:
            n_sung = 0
            for number, played in enumerate(performances):
                voice = played[played["part"] == 0]
                singer = Singer("soprano", rate_hz, number)
                for start_sec in np.arange(0.0, voice["onset_sec"].max() - CLIP_SEC, CLIP_SEC):
                    singer.sing(voice, CLIP_SEC, start_sec)
                    n_sung += 1
            return n_sung

        report(f"sing, {rate_hz} Hz", CLIP_SEC * per_second(sing_all), "times real time")

        def augment_all(rate_hz: int = rate_hz) -> int:
            for clip in clips[rate_hz]:
                augment_audio(clip, rate_hz, AUGMENTATION, rng)
            return len(clips[rate_hz])

        report(f"augment, {rate_hz} Hz", per_second(augment_all), f"clips of {CLIP_SEC:.0f} s/s")
    roots = [read_score_file(file).root for file in files]

    def mutate_all() -> int:
        return sum(len(mutate(root, rng).shifts) > 0 for root in roots)

    report("mutate", per_second(mutate_all), "scores/s")


def load(file: Path) -> tuple:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "score.musicxml")
        path.write_bytes(read_score_file(file).to_bytes())
        score = pt.load_musicxml(path)
    return read_score_notes(score), read_written_tempo(score)


def per_second(work: Callable[[], int]) -> float:
    """Return how many items are processed per second of CPU time."""
    started = time.process_time()
    done = work()
    return done / (time.process_time() - started)


def report(what: str, value: float, unit: str) -> None:
    print(f"| {what} | {value:,.1f} | {unit} |", flush=True)


if __name__ == "__main__":
    main()
