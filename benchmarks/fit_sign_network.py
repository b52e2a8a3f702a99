"""Fit the two small networks that read bar lines and endings on page images.

    python benchmarks/fit_sign_network.py OUT.npz [--corpus ../shared/data] [--pieces 400] [--steps 3000 3000]

OUT.npz goes to `fusili_mir/pages/sign_network.npz`. Songs and quartets of the training split (CC0) are engraved
in five fonts, with bar lines of all kinds and endings at random places, degraded, and cut into strips; both
networks see variations of them, with numbers in other typefaces. It takes less than an hour of one core. With 0
steps, a network stays as it ships: the bar lines of today are from `--steps 3000 0`, with pages as they were
drawn then, the endings from `--steps 0 6000 --seed 1`, with `--examples` of seed 0. `benchmarks/bar_lines.py`
measures the result on other pieces.
"""

from __future__ import annotations

import argparse
import csv
import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

import fusili_mir.pages
from find_systems import FONTS, LAYOUTS, keep_parts
from fusili_benchmarks.engraved_bar_lines import with_random_repeats
from fusili_benchmarks.sign_augmentation import crowd_bar_lines, draw_brackets, redraw_bar_lines, vary
from fusili_benchmarks.sign_examples import SignExample, sign_examples
from fusili_mir.arrays import GreyImage
from fusili_mir.errors import FusiliError
from fusili_mir.pages.engraving import EngravingOptions, engrave
from fusili_mir.pages.sign_network import (
    BAR_LINE_CLASSES,
    BAR_LINE_COLUMN_PX,
    ENDING_CLASSES,
    ENDING_COLUMN_PX,
)
from fusili_mir.scores.score_file import read_score_file

BATCH = 8
BAR_LINE_WIDTH_PX, ENDING_WIDTH_PX = 320, 448
DRAWN_ENDINGS = (
    0.65  # share of windows without endings in which some are drawn, as LilyPond and old prints do
)
IGNORED = -100
MOST_MEASURES = 90  # longer songs take long to engrave


class BarLineNetwork(nn.Module):
    """Staves -> columns of 2 pixels; what all staves of a system agree on counts."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            (
                nn.Conv2d(1, 12, 5, stride=(2, 1), padding=2),
                nn.Conv2d(12, 24, 3, stride=(2, 2), padding=1),
                nn.Conv2d(24, 32, 3, stride=(2, 1), padding=1),
                nn.Conv1d(320, 48, 3, padding=1),
                nn.Conv1d(96, 48, 7, padding=3),
                nn.Conv1d(48, len(BAR_LINE_CLASSES), 5, padding=2),
            )
        )

    def forward(self, staves: Tensor, system: Tensor, n_systems: int) -> Tensor:
        x = staves
        for layer in self.layers[:3]:
            x = torch.relu(layer(x))
        x = torch.relu(self.layers[3](x.flatten(1, 2)))
        index = system[:, None, None].expand_as(x)
        empty = torch.zeros(n_systems, *x.shape[1:])
        pooled = [empty.scatter_reduce(0, index, x, how, include_self=False) for how in ("mean", "amin")]
        out: Tensor = self.layers[5](torch.relu(self.layers[4](torch.cat(pooled, 1))))
        return out


class EndingNetwork(nn.Module):
    """What is above the first staff -> columns of 4 pixels, wherever the bracket is above the staff."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            (
                nn.Conv2d(1, 12, 5, stride=(2, 2), padding=2),
                nn.Conv2d(12, 24, 3, stride=(2, 2), padding=1),
                nn.Conv2d(24, 32, 3, padding=1),
                nn.Conv2d(32, 48, 3, padding=1),
                nn.Conv1d(48, 48, 9, padding=4),
                nn.Conv1d(48, len(ENDING_CLASSES) + 1, 5, padding=2),
            )
        )

    def forward(self, above: Tensor) -> Tensor:
        x = above
        for layer in self.layers[:4]:
            x = torch.relu(layer(x))
        out: Tensor = self.layers[5](torch.relu(self.layers[4](x.amax(2))))
        return out


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--corpus", type=Path, default=Path("../shared/data"))
    parser.add_argument("--pieces", type=int, default=400)
    parser.add_argument("--steps", type=int, nargs=2, default=(3000, 3000), help="bar lines, endings")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--examples", type=Path, help="file to keep the engraved systems in, for the next time"
    )
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    torch.set_num_threads(1)
    examples = kept_examples(arguments)
    print(f"{len(examples)} systems")
    # Streams of their own, so that kept examples lead to the same weights as fresh ones.
    for_bar_lines, for_endings = (np.random.default_rng([arguments.seed, number]) for number in (1, 2))
    bar_lines, endings = BarLineNetwork(), EndingNetwork()
    n_bar_line_steps, n_ending_steps = arguments.steps
    weights = shipped_weights()
    if n_bar_line_steps:
        fit(bar_lines, lambda: bar_line_loss(bar_lines, examples, for_bar_lines), n_bar_line_steps)
        weights |= weights_of("bar_lines", bar_lines)
    if n_ending_steps:
        with_endings = [example for example in examples if example.endings]
        fit(endings, lambda: ending_loss(endings, examples, with_endings, for_endings), n_ending_steps)
        weights |= weights_of("endings", endings)
    np.savez_compressed(arguments.out, **weights)


