"""A small collection for the pitch bundle: tunes as scores, and recordings of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import soundfile
from example_bundles import NATURALS, melody_notes, sine_recording, write_pitch_bundle
from example_performances import tune

__all__ = ["NAMES", "NOTE_SEC", "pitches_of", "write_collection"]

NAMES = ("ash", "beech", "cedar", "elm")
NOTE_SEC = 0.4


def pitches_of(name: str, n_notes: int = 48) -> list[str]:
    """Return the tune of a name: naturals between C4 and G5, no two neighbours alike."""
    rng = np.random.default_rng([ord(letter) for letter in name])
    steps = np.cumsum(rng.integers(1, 11, n_notes)) % 12
    return [NATURALS[2 + step] for step in steps]


def write_collection(folder: Path) -> None:
    """Write a bundle, a score for each name, recordings of the first two, and a file that is no score."""
    write_pitch_bundle(folder / "bundle")
    (folder / "scores").mkdir()
    (folder / "recordings").mkdir()
    for name in NAMES:
        (folder / "scores" / f"{name}.musicxml").write_text(tune(pitches_of(name)))
        samples = sine_recording(melody_notes(pitches_of(name), NOTE_SEC))
        place = folder / "recordings" if name in NAMES[:2] else folder
        soundfile.write(place / f"{name}.flac", samples, 16_000)
    (folder / "scores" / "bad.mxl").write_text("no score at all")
