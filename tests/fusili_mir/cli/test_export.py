"""`fusili-mir export`, from a checkpoint of a small model to a bundle that the runtime reads."""

import contextlib
import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from fusili_mir.audio.recording import AudioSamples
from fusili_mir.cli.main import main
from fusili_mir.model.bundle import Bundle, load_bundle
from fusili_mir.model.encoder import Encoder
from fusili_mir.sessions.graph_session import open_session
from fusili_training.loop.checkpoint import Checkpoint, Progress, save_checkpoint
from fusili_training.loop.recipe import DataOptions, Recipe
from fusili_training.model.model import FusiliModel, ModelOptions

TINY = {
    "width": 32,
    "embedding_dim": 16,
    "stem_channels": (4, 8, 8),
    "image_dilations": (1,),
    "system_dilations": (1,),
    "audio_dilations": (1,),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("export")


@pytest.fixture(scope="module")
def checkpoint(folder: Path) -> Path:
    (folder / "pairs").mkdir()
    facts = {"pieces": 3, "segments": 40, "licences": {"CC0-1.0": 40}, "splits": {"train": {}}}
    (folder / "pairs" / "manifest.json").write_text(json.dumps(facts))
    recipe = Recipe(
        "tiny",
        model=ModelOptions("small", TINY, initial_scale=10.0),
        data=DataOptions(folder=str(folder / "pairs")),
    )
    torch.manual_seed(0)
    model = FusiliModel(recipe.model)
    for layer in model.modules():  # blocks start as the identity
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
    path = folder / "best.pt"
    save_checkpoint(Checkpoint(recipe, Progress(5, validation={"joint": 0.5}), model.state_dict()), path)
    return path


def run(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    assert isinstance(left.value.code, int)
    return left.value.code


@pytest.fixture(scope="module")
def bundle(folder: Path, checkpoint: Path) -> Bundle:
    """The checkpoint as an int8 bundle, which is compared as fp32 first."""
    (folder / "quality.json").write_text('{"test": {"onset_median_ms": 50}}')
    options: list[str | Path] = [
        "--precision",
        "int8",
        "--licence",
        "CC0-1.0",
        "--quality",
        folder / "quality.json",
    ]
    with contextlib.chdir(folder):
        assert run("export", checkpoint, "-o", "bundle", *options) == 0
    return load_bundle(folder / "bundle")


def test_the_manifest_says_what_the_model_is_and_where_it_comes_from(bundle: Bundle, folder: Path) -> None:
    manifest = bundle.manifest
    assert (manifest.name, manifest.precision, manifest.licence) == ("tiny", "int8", "CC0-1.0")
    assert (manifest.embedding_dim, manifest.scale) == (16, pytest.approx(10))
    assert manifest.recipe["steps"] == 5
    assert manifest.recipe["local_heads"] == "local"
    assert re.fullmatch(r"[0-9a-f]{64}", manifest.recipe["checkpoint_sha256"])
    assert manifest.training_data == {
        "name": "pairs",
        "pieces": 3,
        "segments": 40,
        "licences": {"CC0-1.0": 40},
    }
    assert manifest.quality == {"validation": {"joint": 0.5}, "test": {"onset_median_ms": 50}}
    assert str(folder) not in manifest.to_json()
    assert sorted(path.name for path in bundle.folder.iterdir()) == [
        "audio.onnx",
        "image.onnx",
        "manifest.json",
    ]


def test_the_manifest_holds_the_comparison_and_nothing_small_is_lost_in_fp32(bundle: Bundle) -> None:
    rows = bundle.manifest.parity
    assert {row["output"] for row in rows} == {"patches", "image_embedding", "frames", "audio_embedding"}
    assert {row["shape"][0] for row in rows if row["inputs"] == "noise"} == {1, 3, 8}
    kinds = {"noise", "chords", "zero-padded", "quiet", "loud", "engraved", "paper-padded"}
    assert {row["inputs"] for row in rows} == kinds
    # Without the 1e-12 under the square root of the spectrum, a full-size model is off by 7e-5 on chords.
    assert max(row["difference"] for row in rows if row["precision"] == "fp32") < 5e-6
    cosines = [row["mean_cosine"] for row in rows if row["precision"] == "int8"]
    assert len(cosines) == len(rows) // 2
    assert min(cosines) > 0.99
    assert max(row["difference"] for row in rows if row["precision"] == "int8") > 1e-4


def test_axes_have_names(bundle: Bundle) -> None:
    shapes = {}
    for tower in ("image", "audio"):
        graph = onnx.load_from_string(bundle.read_graph(tower)).graph
        assert len(graph.input) == 1
        dims = graph.input[0].type.tensor_type.shape.dim
        shapes[graph.input[0].name] = [dim.dim_param or dim.dim_value for dim in dims]
    assert shapes == {"images": ["batch", "staves", 128, "width"], "waveforms": ["batch", "samples"]}


def test_graphs_say_nothing_about_the_machine_they_were_made_on(bundle: Bundle) -> None:
    for tower in ("image", "audio"):
        graph = bundle.read_graph(tower)
        assert b".py" not in graph
        assert str(Path.cwd()).encode() not in graph


def test_int8_leaves_the_front_end_in_float(bundle: Bundle) -> None:
    nodes = onnx.load_from_string(bundle.read_graph("audio")).graph.node
    floating = [node for node in nodes if node.op_type in ("MatMul", "Gemm")]
    weights = {name for node in floating for name in node.input if "filter_bank" in name}
    # cosines, sines and filters of the long and of the short windows
    assert len(floating) == len(weights) == 6
    assert sum(node.op_type == "MatMulInteger" for node in nodes) == 5  # two of the block, three of the heads


def test_the_bundle_encodes_a_recording_without_seams(bundle: Bundle) -> None:
    rng = np.random.default_rng(0)
    samples = (0.1 * rng.standard_normal(16_000 * 45)).astype(np.float32)
    encoded = Encoder(bundle, "cpu", n_threads=1).encode_recording(AudioSamples(samples, 16_000))
    session = open_session(bundle.read_graph("audio"), "cpu", 1)
    (whole,) = session.run("waveforms", samples[None], ["frames"])
    assert encoded.frames.shape == whole[0].shape == (1125, 16)
    # Ranges of activations, and with them int8 roundings, depend on the batch; a seam would give a much smaller
    # cosine.
    assert (encoded.frames * whole[0]).sum(axis=1).min() > 0.99


def test_a_folder_that_is_not_empty_is_left_alone(
    bundle: Bundle, checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name: path.read_bytes() for path in bundle.folder.iterdir()}
    assert run("export", checkpoint, "-o", bundle.folder) == 1
    assert "the folder is not empty; choose another one, or add --force" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in bundle.folder.iterdir()} == before


def test_nothing_appears_when_the_graphs_are_not_the_checkpoint(
    checkpoint: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from fusili_export import exporting

    wrong = helper_graph()
    monkeypatch.setattr(exporting, "trace_graph", lambda tower, spec, opset: wrong)
    assert run("export", checkpoint, "-o", folder / "wrong") == 1
    printed = capsys.readouterr()
    assert "the fp32 graph does not match the checkpoint" in printed.err
    assert len(printed.err.splitlines()) == 1
    assert "| fp32 | frames | quiet |" in printed.out
    assert not (folder / "wrong").exists()


def helper_graph() -> bytes:
    """Return a graph without an output of the right name."""
    from onnx import TensorProto, helper

    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Identity", ["images"], ["patches"])],
        "wrong",
        [value("images", TensorProto.FLOAT, None)],
        [value("patches", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    return bytes(model.SerializeToString())


def test_what_is_missing_is_named_in_one_line(
    tmp_path: Path, checkpoint: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("export", tmp_path / "none.pt", "-o", tmp_path / "out") == 1
    assert re.fullmatch(r"fusili-mir: there is no weights file .*none.pt; .*\n", capsys.readouterr().err)
    assert run("export", checkpoint, "-o", tmp_path / "out", "--data", tmp_path) == 1
    assert "expected a folder written by `fusili-mir render`" in capsys.readouterr().err
    (tmp_path / "figures.json").write_text("[1]")
    assert run("export", checkpoint, "-o", tmp_path / "out", "--quality", tmp_path / "figures.json") == 1
    assert "holds a list; expected a JSON object" in capsys.readouterr().err
    monkeypatch.setitem(__import__("sys").modules, "onnxscript", None)
    assert run("export", checkpoint, "-o", tmp_path / "out") == 1
    assert "needs the package onnxscript" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
