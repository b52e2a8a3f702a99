"""Fit the network that hears which notes begin when, and put it into the package.

    python benchmarks/fit_onset_network.py train RUN [--steps 4000] [--pieces 250] [--corpus ../shared/data]
    python benchmarks/fit_onset_network.py measure RUN
    python benchmarks/fit_onset_network.py export RUN

`train` makes scenes of 5 s (`fusili_training.listening`) while it learns from them: passages of training pieces
and textures made by rule, played by the instruments of `training/recipes/listening/onsets.toml`. Soundfonts
come from Debian; FUSILI_SOUNDFONTS names their folders and those of the samples (docs/model.md says where these
are from). RUN keeps `last.pt`, from which an interrupted run goes on. `measure` says how well onsets
of unheard instruments are found. `export` writes `fusili_mir/hearing/onsets.onnx`; the law of timing is to be
fitted anew after that (`fit_decoder.py law`, `certainty` and `piece`).
"""

from __future__ import annotations

import argparse
import math
import tomllib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from fusili_export.onset_graph import onset_graph_bytes
from fusili_export.shipped_networks import save_network
from fusili_mir.arrays import Float32
from fusili_mir.errors import FusiliError, InputError
from fusili_mir.hearing.onset_listener import ONSET_STEP_SEC, SAMPLE_RATE_HZ
from fusili_mir.scores.score_file import read_score_file
from fusili_training.listening.onset_network import OnsetNetwork
from fusili_training.listening.scenes import Instruments, Scene, SceneMaker, onset_targets
from fusili_training.random_streams import random_stream
from fusili_training.rendering.corpus import list_corpus, select_pieces
from fusili_training.rendering.render_recipe import AudioOptions
from fusili_training.rendering.sound_choice import open_bank
from fusili_training.sound.sounding_score import SoundingScore, read_sounding_score

RECIPE = Path(__file__).parents[1] / "training" / "recipes" / "listening" / "onsets.toml"
LICENCE = "CC0-1.0"
LEARNING_RATE, WARM_UP = 6e-3, 100
ONSET_WEIGHT = 4.0  # of a step with an onset, beside one without
NEAR_STEPS = 3  # how far a peak may be from an onset
KINDS = {"songs": "*openscore_lieder*", "quartets": "*openscore_quartets*"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=("train", "measure", "export"))
    parser.add_argument("run", type=Path)
    parser.add_argument("--corpus", type=Path, default=Path("../shared/data"))
    parser.add_argument("--pieces", type=int, default=250)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--scenes", type=int, default=120, help="number of scenes that are measured")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    recipe = tomllib.loads(RECIPE.read_text(encoding="utf-8"))
    if arguments.task == "train":
        maker = scene_maker(recipe, "", train_scores(arguments.corpus, arguments.pieces))
        train(maker, arguments.run, arguments.steps, recipe["batch_size"])
    elif arguments.task == "measure":
        measure(scene_maker(recipe, "unheard_", []), load_network(arguments.run), arguments.scenes)
    else:
        graph = onset_graph_bytes(load_network(arguments.run))
        save_network("onsets", graph, LICENCE, origin_of(arguments.run, recipe))


def origin_of(run: Path, recipe: dict[str, Any]) -> dict[str, Any]:
    """Return what is recorded about the origin of a network, attributions included."""
    saved = torch.load(run / "last.pt", weights_only=True)
    return {
        "trained_on": recipe["trained_on"],
        "instruments": recipe["instruments"],
        "steps": saved["step"],
        "batch_size": recipe["batch_size"],
    }


def scene_maker(recipe: dict[str, Any], which: str, scores: list[SoundingScore]) -> SceneMaker:
    options = AudioOptions(sample_rate_hz=SAMPLE_RATE_HZ)
    keyboards = [open_bank(name, program, options) for name, program in recipe[f"{which}keyboards"]]
    others = [
        (open_bank(name, program, options), (low, high))
        for name, program, low, high in recipe[f"{which}others"]
    ]
    singing = recipe.get(f"{which}singing", 0.0)
    if not (isinstance(singing, int | float) and 0 <= singing <= 1):
        raise InputError(f"{RECIPE.name}: {which}singing is {singing!r}; expected 0 to 1")
    return SceneMaker(scores, Instruments(keyboards, others), recipe["scene_sec"], singing=singing)


def train_scores(corpus: Path, number: int) -> list[SoundingScore]:
    """Read songs and, one in eight, quartets of the training split."""
    scores = []
    for kind, share in (("songs", 7 / 8), ("quartets", 1 / 8)):
        pieces = select_pieces(list_corpus(corpus), ["CC0-1.0"], ["train"], KINDS[kind])
        order = random_stream(0, "fit_attack_network", kind).permutation(len(pieces))
        for piece in order[: round(share * number)]:
            try:
                scores.append(read_sounding_score(read_score_file(pieces[piece].file)))
            except FusiliError as error:
                print(f"left out: {error}")
    return scores


