"""Layers along one axis, the columns of a score or the frames of a recording, that ignore padding."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["ConvolutionBlock", "GlobalHead", "LeftContext", "NeighbourBlock", "trailing_mask"]


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


class NeighbourBlock(nn.Module):
    """A residual block: attention to the places around each place, then a two-layer network for each place.

    Weights depend on the places themselves and on how far apart they are. Beyond the reach they are 0, so time
    and memory do not grow with the square of the number of places: places are taken in groups, which see
    themselves and the groups before and after.

    Parameters
    ----------
    width : int
        Number of features.
    reach : int
        How far a place sees, to either side.
    n_heads, head_width : int
        Number of heads, and features per head.
    expansion : int
        Hidden features per feature.
    """

    hidden = -1e4  # added to a logit; finite, as a softmax over padding alone must not give NaN
    offset: Tensor
    too_far: Tensor

    def __init__(
        self, width: int, reach: int, n_heads: int = 4, head_width: int = 24, expansion: int = 2
    ) -> None:
        super().__init__()
        self.reach, self.n_heads, self.head_width = reach, n_heads, head_width
        self.norm = nn.LayerNorm(width)
        self.queries = nn.Linear(width, n_heads * head_width)
        self.keys = nn.Linear(width, n_heads * head_width)
        self.values = nn.Linear(width, n_heads * head_width)
        self.output = nn.Linear(n_heads * head_width, width)
        # At first, every other head looks back and the others ahead, each nearer by than the one before.
        offsets = torch.arange(-reach, reach + 1)
        is_ahead = torch.arange(n_heads)[:, None] % 2 == 1
        wrong_side = torch.where(is_ahead, offsets < 0, offsets > 0)
        scale = reach / 2.0 ** torch.arange(1, n_heads + 1)[:, None]
        self.nearness = nn.Parameter(-offsets.abs() / scale - 3.0 * wrong_side)  # (heads, 2 * reach + 1)
        self.second_norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, expansion * width)
        self.shrink = nn.Linear(expansion * width, width)
        for layer in (self.output, self.shrink):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
        away = torch.arange(3 * reach)[None] - reach - torch.arange(reach)[:, None]  # (reach, 3 * reach)
        self.register_buffer("offset", away.clamp(-reach, reach) + reach, persistent=False)
        self.register_buffer("too_far", (away.abs() > reach) * self.hidden, persistent=False)

    def forward(self, features: Tensor, mask: Tensor) -> Tensor:
        """Return features [shape=(B, L, width)]; `mask` [shape=(B, L, 1)] is 0 for padding."""
        length = features.shape[1]
        normed = self.norm(features)
        n_groups = (length + self.reach - 1) // self.reach
        queries = self._grouped(self.queries(normed) * self.head_width**-0.5, n_groups)
        keys = self._around(self.keys(normed), n_groups)
        values = self._around(self.values(normed), n_groups)
        seen = self._around(mask, n_groups)[..., 0]  # (B, groups, 3 * reach)

        logits = self._by_head(queries) @ self._by_head(keys).transpose(
            3, 4
        )  # (B, groups, heads, reach, 3 * reach)
        logits = logits + self.nearness[:, self.offset] + self.too_far
        weights = (logits + (1 - seen)[:, :, None, None] * self.hidden).softmax(dim=4)
        attended = (weights @ self._by_head(values)).transpose(2, 3).flatten(3).flatten(1, 2)[:, :length]
        features = features + self.output(attended)
        hidden = nn.functional.gelu(self.expand(self.second_norm(features)), approximate="tanh")
        updated: Tensor = features + self.shrink(hidden)
        return updated

    def _grouped(self, places: Tensor, n_groups: int) -> Tensor:
        """Return places [shape=(B, L, d)] in groups [shape=(B, groups, reach, d)], the last one padded with 0."""
        batch, length, width = places.shape
        filled = nn.functional.pad(places, (0, 0, 0, n_groups * self.reach - length))
        return filled.reshape(batch, n_groups, self.reach, width)

    def _around(self, places: Tensor, n_groups: int) -> Tensor:
        """Return what each group sees [shape=(B, groups, 3 * reach, d)]: the groups before, itself and after."""
        batch, length, width = places.shape
        n_places = n_groups * self.reach
        filled = nn.functional.pad(places, (0, 0, self.reach, n_places - length + self.reach))
        seen = [filled[:, start : start + n_places] for start in (0, self.reach, 2 * self.reach)]
        return torch.cat([part.reshape(batch, n_groups, self.reach, width) for part in seen], dim=2)

    def _by_head(self, groups: Tensor) -> Tensor:
        """Return (B, groups, heads, places, head_width) of (B, groups, places, heads * head_width)."""
        return groups.reshape(*groups.shape[:3], self.n_heads, self.head_width).transpose(2, 3)


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
