"""Weights that come back from a bundle; the shipped one and onnxruntime are the reference."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from example_melodies import TINY_MODEL

from fusili_export.graphs import trace_graph
from fusili_export.specs import audio_spec, image_spec
from fusili_export.wrappers import TowerGraph
from fusili_mir.errors import InputError
from fusili_mir.model.bundle import TOWERS, AudioSpec, ImageSpec, Tower, default_bundle
from fusili_mir.sessions.onnxruntime_library import onnxruntime
from fusili_training.loop.recipe import Recipe, WeightsOptions
from fusili_training.loop.starting_model import build_starting_model
from fusili_training.model.bundle_weights import _graph_weights, load_bundle_weights
from fusili_training.model.model import FusiliModel, ModelOptions

SHIPPED = default_bundle()
OPTIONS = SHIPPED.manifest.recipe["model"]["backbone_options"]


@pytest.fixture(scope="module")
def model() -> FusiliModel:
    weights = WeightsOptions(checkpoint=str(SHIPPED.folder))
    options = ModelOptions(backbone="small", backbone_options=OPTIONS, max_scale=30.0)
    return build_starting_model(Recipe("x", model=options, weights=weights)).eval()


def _reference(tower: str, inputs: np.ndarray) -> np.ndarray:
    spec = SHIPPED.image if tower == "image" else SHIPPED.audio
    session = onnxruntime().InferenceSession(SHIPPED.folder / spec.graph, providers=["CPUExecutionProvider"])
    return np.asarray(session.run([spec.local_output], {spec.input: inputs})[0])


def test_patches_are_those_of_the_graph_that_the_weights_came_from(model: FusiliModel) -> None:
    images = np.random.default_rng(0).uniform(size=(2, 3, 128, 212)).astype(np.float32)
    with torch.no_grad():
        patches = model.encode_images(torch.from_numpy(images)).local
    np.testing.assert_allclose(patches, _reference("image", images), atol=2e-5)


def test_frames_are_those_of_the_graph_that_the_weights_came_from(model: FusiliModel) -> None:
    waveforms = np.random.default_rng(1).normal(size=(2, 32_000)).astype(np.float32)
    with torch.no_grad():
        frames = model.encode_recordings(torch.from_numpy(waveforms)).local
    np.testing.assert_allclose(frames, _reference("audio", waveforms), atol=2e-5)


def test_the_scale_is_that_of_the_manifest(model: FusiliModel) -> None:
    assert model.logit_scale_local.exp().item() == pytest.approx(SHIPPED.manifest.scale, rel=1e-6)


def test_blocks_that_the_bundle_does_not_have_change_nothing_before_training(model: FusiliModel) -> None:
    wider = FusiliModel(
        ModelOptions(
            backbone="small",
            max_scale=30.0,
            backbone_options=OPTIONS | {"audio_reaches": (32, 32, 8), "system_reaches": (32, 32, 8)},
        )
    ).eval()
    load_bundle_weights(wider, Path(SHIPPED.folder))
    images = torch.rand(1, 2, 128, 212, generator=torch.Generator().manual_seed(2))
    sound = torch.rand(1, 32_000, generator=torch.Generator().manual_seed(3)) - 0.5
    with torch.no_grad():
        for name, inputs in (("encode_images", images), ("encode_recordings", sound)):
            torch.testing.assert_close(getattr(wider, name)(inputs).local, getattr(model, name)(inputs).local)


def test_attention_comes_back_from_a_graph() -> None:
    torch.manual_seed(0)
    options = ModelOptions("small", TINY_MODEL | {"audio_reaches": (1, 6), "system_reaches": (3,)})
    trained = FusiliModel(options).eval()
    for parameter in trained.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    state = trained.state_dict()
    specs: dict[Tower, ImageSpec | AudioSpec]
    specs = {"image": image_spec(trained.image), "audio": audio_spec(trained.audio)}
    for tower in TOWERS:
        found = _graph_weights(trace_graph(TowerGraph(trained, tower, "local"), specs[tower]))
        blocks = [name for name in state if name.startswith(tower) and "blocks." in name]
        assert any(name.endswith("nearness") for name in blocks)
        for name in blocks:
            torch.testing.assert_close(found[name], state[name], msg=name)


def test_a_bundle_with_more_blocks_than_the_model_is_refused() -> None:
    smaller = FusiliModel(ModelOptions("small", OPTIONS | {"audio_reaches": ()}, max_scale=30.0))
    with pytest.raises(InputError, match=r"it has the block audio\.blocks\.4, which the model lacks"):
        load_bundle_weights(smaller, Path(SHIPPED.folder))


def test_a_model_of_other_sizes_is_refused_with_the_weight_that_does_not_fit() -> None:
    tiny = FusiliModel(ModelOptions(backbone="small", backbone_options=TINY_MODEL))
    with pytest.raises(InputError, match=r"does not fit the model: it has one of shape .* as image\.stem"):
        load_bundle_weights(tiny, Path(SHIPPED.folder))


def test_a_graph_that_names_its_modules_with_nonsense_is_refused_in_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    shutil.copytree(SHIPPED.folder, folder)
    graph = onnx.load(folder / "image.onnx")
    for node in graph.graph.node:
        for note in node.metadata_props:
            note.value = "[" * 5000
    data = graph.SerializeToString()
    (folder / "image.onnx").write_bytes(data)
    manifest = (folder / "manifest.json").read_text(encoding="utf-8")
    manifest = manifest.replace(SHIPPED.image.sha256, hashlib.sha256(data).hexdigest())
    (folder / "manifest.json").write_text(manifest, encoding="utf-8")
    model = FusiliModel(ModelOptions(backbone="small", backbone_options=OPTIONS, max_scale=30.0))
    with pytest.raises(InputError, match=r"image\.onnx: cannot be read .*expected a graph that"):
        load_bundle_weights(model, folder)