def shipped_weights() -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    with np.load(Path(fusili_mir.pages.__file__).with_name("sign_network.npz")) as shipped:
        return dict(shipped)


def weights_of(name: str, network: BarLineNetwork | EndingNetwork) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    weights = {}
    for number, layer in enumerate(network.layers, start=1):
        weights[f"{name}.{number}.weight"] = layer.weight.detach().numpy().astype(np.float16)
        weights[f"{name}.{number}.bias"] = layer.bias.detach().numpy()
    return weights


def kept_examples(arguments: argparse.Namespace) -> list[SignExample]:
    """Engrave the examples, or read those of the last time."""
    if arguments.examples is not None and arguments.examples.exists():
        with arguments.examples.open("rb") as file:
            kept: list[SignExample] = pickle.load(file)
        return kept
    rng = np.random.default_rng(arguments.seed)
    examples = list(engraved_examples(arguments.corpus, arguments.pieces, rng))
    if arguments.examples is not None:
        with arguments.examples.open("wb") as file:
            pickle.dump(examples, file)
    return examples


def engraved_examples(corpus: Path, n_pieces: int, rng: np.random.Generator) -> Iterator[SignExample]:
    with (corpus / "manifest.csv").open() as manifest:
        rows = [r for r in csv.DictReader(manifest) if r["format"] == "mxl" and r["split"] == "train"]
    songs = [r for r in rows if "lieder" in r["file"] and int(r["measures"] or 999) < MOST_MEASURES]
    quartets = sorted(
        (r for r in rows if "quartets" in r["file"]), key=lambda r: (corpus / r["file"]).stat().st_size
    )[:6]
    for number in range(n_pieces):
        layout = LAYOUTS[number % len(LAYOUTS)]
        pieces = quartets if layout == "quartet" and number % 3 == 0 else songs
        row = pieces[int(rng.integers(len(pieces)))]
        options = EngravingOptions(
            font=FONTS[number % len(FONTS)],
            staff_space_px=float(np.exp(rng.uniform(np.log(4.8), np.log(16)))),
            staff_height_mm=float(rng.uniform(5, 9)),
            spacing_linear=float(rng.uniform(0.15, 0.4)),
            spacing_nonlinear=float(rng.uniform(0.5, 0.7)),
        )
        try:
            score_file = keep_parts(read_score_file(corpus / row["file"]), layout)
            if rng.uniform() < 0.85:
                score_file = with_random_repeats(score_file, rng, float(rng.uniform(0.2, 0.6)))
            yield from sign_examples(engrave(score_file, options), rng)
        except FusiliError as error:
            print(f"{row['file']} as {layout}: {error}")


