"""Fit the network that reads notes off staves, and put it into the package.

    python benchmarks/fit_reading_network.py strips STRIPS [--songs 240] [--quartets 10] [--textures 240]
    python benchmarks/fit_reading_network.py train STRIPS RUN [--steps 2000] [--begin-with RUN] [--printed 0.4]
    python benchmarks/fit_reading_network.py measure STRIPS RUN
    python benchmarks/fit_reading_network.py export RUN

`strips` engraves songs and quartets of the training and validation splits, and piano textures made by rule, in
five fonts and many sizes, and cuts their staves out; an interrupted run goes on where it was. `train` learns from
them, worn like scans; RUN keeps `last.pt`, from which an interrupted run goes on; `--begin-with` takes over the
weights of another run, and `--printed` gives a share of the strips the defects of old prints. `measure` says how
many notes of the validation pieces are read. `export` writes `fusili_mir/hearing/reading.onnx`; the law of timing
is to be fitted anew after that (`fit_decoder.py law`, `certainty` and `piece`).
"""

from __future__ import annotations

import argparse
import math
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from fusili_export.reading_graph import reading_graph_bytes
from fusili_export.shipped_networks import save_network
from fusili_mir.errors import FusiliError
from fusili_mir.hearing.note_reading import ALTERATIONS, COLUMN_PX, N_MIDDLES, N_ROWS, ReadStaff
from fusili_mir.pages.engraving import EngravingOptions
from fusili_mir.pages.pages import render_pages
from fusili_training.notation.written_textures import write_texture
from fusili_training.random_streams import random_stream
from fusili_training.reading.labelled_strips import HEAD_DTYPE, LabelledStrip, label_strips, print_strip
from fusili_training.reading.reading_network import ReadingNetwork
from fusili_training.rendering.corpus import list_corpus, select_pieces
from fusili_training.rendering.degrade import Degradation, DegradationLimits
from fusili_training.rendering.print_defects import DefectLimits
from fusili_training.splits import stable_fraction

FONTS = ("Leipzig", "Bravura", "Leland", "Gootville", "Petaluma")
WEAR = DegradationLimits(
    rotation_deg=0.12, ink=0.3, light=0.4, paper=0.2, blur_px=0.8, noise=0.06, jpeg_loss=45
)
WORN_SHARE = 0.7
PRINT = DefectLimits()
MOST_SHIFT_PX = 1  # of a strip: staves are not located better
VALID_SHARE = 0.08
TEXTURE_MEASURES, OCTAVE_LINES = 14, 0.12
BATCH_SIZE, LEARNING_RATE, WARM_UP, WIDEST_PX = 16, 3e-3, 60, 1200
HEAD_WEIGHT = 2.0  # of a cell with a head, beside one without
SURE = 0.5
LICENCE = "CC0-1.0"
TRAINED_ON = (
    "engraved staves of songs and quartets (OpenScore, CC0, training split) and textures made by rule"
)


@dataclass(frozen=True)
class Batch:
    """Strips (B, 128, width); cells (B, C, 33): 1 a head, 0 none, -1 beside one; heads, and the strip of each."""

    strips: Tensor
    cells: Tensor
    strip: Tensor
    heads: dict[str, Tensor]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=("strips", "train", "measure", "export"))
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path, nargs="?")
    parser.add_argument("--corpus", type=Path, default=Path("../shared/data"))
    parser.add_argument("--songs", type=int, default=240)
    parser.add_argument("--quartets", type=int, default=10)
    parser.add_argument("--textures", type=int, default=240)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--rate", type=float, default=LEARNING_RATE)
    parser.add_argument("--begin-with", type=Path, metavar="RUN")
    parser.add_argument("--printed", type=float, default=0.0, help="share of strips like old prints")
    arguments = parser.parse_args()
    if not 0 <= arguments.printed <= 1:
        parser.error(f"--printed is {arguments.printed}; expected 0 to 1")
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(0)
    if arguments.task == "strips":
        cut_strips(arguments)
        return
    if arguments.second is None and arguments.task != "export":
        parser.error(f"{arguments.task} needs two folders")
    if arguments.task == "train":
        network, steps_before = ReadingNetwork(), 0
        if arguments.begin_with:
            network, steps_before = load_network(arguments.begin_with), steps_in_all(arguments.begin_with)
        strips = read_strips(arguments.first, "train")
        schedule = Schedule(arguments.steps, arguments.rate, steps_before)
        train(network, strips, arguments.second, schedule, arguments.printed)
    elif arguments.task == "measure":
        measure(arguments.first, load_network(arguments.second))
    else:
        graph = reading_graph_bytes(load_network(arguments.first))
        origin = {
            "trained_on": TRAINED_ON,
            "steps": steps_in_all(arguments.first),
            "batch_size": BATCH_SIZE,
        }
        save_network("reading", graph, LICENCE, origin)


