"""The comparison of graphs with checkpoints, and the defect that it must find."""

import importlib.util
import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from fusili_export.graphs import trace_graph
from fusili_export.parity import (
    ParityRow,
    Precision,
    check_parity,
    compare_graph,
    parity_table,
    run_reference,
)
from fusili_export.parity_inputs import ParityCase, audio_cases, image_cases
from fusili_export.precision import quantise_graph
from fusili_export.specs import audio_spec, image_spec
from fusili_export.wrappers import TowerGraph
from fusili_mir.errors import FusiliError
from fusili_mir.model.bundle import TOWERS, ImageSpec, Tower
from fusili_mir.sessions.graph_session import open_session
from fusili_training.backbones.published_encoders import import_htsat
from fusili_training.model.model import FusiliModel, ModelOptions

TINY_CLIP_CLAP = {
    "embedding_dim": 16,
    "image_width": 32,
    "image_layers": 1,
    "image_heads": 2,
    "audio_width": 8,
    "audio_depths": (1, 1, 1, 1),
    "audio_heads": (1, 1, 2, 2),
}
TINY_SMALL = {"width": 32, "embedding_dim": 16, "stem_channels": (4, 8, 8)}


def row(
    difference: float, mean_cosine: float = 1.0, precision: Precision = "fp32", output: str = "patches"
) -> ParityRow:
    return ParityRow(precision, output, "noise", [3, 1, 224, 224], difference, mean_cosine, mean_cosine)


@pytest.fixture(scope="module")
def clip_clap() -> FusiliModel:
    torch.manual_seed(0)
    return FusiliModel(ModelOptions("clip-clap", TINY_CLIP_CLAP)).eval()


def htsat_as_published() -> ModuleType:
    """Load HTSAT's module again, without our change."""
    patched = import_htsat()
    spec = importlib.util.spec_from_file_location(
        f"{patched.__spec__.parent}.htsat_as_published", Path(patched.__file__)
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_batch_constant_of_the_published_htsat_is_found(
    clip_clap: FusiliModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_htsat(), "window_reverse", htsat_as_published().window_reverse)
    spec = audio_spec(clip_clap.audio)
    tower = TowerGraph(clip_clap, "audio", "local")
    graph = trace_graph(tower, spec)

    noise = np.random.default_rng(1).standard_normal((2, 480_000), dtype=np.float32)
    as_traced = run_reference(tower, [ParityCase("noise", np.float32(0.1) * noise)])
    check_parity(compare_graph(graph, spec, as_traced, "fp32"))  # a batch of two shows no difference
    others = run_reference(tower, audio_cases(spec))
    with pytest.raises(
        FusiliError, match=r"the fp32 graph does not match the checkpoint: (frames|audio_embedding)"
    ):
        check_parity(compare_graph(graph, spec, others, "fp32"))


@pytest.mark.parametrize("tower", TOWERS)
def test_graphs_pool_by_prototypes_as_the_checkpoint_does(tower: Tower) -> None:
    torch.manual_seed(0)
    model = FusiliModel(ModelOptions("small", TINY_SMALL, pooling="prototypes")).eval()
    assert model.pooling is not None
    generator = torch.Generator().manual_seed(1)
    features = torch.rand(2, 4, model.pooling.n_features, generator=generator)
    model.pooling.follow(features[0], features[1])
    graph_tower = TowerGraph(model, tower, "local")
    spec = image_spec(model.image) if tower == "image" else audio_spec(model.audio)
    cases = list(image_cases(spec) if isinstance(spec, ImageSpec) else audio_cases(spec))
    graph = trace_graph(graph_tower, spec)
    references = run_reference(graph_tower, cases)
    check_parity(compare_graph(graph, spec, references, "fp32"))
    check_parity(compare_graph(quantise_graph(graph), spec, references, "int8"))

    padded = next(case.inputs for case in cases if case.kind.endswith("-padded"))[:1]
    if isinstance(spec, ImageSpec):
        cut = padded[:, :1, :, : padded.shape[3] // 2]
    else:
        cut = padded[:, : math.ceil(padded.shape[1] / 2 / spec.frame_samples) * spec.frame_samples]
    session = open_session(graph, "cpu")
    whole, alone = (
        session.run(spec.input, np.ascontiguousarray(each), [spec.global_output])[0] for each in (padded, cut)
    )
    np.testing.assert_allclose(whole, alone, atol=1e-5)


def test_batches_are_of_other_sizes_than_the_traced_one(clip_clap: FusiliModel) -> None:
    for cases in (audio_cases(audio_spec(clip_clap.audio)), image_cases(image_spec(clip_clap.image))):
        sizes = [len(case.inputs) for case in cases if case.kind == "noise"]
        assert sizes == [1, 3, 8]


def test_audio_is_also_music_zero_padded_quiet_and_loud(clip_clap: FusiliModel) -> None:
    peaks = {case.kind: np.abs(case.inputs) for case in audio_cases(audio_spec(clip_clap.audio))}
    assert peaks["chords"].max() == pytest.approx(0.3)
    assert (peaks["zero-padded"][0, 240_000:] == 0).all()
    assert (peaks["zero-padded"][2] == 0).all()
    assert peaks["quiet"].max() == pytest.approx(0.0003)
    assert peaks["loud"].max() == 1


def test_images_are_also_engraved_music_and_padded_with_paper(clip_clap: FusiliModel) -> None:
    images = {case.kind: case.inputs for case in image_cases(image_spec(clip_clap.image))}
    assert images["engraved"].shape == (3, 1, 224, 224)
    assert images["engraved"].min() < 0.3  # ink
    assert np.median(images["engraved"]) == 1
    assert (images["paper-padded"][0, :, :, 112:] == 1).all()
    assert images["paper-padded"][0].min() < 0.3


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [row(2e-4), row(3e-4, output="image_embedding")],
            r"image_embedding differs .* \(3, 1, 224, 224\) by 0.0003",
        ),
        ([row(float("inf"), float("nan")), row(0.5)], "patches differs .* by inf; expected at most 0.0001"),
        (
            [row(0.1, 0.985, "int8"), row(0.01, 0.98, "int8")],
            "mean cosine 0.980.; expected at least 0.99",
        ),
        ([row(0.1, 0.995, "int8"), row(2e-4)], "the fp32 graph .* 1 outputs differ, nothing was written"),
    ],
)
def test_the_worst_output_is_named(rows: list[ParityRow], message: str) -> None:
    with pytest.raises(FusiliError, match=message):
        check_parity(rows)


def test_small_differences_pass() -> None:
    check_parity([row(9e-5), row(0.1, 0.991, "int8")])


def test_the_table_has_a_line_for_each_output() -> None:
    table = parity_table([row(2.34e-7), row(0.1, 0.991, "int8")]).splitlines()
    assert table[2] == "| fp32 | patches | noise | 3 x 1 x 224 x 224 | 2.3e-07 | 1.00000 | 1.00000 |"
    assert len(table) == 4
