"""The smallest real inputs of every command that writes: scores of four measures, and what follows from them."""

from __future__ import annotations

import os
import shutil
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import partitura as pt
import soundfile

from fusili_benchmarks.toy_music import write_toy_corpus
from fusili_mir.cli.main import main
from fusili_training.sound.soundfonts import find_soundfonts

__all__ = ["KilledInputs", "make_inputs"]

_RATE_HZ = 16_000
_QUARTER_SEC = 0.3

_TRAINING = """
[model]
backbone = "small"
initial_scale = 10.0
max_scale = 30.0
[model.backbone_options]
width = 32
embedding_dim = 16
stem_channels = [4, 8, 8]
image_dilations = [1]
system_dilations = [1]
audio_dilations = [1, 2]
[data]
batch_size = 2
augment = true
workers = 0
[optimiser]
head_rate = 3e-3
encoder_rate = 3e-3
[training]
epochs = 2
checkpoint_every_steps = 1
validate_every_steps = 2
"""


@dataclass(frozen=True)
class KilledInputs:
    """Files that commands read.

    Attributes
    ----------
    corpus : Path
        Table of three pieces; their scores are beside it.
    scores, recordings : tuple of Path
        Each recording is of the score of the same place.
    pairs : Path
        Table of two pairs of them.
    render_recipe, train_recipe : Path
    data : Path
        The corpus, rendered.
    checkpoint : Path
        A model trained on it.
    """

    corpus: Path
    scores: tuple[Path, ...]
    recordings: tuple[Path, ...]
    pairs: Path
    render_recipe: Path
    train_recipe: Path
    data: Path
    checkpoint: Path


def make_inputs(folder: Path, with_model: bool = True) -> KilledInputs:
    """Write all inputs into a folder, sound banks among them; if asked for, with pairs and a trained model."""
    inputs = _inputs(folder)
    os.environ["FUSILI_SOUNDBANKS"] = str(folder / "soundbanks")
    write_toy_corpus(folder / "corpus", {"train": 3, "valid": 1}, n_measures=4)
    for score, recording in zip(inputs.scores, inputs.recordings, strict=True):
        _play(score, recording)
    rows = [f"{inputs.scores[at]},{inputs.recordings[at]}" for at in range(2)]
    inputs.pairs.write_text("\n".join(["score,recording", *rows]) + "\n", encoding="utf-8")
    if not with_model:
        return inputs
    font = min(find_soundfonts(), key=lambda found: found.path.stat().st_size)
    inputs.render_recipe.write_text(
        "pieces_per_shard = 1\n[audio]\nkeyboard_programs = [0]\nother_programs = [0]\nvelocities = [72]\n"
        f"soundfonts = ['{font.name}']\n",
        encoding="utf-8",
    )
    inputs.train_recipe.write_text(_TRAINING, encoding="utf-8")
    _call("render", inputs.corpus, "-o", inputs.data, "--recipe", inputs.render_recipe, "--jobs", 1)
    run = folder / "run"
    _call("train", inputs.train_recipe, "--data", inputs.data, "-o", run)
    shutil.copy(run / "best.pt", inputs.checkpoint)
    return inputs


def _inputs(folder: Path) -> KilledInputs:
    names = ("train0", "train1", "train2")
    return KilledInputs(
        folder / "corpus" / "manifest.csv",
        tuple(folder / "corpus" / f"{name}.musicxml" for name in names),
        tuple(folder / f"{name}.wav" for name in names),
        folder / "pairs.csv",
        folder / "render.toml",
        folder / "tiny.toml",
        folder / "data",
        folder / "best.pt",
    )


def _play(score: Path, recording: Path) -> None:
    """Play a score with tones that fade."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        notes = pt.load_score(str(score)).note_array()
    end_sec = _QUARTER_SEC * float((notes["onset_quarter"] + notes["duration_quarter"]).max()) + 0.5
    sound = np.zeros(int(end_sec * _RATE_HZ))
    for note in notes:
        begin = int(_QUARTER_SEC * note["onset_quarter"] * _RATE_HZ)
        since_sec = np.arange(int(_QUARTER_SEC * note["duration_quarter"] * _RATE_HZ)) / _RATE_HZ
        hertz = 440 * 2 ** ((int(note["pitch"]) - 69) / 12)
        sound[begin : begin + len(since_sec)] += np.exp(-4 * since_sec) * np.sin(
            2 * np.pi * hertz * since_sec
        )
    soundfile.write(recording, 0.1 * sound, _RATE_HZ)


def _call(*arguments: object) -> None:
    try:
        main([str(each) for each in arguments])
    except SystemExit as ended:
        if ended.code:
            raise RuntimeError(f"{arguments[0]} ended with {ended.code}") from ended
