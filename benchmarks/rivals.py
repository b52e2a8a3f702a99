"""Rivals on the same recordings in one run: errors of note onsets and CPU seconds side by side.

    pip install synctoolbox==1.4.2 transkun parangonar      # in an environment that has fusili-mir, too
    python benchmarks/rivals.py ../shared/data/human [--only NAME ...] [--transcribe NAME ...]

Recordings are made as in human_piano.py. All are given the symbolic score and a WAV file; the rivals are also
told which repeats are played, which ours finds out by itself.

synctoolbox: chroma and DLNCO features at 50 Hz, multi-scale DTW, as in its documentation. The score is played at
120 beats a minute for it. transkun + parangonar, for the pieces named with --transcribe: a transcriber of piano
music and a matcher of notes; a note without a match is not found. Both take some minutes a piece.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import partitura as pt

import fusili_mir as fm
from fusili_benchmarks.played_measures import true_onsets
from fusili_mir.alignment.results import Alignment
from fusili_mir.arrays import Float64, Table
from fusili_mir.model.encoder import Encoder
from human_piano import TOLERANCES_MS, Measured, pooled, with_score

FEATURE_HZ, SAMPLE_RATE_HZ = 50, 22_050
SEC_PER_BEAT = 0.5


def cpu_sec() -> float:
    """Return the CPU seconds of this process and of those it has waited for."""
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def ours(score: Path, sound: Path, encoder: Encoder) -> Alignment:
    return fm.align_recording(fm.render_pages(score), sound, model=encoder)


def synctoolbox(notes: Table, sound: Path) -> dict[str, float]:
    """Return the onsets of the notes of an unfolded score, by their ids."""
    import librosa
    import pandas as pd
    from synctoolbox.dtw.mrmsdtw import sync_via_mrmsdtw
    from synctoolbox.dtw.utils import make_path_strictly_monotonic
    from synctoolbox.feature.chroma import pitch_to_chroma, quantize_chroma
    from synctoolbox.feature.csv_tools import df_to_pitch_features, df_to_pitch_onset_features
    from synctoolbox.feature.dlnco import pitch_onset_features_to_DLNCO
    from synctoolbox.feature.pitch import audio_to_pitch_features
    from synctoolbox.feature.pitch_onset import audio_to_pitch_onset_features
    from synctoolbox.feature.utils import estimate_tuning

    audio, _ = librosa.load(sound, sr=SAMPLE_RATE_HZ)
    tuning = estimate_tuning(audio, SAMPLE_RATE_HZ)
    start_sec = SEC_PER_BEAT * (notes["onset_beat"] - notes["onset_beat"].min())
    table = pd.DataFrame(
        {
            "start": start_sec,
            "duration": np.maximum(SEC_PER_BEAT * notes["duration_beat"], 0.05),
            "pitch": notes["pitch"],
            "velocity": 1.0,
            "instrument": "piano",
        }
    ).sort_values("start")

    def features(pitches: Float64, onsets: dict[int, list[Float64]]) -> tuple[Float64, Float64]:
        chroma = quantize_chroma(f_chroma=pitch_to_chroma(f_pitch=pitches))
        return chroma, pitch_onset_features_to_DLNCO(onsets, chroma.shape[1], FEATURE_HZ)

    heard = features(
        audio_to_pitch_features(audio, SAMPLE_RATE_HZ, FEATURE_HZ, tuning_offset=tuning),
        audio_to_pitch_onset_features(audio, SAMPLE_RATE_HZ, tuning_offset=tuning),
    )
    written = features(df_to_pitch_features(table, FEATURE_HZ), df_to_pitch_onset_features(table))
    path = sync_via_mrmsdtw(
        f_chroma1=heard[0],
        f_onset1=heard[1],
        f_chroma2=written[0],
        f_onset2=written[1],
        input_feature_rate=FEATURE_HZ,
        step_weights=np.array([1.5, 1.5, 2.0]),
        threshold_rec=10**6,
    )
    path = make_path_strictly_monotonic(path)
    found = np.interp(start_sec, path[1] / FEATURE_HZ, path[0] / FEATURE_HZ)
    return dict(zip(notes["id"].tolist(), found.tolist(), strict=True))


def transkun(notes: Table, sound: Path, folder: Path) -> dict[str, float]:
    """Return the onsets of the notes of an unfolded score that were found in a transcription, by their ids."""
    import parangonar

    midi = folder / "transcribed.mid"
    command = [Path(sys.executable).with_name("transkun"), sound, midi, "--device", "cpu"]
    subprocess.run(command, check=True, capture_output=True)
    transcribed = pt.load_performance_midi(midi).note_array()
    matched = parangonar.AutomaticNoteMatcher()(notes, transcribed)
    onset = dict(zip(transcribed["id"].tolist(), transcribed["onset_sec"].tolist(), strict=True))
    return {row["score_id"]: onset[row["performance_id"]] for row in matched if row["label"] == "match"}


def measured(found: dict[str, float], true: dict[str, float], cost_sec: float) -> Measured:
    errors = np.array([abs(found.get(note_id, np.inf) - second) for note_id, second in true.items()])
    return Measured(errors, np.isfinite(errors).astype(np.float64), cost_sec)


def compare(stem: Path, encoder: Encoder, soundfont: Path, transcribe: bool) -> dict[str, Measured]:
    true = true_onsets(stem.with_suffix(".match"))
    rows: dict[str, Measured] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sound = folder / "sound.wav"
        command = ["fluidsynth", "-ni", "-g", "0.6", "-r", "44100", "-F", sound, soundfont]
        subprocess.run([*command, stem.with_suffix(".mid")], check=True, capture_output=True)
        before = cpu_sec()
        alignment = ours(stem.with_suffix(".mxl"), sound, encoder)
        rows["ours"] = with_score(alignment, true, cpu_sec() - before)
        unfolded = pt.load_match(stem.with_suffix(".match"), create_score=True)[2][0]
        notes = unfolded.note_array()
        rivals: dict[str, Callable[[], dict[str, float]]] = {"synctoolbox": lambda: synctoolbox(notes, sound)}
        if transcribe:
            rivals["transkun + parangonar"] = lambda: transkun(notes, sound, folder)
        for rival, align in rivals.items():
            before = cpu_sec()
            found = align()
            rows[rival] = measured(found, true, cpu_sec() - before)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--soundfont", type=Path, default=Path("/usr/share/sounds/sf2/TimGM6mb.sf2"))
    parser.add_argument("--only", nargs="+", default=[], help="names of pieces, or parts of them")
    parser.add_argument("--transcribe", nargs="+", default=[], help="pieces that transkun transcribes, too")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    encoder = Encoder(fm.default_bundle(), n_threads=1)
    limits = " | ".join(f"{ms} ms" for ms in TOLERANCES_MS)
    print(f"| piece | aligned by | median ms | {limits} | CPU s |")
    print("|" + " --- |" * (4 + len(TOLERANCES_MS)))
    every: dict[str, list[Measured]] = {}
    for file in sorted(arguments.folder.glob("*.match")):
        if arguments.only and not any(part in file.name for part in arguments.only):
            continue
        transcribe = any(part in file.name for part in arguments.transcribe)
        start = time.monotonic()
        rows = compare(file.with_suffix(""), encoder, arguments.soundfont, transcribe)
        for name, row in rows.items():
            every.setdefault(name, []).append(row)
            print(f"| {file.stem} | {name} | {row.row()} | {row.cpu_sec:.1f} |", flush=True)
        print(f"{file.stem}: {time.monotonic() - start:.0f} s", file=sys.stderr)
    for name, parts in every.items():
        whole = pooled(parts)
        print(f"| all {len(parts)} | {name} | {whole.row()} | {whole.cpu_sec:.1f} |")


if __name__ == "__main__":
    main()