@dataclass(frozen=True)
class Batch:
    waveforms: Tensor  # (B, n_samples)
    targets: Tensor  # (B, n_steps, 88)


def batches(maker: SceneMaker, size: int, first: int) -> Iterator[Batch]:
    step = first
    while True:
        scenes = [maker.draw(random_stream(1, "scene", str(step), str(item))) for item in range(size)]
        n_steps = len(scenes[0].samples) // round(ONSET_STEP_SEC * SAMPLE_RATE_HZ)
        targets = [onset_targets(scene, n_steps, ONSET_STEP_SEC) for scene in scenes]
        yield Batch(
            torch.from_numpy(np.stack([s.samples for s in scenes])), torch.from_numpy(np.stack(targets))
        )
        step += 1


def onset_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy; onsets are rare, so that they count more."""
    each = functional.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    weights = 1 + ONSET_WEIGHT * targets
    return (each * weights).sum() / targets.sum().clamp_min(1.0)


def learning_rate(step: int, n_steps: int) -> float:
    """Rise for some steps, then fall along a cosine."""
    return (
        LEARNING_RATE * min(1.0, (step + 1) / WARM_UP) * (0.505 + 0.495 * math.cos(math.pi * step / n_steps))
    )


def train(maker: SceneMaker, run: Path, n_steps: int, batch_size: int) -> None:
    torch.manual_seed(0)
    network = OnsetNetwork().to(memory_format=torch.channels_last)
    average = torch.optim.swa_utils.AveragedModel(
        network, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.995), use_buffers=True
    )
    optimiser = torch.optim.AdamW(network.parameters(), LEARNING_RATE, weight_decay=1e-4)
    run.mkdir(parents=True, exist_ok=True)
    last, first = run / "last.pt", 0
    if last.exists():
        saved = torch.load(last, weights_only=True)
        first = saved["step"]
        for part, name in ((network, "network"), (average, "average"), (optimiser, "optimiser")):
            part.load_state_dict(saved[name])
    recent = []
    for step, batch in enumerate(batches(maker, batch_size, first), start=first):
        if step >= n_steps:
            break
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(step, n_steps)
        loss = onset_loss(network(batch.waveforms), batch.targets)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 2.0)
        optimiser.step()
        average.update_parameters(network)
        recent.append(loss.item())
        if (step + 1) % 20 == 0:
            print(f"step {step + 1}: loss {np.mean(recent[-20:]):.3f}", flush=True)
        if (step + 1) % 50 == 0 or step + 1 == n_steps:
            content = {
                "step": step + 1,
                "network": network.state_dict(),
                "average": average.state_dict(),
                "optimiser": optimiser.state_dict(),
            }
            torch.save(content, run / "part.pt")
            (run / "part.pt").replace(last)


def load_network(run: Path) -> OnsetNetwork:
    """Return the network with the running average of its weights."""
    network = OnsetNetwork()
    average = torch.optim.swa_utils.AveragedModel(network, use_buffers=True)
    average.load_state_dict(torch.load(run / "last.pt", weights_only=True)["average"])
    module: OnsetNetwork = average.module.eval()
    return module


@torch.no_grad()
def measure(maker: SceneMaker, network: OnsetNetwork, n_scenes: int) -> None:
    scenes = [maker.draw(random_stream(2, "measured", str(number))) for number in range(n_scenes)]
    heard = [torch.sigmoid(network(torch.from_numpy(s.samples[None])))[0].numpy() for s in scenes]
    print(
        "| onsets of unheard instruments | precision | recall | F | median distance, ms |\n"
        + "|"
        + " --- |" * 5
    )
    best = max((found(heard, scenes, level) for level in np.linspace(0.05, 0.95, 19)), key=lambda row: row[2])
    print(f"| network | {best[0]:.3f} | {best[1]:.3f} | {best[2]:.3f} | {best[3]:.1f} |")


def found(maps: list[Float32], scenes: list[Scene], level: float) -> tuple[float, float, float, float]:
    """Return precision, recall, F and the median distance in ms of peaks above a level."""
    n_peaks = n_right = n_onsets = 0
    distances = []
    for activation, scene in zip(maps, scenes, strict=True):
        inner = activation[1:-1]
        is_peak = (inner > activation[:-2]) & (inner >= activation[2:]) & (inner > level)
        step, key = np.nonzero(is_peak)
        place, pitch = step + 1.5, key + 21
        n_peaks += len(place)
        for onset_sec, wanted in zip(scene.onset_sec, scene.pitch, strict=True):
            n_onsets += 1
            away = np.abs(place[pitch == wanted] - onset_sec / ONSET_STEP_SEC)
            if len(away) and away.min() <= NEAR_STEPS:
                n_right += 1
                distances.append(float(away.min()))
    precision, recall = n_right / max(n_peaks, 1), n_right / max(n_onsets, 1)
    score = 2 * precision * recall / max(precision + recall, 1e-9)
    return precision, recall, score, 1000 * ONSET_STEP_SEC * float(np.median(distances or [np.nan]))


if __name__ == "__main__":
    main()
