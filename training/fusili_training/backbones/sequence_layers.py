"""Layers along one axis, the columns of a score or the frames of a recording, that ignore padding."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["ConvolutionBlock", "GlobalHead", "LeftContext", "trailing_mask"]


def trailing_mask(present: Tensor) -> Tensor:
    """Return False for trailing padding [shape=(B, L)], given where something is present [shape=(B, L)].

    The first place is never padding, so even an empty item has one valid place.
    """
    still_to_come = present.flip(1).to(torch.int32).cumsum(dim=1).flip(1)
    return torch.cat([torch.ones_like(present[:, :1]), still_to_come[:, 1:] > 0], dim=1)


class ConvolutionBlock(nn.Module):
    """A residual block: a depthwise convolution along the axis, then a two-layer network for each place.

    Parameters
    ----------
    width : int
        Number of features.
    kernel_size : int
        Size of the kernel; an odd number.
    dilation : int
        Distance of the places that a kernel covers.
    expansion : int
        Hidden features per feature.
    """

    def __init__(self, width: int, kernel_size: int = 7, dilation: int = 1, expansion: int = 2) -> None:
        super().__init__()
        self.depthwise = nn.Conv1d(
            width,
            width,
            kernel_size,
            padding=dilation * (kernel_size // 2),
            dilation=dilation,
            groups=width,
        )
        self.norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, expansion * width)
        self.shrink = nn.Linear(expansion * width, width)
        nn.init.zeros_(self.shrink.weight)
        nn.init.zeros_(self.shrink.bias)

    def forward(self, features: Tensor, mask: Tensor) -> Tensor:
        """Return features [shape=(B, L, width)]; `mask` [shape=(B, L, 1)] is 0 for padding."""
        mixed = self.depthwise((features * mask).transpose(1, 2)).transpose(1, 2)
        hidden = nn.functional.gelu(self.expand(self.norm(mixed)), approximate="tanh")
        updated: Tensor = features + self.shrink(hidden)
        return updated


class GlobalHead(nn.Sequential):
    """Features -> global embedding."""

    def __init__(self, width: int, embedding_dim: int) -> None:
        super().__init__(
            nn.Linear(width, width), nn.GELU(approximate="tanh"), nn.Linear(width, embedding_dim)
        )


class LeftContext(nn.Module):
    """Context from the left, such as clef, key signature and accidentals.

    Each of several heads averages values over all places up to the current one. The weights depend on the places
    themselves and decay slowly with distance. The averages have few features and are added to the features of
    each place, which otherwise stay local.

    Parameters
    ----------
    width : int
        Number of features.
    n_heads, head_width : int
        Number of heads, and features per head.
    """

    max_decay = 0.01  # of the log weight, per place: the weights of 4000 places stay in the range of float32
    max_log_weight = 8.0

    def __init__(self, width: int, n_heads: int = 8, head_width: int = 8) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.norm = nn.LayerNorm(width)
        self.values = nn.Linear(width, n_heads * head_width)
        self.requests = nn.Linear(width, n_heads)
        self.decay = nn.Parameter(torch.linspace(-4.0, 2.0, n_heads))
        self.output = nn.Linear(n_heads * head_width, width)

    def forward(self, features: Tensor, mask: Tensor) -> Tensor:
        """Return features [shape=(B, L, width)]; `mask` [shape=(B, L, 1)] is 0 for padding."""
        normed = self.norm(features)
        places = torch.arange(features.shape[1], device=features.device, dtype=features.dtype)[:, None]
        log_weights = self.max_log_weight * torch.tanh(self.requests(normed) / self.max_log_weight)
        log_weights = log_weights + self.max_decay * torch.sigmoid(self.decay) * (places - places[-1])
        weights = log_weights.exp() * mask  # (B, L, heads)
        values = self.values(normed).reshape(*weights.shape, -1)  # (B, L, heads, head_width)
        sums = (weights[..., None] * values).cumsum(dim=1)
        averages = sums / weights.cumsum(dim=1).clamp_min(1e-30)[..., None]
        remembered: Tensor = features + self.output(averages.flatten(2))
        return remembered
