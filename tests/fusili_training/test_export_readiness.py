"""The towers of the small backbone as ONNX graphs, at other sizes than they were traced with."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fusili_training.model import FusiliModel, ModelOptions

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")


class Graph(nn.Module):
    """One side of a model as a function from a tensor to tensors."""

    def __init__(self, model: FusiliModel, side: str) -> None:
        super().__init__()
        self.model, self.side = model, side

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        encode = self.model.encode_images if self.side == "image" else self.model.encode_recordings
        embeddings = encode(inputs)
        assert embeddings.mask is not None
        return embeddings.local, embeddings.pooled, embeddings.mask


def padded_noise(batch: int, n_samples: int) -> Tensor:
    waveforms = 0.1 * torch.randn(batch, n_samples)
    waveforms[0, n_samples // 2 :] = 0
    return waveforms


def padded_strips(batch: int, n_staves: int, width_px: int) -> Tensor:
    images = (torch.rand(batch, n_staves, 128, width_px) > 0.1).float()
    images[0, :, :, width_px // 2 :] = 1
    images[0, 1:] = 1
    return images


CASES = {
    "image": (padded_strips, (2, 3, 80), {0, 1, 3}, [(1, 1, 101), (3, 4, 200)]),
    "audio": (padded_noise, (2, 12_800), {0, 1}, [(1, 20_001), (5, 6_400)]),
}


@pytest.mark.parametrize("side", CASES)
def test_the_graph_is_right_at_other_sizes(side: str, tmp_path: Path) -> None:
    make, example, dynamic_axes, sizes = CASES[side]
    torch.manual_seed(0)
    model = FusiliModel(
        ModelOptions("small", {"width": 16, "embedding_dim": 8, "stem_channels": (4, 4, 4, 4)})
    )
    for parameter in model.parameters():
        if parameter.ndim == 2:
            nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)
    graph = Graph(model.eval(), side)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations inside the exporter
        torch.onnx.export(
            graph,
            (make(*example),),
            tmp_path / "graph.onnx",
            dynamo=True,
            opset_version=18,
            external_data=False,
            dynamic_shapes=(dict.fromkeys(dynamic_axes, torch.export.Dim.DYNAMIC),),
            input_names=["inputs"],
            verbose=False,
        )
    session = onnxruntime.InferenceSession(tmp_path / "graph.onnx", providers=["CPUExecutionProvider"])
    for size in sizes:
        inputs = make(*size)
        with torch.no_grad():
            local, pooled, mask = (tensor.numpy() for tensor in graph(inputs))
        found = session.run(None, {"inputs": inputs.numpy()})
        np.testing.assert_allclose(found[0], local, atol=1e-5)
        np.testing.assert_allclose(found[1], pooled, atol=1e-5)
        np.testing.assert_array_equal(found[2], mask)
        assert not mask[0].all()
