"""The towers of the small backbone as traced programs, at sizes other than those of the tracing."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fusili_training.model.model import FusiliModel, ModelOptions


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


CASES: dict[str, tuple[Any, ...]] = {
    "image": (padded_strips, (2, 3, 80), {0, 1, 3}, [(1, 1, 100), (3, 4, 200)]),
    "audio": (padded_noise, (2, 12_800), {0, 1}, [(1, 19_840), (5, 6_400)]),
}


@pytest.mark.parametrize("side", CASES)
def test_batch_staves_width_and_length_are_no_constants_of_the_graph(side: str) -> None:
    make, example, dynamic_axes, sizes = CASES[side]
    torch.manual_seed(0)
    sizes_of_layers = {"width": 16, "embedding_dim": 8, "stem_channels": (4, 4, 4)}
    reaches = {"system_reaches": (6,), "audio_reaches": (6, 8)}
    model = FusiliModel(ModelOptions("small", sizes_of_layers | reaches))
    for parameter in model.parameters():  # blocks start as the identity
        if parameter.ndim == 2:
            nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)
    graph = Graph(model.eval(), side)
    axes = dict.fromkeys(dynamic_axes, torch.export.Dim.DYNAMIC)
    exported = torch.export.export(graph, (make(*example),), dynamic_shapes=(axes,)).module()
    for size in sizes:
        inputs = make(*size)
        with torch.no_grad():
            expected, found = graph(inputs), exported(inputs)
        torch.testing.assert_close(found, expected)
        assert not expected[2][0].all()
