"""Pooling by prototypes: a segment is described by how clearly each of many local patterns occurs in it.

The prototypes are directions in the space of the local embeddings. A patch and the frames in which it sounds are
close to the same prototypes, so images and recordings share them, and the projection that follows. A mean of
tokens distinguishes the pieces that segments come from; this pooling also distinguishes the segments of one
piece.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from fusili_mir.model.bundle import Tower

__all__ = ["PrototypePooling"]

_SHARPNESS = 15.0  # of the soft maximum: 0 would be the mean of the cosines, infinity their maximum
_LEAST_VARIANCE = 1e-6
_LEAST_MEAN = 1e-13  # of the powers: that of cosines of -1
_LEAST_RATE = 0.01  # weight of the latest batch in the statistics


class PrototypePooling(nn.Module):
    """Local embeddings -> global embedding.

    Parameters
    ----------
    embedding_dim : int
        Dimension d of local and global embeddings.
    n_prototypes : int

    Attributes
    ----------
    prototypes : Tensor [shape=(n_prototypes, d)]
        Unit vectors, random at first. They are not trained, so the features stay the same if the local embeddings
        do.
    projection : nn.Linear
        Standardised features -> global embedding, shared by images and recordings.
    centres : Tensor [shape=(2, n_features)]
        Mean features of images and of recordings.
    variance : Tensor [shape=(n_features,)]
        Variance of the features around these means.
    n_followed : Tensor of int64 [shape=()]
        Number of batches in the statistics.
    """

    prototypes: Tensor
    centres: Tensor
    variance: Tensor
    n_followed: Tensor

    def __init__(self, embedding_dim: int, n_prototypes: int = 512) -> None:
        super().__init__()
        self.n_features = n_prototypes
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
            False where `local` is padding.
        tower : "image" or "audio"
            Tower that the embeddings come from.
        """
        return self.project(self.describe(local, mask), tower)

    def project(self, features: Tensor, tower: Tower) -> Tensor:
        """Return L2-normalised global embeddings [shape=(B, d)], given features of `describe`."""
        centre = self.centres[0 if tower == "image" else 1]
        standardised = (features - centre) / self.spread
        return functional.normalize(self.projection(standardised).float(), dim=-1)

    @property
    def spread(self) -> Tensor:
        """What the features are divided by [shape=(n_features,)]."""
        return (self.variance + _LEAST_VARIANCE).sqrt()

    def describe(self, local: Tensor, mask: Tensor | None) -> Tensor:
        """Return features [shape=(B, n_features)]; the arguments are those of `forward`.

        Each is a soft maximum of the cosines of one prototype: 1 / s log mean exp(s cosine) over all places, with
        the sharpness s. A pattern that occurs often counts somewhat more than one that occurs once.
        """
        places = torch.ones_like(local[:, :, 0]) if mask is None else mask.to(local.dtype)
        weights = places / places.sum(dim=1, keepdim=True)  # (B, L)
        # Cosines are at most 1, so no exponent is positive; a product of matrices is the fastest sum.
        powers = (local @ (_SHARPNESS * self.prototypes).T - _SHARPNESS).exp()  # (B, L, n_prototypes)
        means = (weights[:, None] @ powers)[:, 0]
        return 1 + means.clamp_min(_LEAST_MEAN).log() / _SHARPNESS

    @torch.no_grad()
    def begin_with(self, patches: Tensor, mask: Tensor | None) -> None:
        """Make patches [shape=(B, L, d)] of a trained model the prototypes, evenly spaced over the batch."""
        found = patches.flatten(0, 1) if mask is None else patches[mask]
        places = torch.linspace(0, len(found) - 1, len(self.prototypes), device=found.device).round().long()
        self.prototypes.copy_(found[places])

    @torch.no_grad()
    def follow(self, images: Tensor, recordings: Tensor) -> None:
        """Update the statistics with the features [shape=(B, n_features)] of a batch.

        At first they are means over all batches, later over about the latest hundred.
        """
        self.n_followed += 1
        rate = max(1 / int(self.n_followed), _LEAST_RATE)
        features = torch.stack([images, recordings]).to(self.centres.dtype)  # (2, B, n_features)
        self.centres.lerp_(features.mean(dim=1), rate)
        self.variance.lerp_((features - self.centres[:, None]).square().mean(dim=(0, 1)), rate)
