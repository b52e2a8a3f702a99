"""What is fuzzed besides single files: folders with one damaged file, names, and the way to the results."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import soundfile
import torch
from PIL import Image

from fusili_benchmarks.fuzzed_reader import FuzzedReader
from fusili_mir.alignment.aligning import align_recording
from fusili_mir.audio.recording import open_recording
from fusili_mir.collection.building import build_index
from fusili_mir.collection.index import open_index
from fusili_mir.collection.kinds import KINDS
from fusili_mir.model.bundle import default_bundle, load_bundle
from fusili_mir.model.encoder import Encoder
from fusili_mir.output.alignment_files import save_alignment
from fusili_mir.pages.pages import open_pages
from fusili_mir.viewer.view_reading import read_view
from fusili_training.data.shard_folder import ShardFolder
from fusili_training.loop.checkpoint import Checkpoint, Progress, load_trained_model, save_checkpoint
from fusili_training.loop.recipe_files import read_recipe
from fusili_training.model.model import FusiliModel
from fusili_training.rendering.pair_segments import Sample
from fusili_training.rendering.render_recipe import RenderRecipe, load_render_recipe
from fusili_training.rendering.shards import sidecar_of, write_json, write_shard

__all__ = ["folder_readers"]


def folder_readers(folder: Path, score: Path) -> list[FuzzedReader]:
    """Write whole folders, and list their readers; the score is a small one."""
    return [
        *_graphs(folder),
        *_index(folder / "index", score),
        *_checkpoints(folder),
        *_shards(folder / "shards"),
        *_names(folder),
        *_results(folder, score),
    ]


@contextmanager
def _with(folder: Path, name: str, file: Path) -> Iterator[Path]:
    """Copy a folder in which one file is another one."""
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "copy"
        shutil.copytree(folder, copy)
        shutil.copy(file, copy / name)
        yield copy


def _graphs(folder: Path) -> list[FuzzedReader]:
    """Graphs whose checksums are right: what lies behind the checksum is read, too."""
    bundle = default_bundle()
    seed = folder / "graph.onnx"
    shutil.copy(bundle.graph_path("audio"), seed)

    def read(file: Path) -> None:
        with _with(bundle.folder, bundle.audio.graph, file) as copy:
            manifest = json.loads((copy / "manifest.json").read_text(encoding="utf-8"))
            manifest["audio"]["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
            (copy / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
            encoder = Encoder(load_bundle(copy), n_threads=1)
            encoder.encode_samples(np.zeros(16_000, np.float32))

    return [FuzzedReader("graph", seed, "bytes", read, weight=2)]


def _index(folder: Path, score: Path) -> list[FuzzedReader]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        build_index([score], folder)
    dim = default_bundle().manifest.embedding_dim

    def reader_of(name: str) -> Callable[[Path], None]:
        def read(file: Path) -> None:
            with _with(folder, name, file) as copy:
                index = open_index(copy)
                for kind in KINDS:
                    index.search_vectors(np.eye(2, dim, dtype=np.float32), kind, 3)
                for number in range(len(index)):
                    index.load_piece(number)

        return read

    files = sorted(file for file in folder.iterdir() if file.suffix in (".json", ".npy", ".faiss"))
    return [
        FuzzedReader(
            f"index {file.name}", file, "text" if file.suffix == ".json" else "bytes", reader_of(file.name)
        )
        for file in files
    ]


def _checkpoints(folder: Path) -> list[FuzzedReader]:
    recipe = read_recipe(
        "small-hybrid", ["model.backbone_options.width=16", "model.backbone_options.embedding_dim=8"]
    )
    torch.manual_seed(0)
    model = FusiliModel(recipe.model)
    checkpoint = folder / "last.pt"
    save_checkpoint(Checkpoint(recipe, Progress(), model.state_dict()), checkpoint)
    render = folder / "render.toml"
    render.write_text(
        "seed = 1\n[segment]\nspace_px = 8.0\nmax_width_px = 768\n[audio]\nsample_rate_hz = 16000\n"
    )
    return [
        FuzzedReader("checkpoint", checkpoint, "zip", load_trained_model, weight=2),
        FuzzedReader("render recipe", render, "text", load_render_recipe),
    ]


def _shards(folder: Path) -> list[FuzzedReader]:
    folder.mkdir()
    image, audio = io.BytesIO(), io.BytesIO()
    Image.fromarray(np.full((160, 200), 255, np.uint8)).save(image, format="PNG")
    soundfile.write(audio, np.zeros(8000), 16_000, format="FLAC")
    described = {"strip_height_px": 160, "notes": []}
    members = {"png": image.getvalue(), "flac": audio.getvalue(), "json": json.dumps(described).encode()}
    shard = folder / "test-0.tar"
    write_json(sidecar_of(shard), write_shard(shard, [Sample("piece.whole.0", None, members)]))
    splits = {"test": {"shards": [{"name": shard.name}]}}
    content = {"format": 1, "recipe": RenderRecipe().to_dict(), "splits": splits}
    write_json(folder / "manifest.json", json.loads(json.dumps(content)))

    def reader_of(name: str) -> Callable[[Path], None]:
        def read(file: Path) -> None:
            with _with(folder, name, file) as copy:
                pairs = ShardFolder(copy, "test")
                for entry in pairs.entries:
                    pairs.read(entry)

        return read

    return [
        FuzzedReader(
            f"shards {file.name}", file, "bytes" if file.suffix == ".tar" else "text", reader_of(file.name)
        )
        for file in sorted(folder.iterdir())
    ]


def _names(folder: Path) -> list[FuzzedReader]:
    """Names of files, whatever bytes they have."""
    seed = folder / "name.txt"
    seed.write_text("scans/page-12.pdf#3-7")

    def read(file: Path) -> None:
        name = os.fsdecode(file.read_bytes())
        try:
            open_pages(name)
        finally:
            open_recording(name)

    return [FuzzedReader("names", seed, "text", read)]


def _results(folder: Path, score: Path) -> list[FuzzedReader]:
    """From a damaged score to all files of a result; and reading the page of one again."""
    sound = folder / "second.wav"
    soundfile.write(sound, np.sin(2 * np.pi * 440 * np.arange(32_000) / 16_000), 16_000)

    encoder = Encoder(default_bundle(), n_threads=1)

    def write(file: Path) -> None:
        with tempfile.TemporaryDirectory() as place:
            save_alignment(align_recording(file, sound, model=encoder), Path(place) / "result")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save_alignment(align_recording(score, sound, model=encoder), folder / "result", formats=["html"])
    return [
        FuzzedReader("results", score, "xml", write, weight=2),
        FuzzedReader("view", folder / "result" / "view.html", "text", read_view),
    ]
