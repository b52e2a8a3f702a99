"""fp16 graphs: what is kept in float32, and what happens to a graph that does not stand it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import torch
from example_bundles import write_ink_bundle
from example_models import TINY_CLIP_CLAP
from onnx import TensorProto

from fusili_export.checkpoints import load_trained
from fusili_export.exporting import export_bundle
from fusili_export.half_precision import halve_graph, try_half_precision, why_not_half
from fusili_export.parity import ParityRow, Reference
from fusili_export.parity_inputs import ParityCase
from fusili_mir.model.bundle import load_bundle
from fusili_training.loop.checkpoint import Checkpoint, Progress, save_checkpoint
from fusili_training.loop.recipe import Recipe
from fusili_training.model.model import FusiliModel, ModelOptions


def test_a_bundle_is_in_fp16_as_far_as_its_graphs_stand_it(tmp_path: Path) -> None:
    torch.manual_seed(0)
    options = ModelOptions("clip-clap", TINY_CLIP_CLAP)
    checkpoint = Checkpoint(Recipe("x", model=options), Progress(), FusiliModel(options).state_dict())
    save_checkpoint(checkpoint, tmp_path / "best.pt")
    said: list[str] = []
    export_bundle(load_trained(tmp_path / "best.pt"), tmp_path / "half", precision="fp16", say=said.append)
    bundle = load_bundle(tmp_path / "half")
    # Quiet sound leaves the range of half precision, so the audio graph stays as it was.
    assert bundle.manifest.precision == "fp16 image, fp32 audio"
    assert any("audio.onnx stays in fp32: in fp16" in text for text in said)
    types = {
        tower: {each.data_type for each in onnx.load_from_string(bundle.read_graph(tower)).graph.initializer}
        for tower in ("image", "audio")
    }
    assert TensorProto.FLOAT16 in types["image"]
    assert TensorProto.FLOAT16 not in types["audio"]
    rows = {(row["precision"], row["output"]) for row in bundle.manifest.parity}
    assert ("fp16", "patches") in rows
    assert ("fp16", "frames") not in rows


def test_inputs_and_outputs_stay_in_float32(tmp_path: Path) -> None:
    bundle = write_ink_bundle(tmp_path / "ink")
    half = onnx.load_from_string(halve_graph(bundle.read_graph("image")))
    for value in (*half.graph.input, *half.graph.output):
        assert value.type.tensor_type.elem_type == TensorProto.FLOAT


def test_a_graph_that_cannot_be_run_has_no_parity(tmp_path: Path) -> None:
    spec = write_ink_bundle(tmp_path / "ink").image
    images = np.ones((1, 1, 224, 224), np.float32)
    reference = Reference(ParityCase("paper", images), [np.zeros((1, 49, 2), np.float32)] * 2)
    assert try_half_precision(b"no graph", spec, [reference]) == []
    assert why_not_half([]) == "onnxruntime cannot run it in fp16"


def test_fp16_is_judged_by_its_worst_embedding() -> None:
    row = ParityRow("fp16", "frames", "quiet", [1, 4], 1e-3, mean_cosine=0.99999, min_cosine=0.9998)
    assert not row.is_close
    assert replace(row, min_cosine=0.99995).is_close
    assert why_not_half([row]) == "in fp16 frames has a cosine of 0.99980 for quiet"