def cut_strips(arguments: argparse.Namespace) -> None:
    arguments.first.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for split, name, score in pieces(arguments, Path(folder)):
            out = arguments.first / f"{split}-{name}.npz"
            if out.exists():
                continue
            try:
                strips = list(
                    label_strips(render_pages(score, draw_layout(random_stream(0, "layout", name))))
                )
            except FusiliError as error:
                print(f"left out: {error}")
                continue
            arrays = {f"image{n}": strip.image for n, strip in enumerate(strips)}
            arrays |= {f"heads{n}": strip.heads for n, strip in enumerate(strips)}
            beside = out.with_suffix(".part.npz")
            np.savez_compressed(beside, **arrays)
            beside.replace(out)
            print(f"{out.name}: {len(strips)} strips", flush=True)


def pieces(arguments: argparse.Namespace, folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield split, name and file of each piece, kinds taking turns, so that a part of them is a fair sample."""
    chosen = []
    for kind, number in (("openscore_lieder", arguments.songs), ("openscore_quartets", arguments.quartets)):
        for split, wanted in (("train", number), ("valid", round(number * VALID_SHARE))):
            listed = select_pieces(list_corpus(arguments.corpus), ["CC0-1.0"], [split], f"*{kind}*")
            by_size = kind == "openscore_quartets"  # the shortest: they are long
            listed.sort(key=lambda piece: piece.file.stat().st_size if by_size else stable_fraction(piece.id))
            chosen += [(split, piece.id.replace(":", "_"), piece.file) for piece in listed[:wanted]]
    for split, wanted in (("train", arguments.textures), ("valid", round(arguments.textures * VALID_SHARE))):
        for place in range(wanted):
            name = f"texture-{split}-{place:03d}"
            file = folder / f"{name}.musicxml"
            file.write_bytes(write_texture(TEXTURE_MEASURES, random_stream(0, name), 7, OCTAVE_LINES))
            chosen.append((split, name, file))
    yield from sorted(chosen, key=lambda piece: stable_fraction(piece[1]))


def draw_layout(rng: np.random.Generator) -> EngravingOptions:
    return EngravingOptions(
        font=FONTS[rng.integers(len(FONTS))],
        staff_space_px=float(rng.uniform(6.0, 14.0)),
        spacing_linear=float(rng.uniform(0.15, 0.35)),
        spacing_nonlinear=float(rng.uniform(0.4, 0.7)),
        spacing_staff=int(rng.integers(6, 14)),
    )


def read_strips(folder: Path, split: str) -> list[LabelledStrip]:
    """Read all strips of a split, or of a kind in it ("valid-texture"), that have a head."""
    strips = []
    for file in sorted(folder.glob(f"{split}*.npz")):
        with np.load(file) as arrays:
            for number in range(len(arrays.files) // 2):
                heads = arrays[f"heads{number}"].astype(HEAD_DTYPE)
                if len(heads):
                    strips.append(LabelledStrip(arrays[f"image{number}"], heads))
    return strips


def draw_batch(strips: list[LabelledStrip], rng: np.random.Generator, printed: float = 0.0) -> Batch:
    """Draw strips of about the same width, worn like scans, and a share of them like old prints."""
    widths = [strip.image.shape[1] for strip in strips]
    wanted, *others = rng.integers(len(strips), size=1 + 3 * BATCH_SIZE).tolist()
    others.sort(key=lambda other: abs(widths[other] - widths[wanted]))
    chosen = [strips[other] for other in others[: BATCH_SIZE + 1]]
    for place, (strip, back) in enumerate(pairwise(chosen)):
        if printed and rng.uniform() < printed:
            chosen[place] = print_strip(narrow(strip), PRINT, rng, back)
    return as_batch([worn(strip, rng) for strip in chosen[:BATCH_SIZE]])


def narrow(strip: LabelledStrip) -> LabelledStrip:
    image = strip.image[:, :WIDEST_PX]
    return LabelledStrip(image, strip.heads[strip.heads["column"] < image.shape[1] // COLUMN_PX])


def worn(strip: LabelledStrip, rng: np.random.Generator) -> LabelledStrip:
    shown = narrow(strip)
    image = shown.image
    if rng.uniform() < WORN_SHARE:
        image = Degradation.draw_within(WEAR, rng).apply(image, rng)
    shift = int(rng.integers(-MOST_SHIFT_PX, MOST_SHIFT_PX + 1))
    return LabelledStrip(np.roll(image, shift, axis=0), shown.heads)


def as_batch(strips: list[LabelledStrip]) -> Batch:
    width = max(-(-strip.image.shape[1] // COLUMN_PX) * COLUMN_PX for strip in strips)
    images = np.ones((len(strips), strips[0].image.shape[0], width), np.float32)
    cells = np.zeros((len(strips), width // COLUMN_PX, N_ROWS), np.float32)
    for number, strip in enumerate(strips):
        images[number, :, : strip.image.shape[1]] = strip.image / np.float32(255)
        column, row = strip.heads["column"], strip.heads["row"]
        for beside in (-1, 1):
            inside = (column + beside >= 0) & (column + beside < cells.shape[1])
            cells[number, column[inside] + beside, row[inside]] = -1
        cells[number, column, row] = 1
    heads = np.concatenate([strip.heads for strip in strips])
    owner = np.repeat(np.arange(len(strips)), [len(strip.heads) for strip in strips])
    return Batch(
        torch.from_numpy(images),
        torch.from_numpy(cells),
        torch.from_numpy(owner),
        {name: torch.from_numpy(heads[name].astype(np.int64)) for name in HEAD_DTYPE.names or ()},
    )


def reading_loss(network: ReadingNetwork, batch: Batch) -> tuple[Tensor, list[float]]:
    heads, struck, middles, alterations = network(batch.strips)
    counted = batch.cells >= 0
    weights = 1 + (HEAD_WEIGHT - 1) * batch.cells.clamp_min(0)
    of_cells = functional.binary_cross_entropy_with_logits(heads, batch.cells.clamp_min(0), reduction="none")
    n_heads = max(len(batch.strip), 1)
    parts = [(of_cells * weights * counted).sum() / n_heads]
    place = (batch.strip, batch.heads["column"])
    cell = (*place, batch.heads["row"])
    parts.append(functional.cross_entropy(middles[place], batch.heads["middle"]))
    parts.append(functional.cross_entropy(alterations[cell], batch.heads["alteration"]))
    parts.append(functional.binary_cross_entropy_with_logits(struck[cell], batch.heads["is_struck"].float()))
    return torch.stack(parts).sum(), [float(part.detach()) for part in parts]


def learning_rate(step: int, n_steps: int, highest: float) -> float:
    """Rise for some steps, then fall along a cosine."""
    fall = 0.505 + 0.495 * math.cos(math.pi * step / n_steps)
    return highest * min(1.0, (step + 1) / WARM_UP) * fall


@dataclass(frozen=True)
class Schedule:
    n_steps: int
    rate: float
    steps_before: int  # of the run that this one began with


def train(
    network: ReadingNetwork, strips: list[LabelledStrip], run: Path, schedule: Schedule, printed: float
) -> None:
    n_steps, rate, steps_before = schedule.n_steps, schedule.rate, schedule.steps_before
    print(f"{len(strips)} strips, {sum(len(strip.heads) for strip in strips)} heads", flush=True)
    network = network.train().to(memory_format=torch.channels_last)
    average = torch.optim.swa_utils.AveragedModel(
        network, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99), use_buffers=True
    )
    optimiser = torch.optim.AdamW(network.parameters(), rate, weight_decay=1e-3)
    run.mkdir(parents=True, exist_ok=True)
    last, first = run / "last.pt", 0
    if last.exists():
        saved = torch.load(last, weights_only=True)
        first = saved["step"]
        for part, name in ((network, "network"), (average, "average"), (optimiser, "optimiser")):
            part.load_state_dict(saved[name])
    recent: list[list[float]] = []
    for step in range(first, n_steps):
        batch = draw_batch(strips, random_stream(1, "batch", str(step)), printed)
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(step, n_steps, rate)
        loss, parts = reading_loss(network, batch)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 2.0)
        optimiser.step()
        average.update_parameters(network)
        recent.append(parts)
        if (step + 1) % 20 == 0:
            means = " ".join(f"{value:.3f}" for value in np.mean(recent[-20:], axis=0))
            print(f"step {step + 1}: heads, middles, alterations, struck {means}", flush=True)
        if (step + 1) % 100 == 0 or step + 1 == n_steps:
            content = {
                "step": step + 1,
                "steps_in_all": steps_before + step + 1,
                "network": network.state_dict(),
                "average": average.state_dict(),
                "optimiser": optimiser.state_dict(),
            }
            torch.save(content, run / "part.pt")
            (run / "part.pt").replace(last)


def steps_in_all(run: Path) -> int:
    """Return the number of steps of a run, and of those that it began with."""
    return int(torch.load(run / "last.pt", weights_only=True)["steps_in_all"])


def load_network(run: Path) -> ReadingNetwork:
    """Return the network with the running average of its weights."""
    network = ReadingNetwork()
    average = torch.optim.swa_utils.AveragedModel(network, use_buffers=True)
    average.load_state_dict(torch.load(run / "last.pt", weights_only=True)["average"])
    module: ReadingNetwork = average.module.eval()
    return module


@torch.no_grad()
def measure(folder: Path, network: ReadingNetwork) -> None:
    """Print how many notes of the validation pieces are read, by kind, clean and worn."""
    print("| staves | struck notes | read | read that are not there | clefs right |")
    print("|" + " --- |" * 5)
    for kind, pattern in (("songs", "valid-lc"), ("quartets", "valid-sq"), ("textures", "valid-texture")):
        strips = read_strips(folder, pattern)
        for condition in ("clean", "worn", "printed and worn") if strips else ():
            rng = random_stream(2, kind)
            counts = np.zeros(5, np.int64)
            for place, strip in enumerate(strips):
                shown = strip
                if condition == "printed and worn":
                    shown = print_strip(narrow(strip), PRINT, rng, strips[place - 1])
                if condition != "clean":
                    shown = worn(shown, rng)
                counts += count_notes(shown, network)
            n_notes, n_read, n_false, n_heads, n_clefs = counts.tolist()
            found = f"{n_read / n_notes:.4f} | {n_false / max(n_read + n_false, 1):.4f}"
            print(f"| {kind}, {condition} | {n_notes} | {found} | {n_clefs / n_heads:.4f} |", flush=True)


def count_notes(strip: LabelledStrip, network: ReadingNetwork) -> np.ndarray:
    """Count notes that are struck, those read in their place, others, heads, and heads whose clef is right."""
    batch = as_batch([strip])
    outputs = [output.numpy() for output in network(batch.strips)]
    pitches = ReadStaff.from_logits(*outputs).pitches()
    heads = strip.heads
    clefs_right = outputs[2][0, heads["column"]].argmax(axis=1) == heads["middle"]
    one = np.zeros((1, len(pitches), N_ROWS), np.float32)
    struck = heads[heads["is_struck"]]
    one[0, struck["column"], struck["row"]] = 1
    sure = np.zeros((1, len(pitches), N_MIDDLES), np.float32)
    sure[0, struck["column"], struck["middle"]] = 1
    altered = np.zeros((1, len(pitches), N_ROWS, len(ALTERATIONS)), np.float32)
    altered[0, struck["column"], struck["row"], struck["alteration"]] = 1
    true = ReadStaff(one, sure, altered).pitches() > SURE
    read = pitches > SURE
    near_true, near_read = (_spread(each) for each in (true, read))
    begins = read & ~np.pad(read, ((1, 0), (0, 0)))[:-1]  # adjacent columns are one note
    return np.array(
        [true.sum(), (true & near_read).sum(), (begins & ~near_true).sum(), len(heads), clefs_right.sum()]
    )


def _spread(cells: np.ndarray) -> np.ndarray:
    """Mark the columns beside marked ones, too."""
    padded = np.pad(cells, ((1, 1), (0, 0)))
    return np.asarray(padded[:-2] | padded[1:-1] | padded[2:])


if __name__ == "__main__":
    main()