def fit(network: nn.Module, loss_of_batch, n_steps: int) -> None:  # type: ignore[no-untyped-def]
    optimiser = torch.optim.AdamW(network.parameters(), 4e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 4e-3, total_steps=n_steps)
    recent = []
    for step in range(1, n_steps + 1):
        loss = loss_of_batch()
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimiser.step()
        schedule.step()
        recent.append(loss.item())
        if step % 100 == 0:
            print(f"step {step}: loss {np.mean(recent[-100:]):.4f}", flush=True)


def bar_line_loss(network: BarLineNetwork, examples: list[SignExample], rng: np.random.Generator) -> Tensor:
    strips, owner, targets = [], [], []
    n_columns = BAR_LINE_WIDTH_PX // BAR_LINE_COLUMN_PX
    for number in range(BATCH):
        example = examples[int(rng.integers(len(examples)))]
        cut, left = _window(example.strips, BAR_LINE_WIDTH_PX, rng)
        cut, bar_lines = redraw_bar_lines(cut, [(x - left, kind) for x, kind in example.bar_lines], rng)
        cut, bar_lines = crowd_bar_lines(cut, bar_lines, rng)
        target = np.zeros(n_columns, np.int64)
        for x, kind in bar_lines:
            distance = np.abs(np.arange(n_columns) + 0.5 - x / BAR_LINE_COLUMN_PX)
            target[(distance < 3) & (target == 0)] = IGNORED
            target[distance <= 1.01] = BAR_LINE_CLASSES.index(kind)
        strips.append(vary(cut, rng))
        owner += [number] * len(cut)
        targets.append(target)
    staves = torch.from_numpy(np.concatenate(strips))[:, None]
    return _per_sign(network(staves, torch.tensor(owner), BATCH), targets)


def ending_loss(
    network: EndingNetwork,
    examples: list[SignExample],
    with_endings: list[SignExample],
    rng: np.random.Generator,
) -> Tensor:
    strips, targets, covered = [], [], []
    columns = np.arange(ENDING_WIDTH_PX // ENDING_COLUMN_PX) + 0.5
    for _ in range(BATCH):
        pool = with_endings if rng.uniform() < 0.6 else examples
        example = pool[int(rng.integers(len(pool)))]
        cut, left = _window(example.above[None], ENDING_WIDTH_PX, rng)
        brackets = [(x0 - left, x1 - left, numbers) for x0, x1, numbers in example.endings]
        if rng.uniform() < DRAWN_ENDINGS:
            drawn, brackets = draw_brackets(cut[0], brackets, rng)
            cut = drawn[None]
        target, inside = np.zeros(len(columns), np.int64), np.zeros(len(columns), np.float32)
        for x0, x1, numbers in brackets:
            first, last = (x / ENDING_COLUMN_PX for x in (x0, x1))
            inside[(columns > first) & (columns < last)] = 1
            target[(np.abs(columns - first) < 2.6) & (target == 0)] = IGNORED
            known = numbers if numbers in ENDING_CLASSES else ()
            target[(columns > first - 0.6) & (columns < first + 1.5)] = ENDING_CLASSES.index(known)
        strips.append(vary(cut, rng))
        targets.append(target)
        covered.append(inside)
    out = network(torch.from_numpy(np.stack(strips)))
    overhead = functional.binary_cross_entropy_with_logits(out[:, -1], torch.from_numpy(np.stack(covered)))
    return _per_sign(out[:, :-1], targets) + 2 * overhead


def _per_sign(out: Tensor, targets: list[np.ndarray]) -> Tensor:
    target = torch.from_numpy(np.stack(targets))
    total = functional.cross_entropy(out, target, ignore_index=IGNORED, reduction="sum")
    return total / max(1, int((target > 0).sum()))


def _window(strips: GreyImage, width_px: int, rng: np.random.Generator) -> tuple[GreyImage, int]:
    """Cut a window at random, which may reach a little beyond the strips; return it and its left edge."""
    width = strips.shape[2]
    left = int(rng.integers(-40, max(width - width_px + 40, -39)))
    window = np.full((*strips.shape[:2], width_px), 255, np.uint8)
    first, stop = max(left, 0), min(left + width_px, width)
    window[:, :, first - left : stop - left] = strips[:, :, first:stop]
    return window, left


if __name__ == "__main__":
    main()
