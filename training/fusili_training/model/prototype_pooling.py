"""Pooling by prototypes: a whole is described by how often, and how clearly, each of many local things is in it.

The prototypes are directions in the space of the local embeddings, so that a patch and the frames that it sounds
in are near the same ones: images and recordings share them, and the projection that follows. A mean of tokens
tells apart the pieces that segments come from; this tells apart the segments of a piece.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from fusili_mir.model.bundle import Tower

__all__ = ["PrototypePooling"]

_SHARPNESS = 20.0  # of the choice between prototypes, a factor of cosines
_LEAST_SHARE = 1e-6  # below it all shares are alike; their root has a steep slope at 0
_LEAST_VARIANCE = 1e-6
_LEAST_RATE = 0.01  # at which the statistics follow what is seen


class PrototypePooling(nn.Module):
    """Local embeddings -> global embedding.

    Parameters
    ----------
    embedding_dim : int
        d of local and global embeddings.
    n_prototypes : int

    Attributes
    ----------
    prototypes : Tensor [shape=(n_prototypes, d)]
        Directions of length 1, random ones at first. They are not trained: where the local embeddings stay as
        they are, so do the features.
    projection : nn.Linear
        Standardised features -> global embedding, the same for images and recordings.
    centres : Tensor [shape=(2, n_features)]
        Mean features of images and of recordings.
    variance : Tensor [shape=(n_features,)]
        Of the features about these means.
    n_followed : Tensor of int64 [shape=()]
        Batches that the statistics are from.
    """

    prototypes: Tensor
    centres: Tensor
    variance: Tensor
    n_followed: Tensor

    def __init__(self, embedding_dim: int, n_prototypes: int = 512) -> None:
        super().__init__()
        self.n_features = 2 * n_prototypes
        self.projection = nn.Linear(self.n_features, embedding_dim, bias=False)
        directions = functional.normalize(torch.randn(n_prototypes, embedding_dim), dim=1)
        self.register_buffer("prototypes", directions)
        self.register_buffer("centres", torch.zeros(2, self.n_features))
        self.register_buffer("variance", torch.ones(self.n_features))
        self.register_buffer("n_followed", torch.zeros((), dtype=torch.int64))

    def forward(self, local: Tensor, mask: Tensor | None, tower: Tower) -> Tensor:
        """Return L2-normalised global embeddings [shape=(B, d)].

        Parameters
        ----------
        local : Tensor [shape=(B, L, d)]
            L2-normalised patch or frame embeddings.
        mask : Tensor of bool [shape=(B, L)] or None
            True where `local` is no padding.
        tower : "image" or "audio"
            Where they come from.
        """
        return self.project(self.describe(local, mask), tower)

    def project(self, features: Tensor, tower: Tower) -> Tensor:
        """Return L2-normalised global embeddings [shape=(B, d)] of what `describe` gives."""
        centre = self.centres[0 if tower == "image" else 1]
        standardised = (features - centre) / (self.variance + _LEAST_VARIANCE).sqrt()
        return functional.normalize(self.projection(standardised).float(), dim=-1)

    def describe(self, local: Tensor, mask: Tensor | None) -> Tensor:
        """Return features [shape=(B, n_features)]; the arguments are those of `forward`.

        The first half is the root of the share of places that fall to each prototype, the second the cosine of
        the place that is most like it.
        """
        cosines = local @ self.prototypes.T  # (B, L, n_prototypes)
        shares = (_SHARPNESS * cosines).softmax(dim=2)
        if mask is None:
            mean, nearest = shares.mean(dim=1), cosines.amax(dim=1)
        else:
            valid = mask[:, :, None]
            mean = (shares * valid).sum(dim=1) / valid.sum(dim=1)
            nearest = cosines.masked_fill(~valid, -1.0).amax(dim=1)
        return torch.cat([(mean + _LEAST_SHARE).sqrt(), nearest], dim=1)

    @torch.no_grad()
    def begin_with(self, patches: Tensor, mask: Tensor | None) -> None:
        """Take patches [shape=(B, L, d)] of a trained model, evenly from all of a batch, as the prototypes."""
        found = patches.flatten(0, 1) if mask is None else patches[mask]
        places = torch.linspace(0, len(found) - 1, len(self.prototypes), device=found.device).round().long()
        self.prototypes.copy_(found[places])

    @torch.no_grad()
    def follow(self, images: Tensor, recordings: Tensor) -> None:
        """Let the statistics follow the features [shape=(B, n_features)] of a batch.

        They are means over all batches at first, and then over the latest hundred or so.
        """
        self.n_followed += 1
        rate = max(1 / int(self.n_followed), _LEAST_RATE)
        features = torch.stack([images, recordings]).to(self.centres.dtype)  # (2, B, n_features)
        self.centres.lerp_(features.mean(dim=1), rate)
        self.variance.lerp_((features - self.centres[:, None]).square().mean(dim=(0, 1)), rate)
