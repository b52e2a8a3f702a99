"""The exported graphs against the checkpoint: time, agreement, size, and the size of an installation.

Usage: python benchmarks/export.py [--backbones clip-clap small] [--batches 1 8] [--threads 1 2] [--repeats 3]

The weights are random. torch eager, onnxruntime fp32 and onnxruntime int8 take turns in one process on the same
batch. With one thread, the figure is the smallest CPU time of all repeats, which other processes hardly affect;
with several threads, it is the smallest wall-clock time. Ratios are torch's time divided by that of the graph:
above 1, the graph is faster. Cosines are means over the embeddings of the batch, local and global. The size of an
installation is that of the packages in this environment.
"""

import argparse
import time
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import torch
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from torch import nn

from fusili_export.graphs import trace_graph
from fusili_export.parity_inputs import audio_cases, image_cases
from fusili_export.precision import quantise_graph
from fusili_export.specs import audio_spec, image_spec
from fusili_export.wrappers import TowerGraph
from fusili_mir.arrays import Float32
from fusili_mir.model.bundle import AudioSpec, ImageSpec
from fusili_mir.sessions.graph_session import open_session
from fusili_training.model.model import FusiliModel, ModelOptions

CLIP_SEC = 10.0

Run = Callable[[Float32], list[Float32]]


def lively_model(backbone: str) -> FusiliModel:
    """Build a full-size model whose blocks, which start as the identity, have random weights."""
    torch.manual_seed(0)
    model = FusiliModel(ModelOptions(backbone)).eval()
    if backbone == "small":
        for layer in model.modules():
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
    return model


def make_batch(spec: ImageSpec | AudioSpec, batch: int) -> Float32:
    """Repeat engraved segments, or 10 s of chords and noise."""
    if isinstance(spec, ImageSpec):
        images = next(case.inputs for case in image_cases(spec) if case.kind == "engraved")
        return np.resize(images, (batch, *images.shape[1:]))
    n_samples = round(CLIP_SEC * spec.sample_rate_hz)
    chords = next(case.inputs for case in audio_cases(spec) if case.kind == "chords")
    noise = np.random.default_rng(0).standard_normal((batch, n_samples), dtype=np.float32)
    return np.resize(chords, (batch, n_samples)) + np.float32(0.01) * noise


def run_torch(tower: TowerGraph) -> Run:
    def run(batch: Float32) -> list[Float32]:
        with torch.inference_mode():
            return [output.numpy() for output in tower(torch.from_numpy(batch))]

    return run


def measure(
    backbone: str, tower: TowerGraph, spec: ImageSpec | AudioSpec, options: argparse.Namespace
) -> None:
    graphs = {"fp32": trace_graph(tower, spec)}
    graphs["int8"] = quantise_graph(graphs["fp32"])
    names = [spec.local_output, spec.global_output]
    for n_threads in options.threads:
        torch.set_num_threads(n_threads)
        clock = time.process_time if n_threads == 1 else time.perf_counter
        ways: dict[str, Run] = {"torch": run_torch(tower)}
        load_sec = {}
        for precision, graph in graphs.items():
            start = clock()
            session = open_session(graph, "cpu", n_threads)
            load_sec[precision] = clock() - start
            ways[precision] = lambda batch, session=session: session.run(spec.input, batch, names)  # type: ignore[misc]
        for batch_size in options.batches:
            batch = make_batch(spec, batch_size)
            outputs = {
                way: run(batch) for way, run in ways.items()
            }  # includes the first call, which is slower
            least_sec = dict.fromkeys(ways, float("inf"))
            for _ in range(options.repeats):
                for way, run in ways.items():
                    start = clock()
                    run(batch)
                    least_sec[way] = min(least_sec[way], clock() - start)
            for precision, graph in graphs.items():
                cosines = [
                    (found * expected).sum(axis=-1).mean()
                    for found, expected in zip(outputs[precision], outputs["torch"], strict=True)
                ]
                print(
                    f"| {backbone} | {spec.graph} | {precision} | {n_threads} | {batch_size}"
                    f" | {1000 * least_sec['torch']:.0f} | {1000 * least_sec[precision]:.0f}"
                    f" | {least_sec['torch'] / least_sec[precision]:.2f} | {cosines[0]:.5f} / {cosines[1]:.5f}"
                    f" | {len(graph) / 1e6:.1f} | {load_sec[precision]:.2f} |",
                    flush=True,
                )


def installed_mb(extra: str) -> float:
    """Return the size of all packages that fusili-mir with an extra requires, as installed here."""
    seen: set[str] = set()
    open_requirements = [("fusili-mir", extra)]
    total = 0
    while open_requirements:
        name, extras = open_requirements.pop()
        if (key := canonicalize_name(name)) in seen:
            continue
        seen.add(key)
        package = distribution(name)
        for text in package.requires or []:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extras}):
                open_requirements.append((requirement.name, ",".join(requirement.extras)))
        paths = [Path(str(file.locate())) for file in package.files or []]
        total += sum(path.stat().st_size for path in paths if path.is_file())
    return total / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backbones", nargs="+", default=["clip-clap", "small"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print(
        "| model | graph | precision | threads | batch | torch ms | graph ms | ratio | cosine | MB | load s |"
    )
    print("| --- " * 11 + "|")
    for backbone in options.backbones:
        model = lively_model(backbone)
        measure(backbone, TowerGraph(model, "image", "local"), image_spec(model.image), options)
        measure(backbone, TowerGraph(model, "audio", "local"), audio_spec(model.audio), options)
    print()
    print("| installation | MB |")
    print("| --- | --- |")
    for extra in ("cpu", "export"):
        print(f"| fusili-mir[{extra}] | {installed_mb(extra):.0f} |")


if __name__ == "__main__":
    main()
