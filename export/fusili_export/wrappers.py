"""One tower with its heads, as a function from one tensor to the two outputs of a graph."""

from __future__ import annotations

from torch import Tensor, nn

from fusili_mir.model.bundle import Tower
from fusili_training.model.model import FusiliModel, Heads

__all__ = ["TowerGraph"]


class TowerGraph(nn.Module):
    """The module that becomes one ONNX graph: L2-normalised local and global embeddings from one pass.

    Parameters
    ----------
    model : FusiliModel
        The model; one of its towers is used, in evaluation mode.
    tower : "image" or "audio"
    heads : "local" or "global"
        The heads that embed local features; "global" for models trained without a local loss.
    """

    def __init__(self, model: FusiliModel, tower: Tower, heads: Heads) -> None:
        super().__init__()
        self.model, self.tower, self.heads = model, tower, heads
        self.eval()

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Encode a batch.

        Parameters
        ----------
        inputs : Tensor
            Images [shape=(B, S, height, width)] or waveforms [shape=(B, n_samples)].

        Returns
        -------
        Tensor [shape=(B, L, d)]
            Embeddings of the patches, without the class token, or of the frames.
        Tensor [shape=(B, d)]
            Global embeddings of the images or recordings.
        """
        encode = self.model.encode_images if self.tower == "image" else self.model.encode_recordings
        embeddings = encode(inputs, self.heads)
        return embeddings.local, embeddings.pooled
