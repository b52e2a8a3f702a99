"""Two small convolutional networks that read bar lines and the brackets of endings, in numpy.

Both look at strips of a system in which the staff lines lie at fixed rows. `bar_line_scores` looks at all staves,
which must agree: a stem stands in one of them, a bar line in all. `ending_scores` looks above the first staff.

The weights in `sign_network.npz` are what `benchmarks/fit_sign_network.py` writes, which fits them to engravings.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from fusili_mir.arrays import Float32

__all__ = [
    "BAR_LINE_CLASSES",
    "BAR_LINE_COLUMN_PX",
    "BAR_LINE_MARGIN_SPACES",
    "ENDING_CLASSES",
    "ENDING_COLUMN_PX",
    "ENDING_MARGIN_SPACES",
    "ENDING_ROWS_PX",
    "SPACE_PX",
    "bar_line_scores",
    "ending_scores",
]

SPACE_PX = 8
"""Distance of the staff lines in the strips."""
BAR_LINE_CLASSES = (
    "none",
    "single",
    "double",
    "final",
    "dotted",
    "repeat-begin",
    "repeat-end",
    "repeat-both",
)
BAR_LINE_COLUMN_PX = 2
BAR_LINE_MARGIN_SPACES = 3.0
ENDING_CLASSES: tuple[tuple[int, ...] | None, ...] = (None, (1,), (2,), (3,), (1, 2), ())
"""What may begin in a column: nothing, a bracket with these numbers, or one with others."""
ENDING_COLUMN_PX = 4
ENDING_MARGIN_SPACES = 15.0
ENDING_ROWS_PX = 140
"""Height of the strip above and around the top line of the first staff. The network takes any: it was fitted to
strips that reach 10 spaces up."""

_LEAST_INK = 0.2
_AT_ONCE_PX = 1024  # columns; bounds memory
_REACH_PX = 64


def bar_line_scores(strips: Float32) -> Float32:
    """Return how likely each kind of bar line is in each column of a system.

    Parameters
    ----------
    strips : np.ndarray [shape=(n_staves, height, width)]
        Ink of the staves, 8 pixels a space, with 3 spaces above and below; 0 is paper, 1 is black.

    Returns
    -------
    np.ndarray [shape=(n_columns, 8)]
        Probabilities of `BAR_LINE_CLASSES` in columns of 2 pixels.
    """
    return _softmax(_in_pieces(_bar_line_outputs, _evened(strips), BAR_LINE_COLUMN_PX))


def ending_scores(strip: Float32) -> tuple[Float32, Float32]:
    """Return where brackets of endings begin, and where one is overhead.

    Parameters
    ----------
    strip : np.ndarray [shape=(height, width)]
        Ink of the first staff, 8 pixels a space: `ENDING_ROWS_PX` rows from 15 spaces above its top line.

    Returns
    -------
    begins : np.ndarray [shape=(n_columns, 6)]
        Probabilities of `ENDING_CLASSES` in columns of 4 pixels.
    is_inside : np.ndarray [shape=(n_columns,)]
        Probability that a bracket runs above the column.
    """
    outputs = _in_pieces(_ending_outputs, _evened(strip[None]), ENDING_COLUMN_PX)
    inside = 1 / (1 + np.exp(-np.clip(outputs[:, 6], -30, 30)))
    return _softmax(outputs[:, :6]), inside.astype(np.float32)


def _bar_line_outputs(strips: Float32) -> Float32:
    weights = _weights("bar_lines")
    staves = []
    for strip in strips:
        x = _relu(_convolve(strip[None], *weights[0], stride=(2, 1)))
        x = _relu(_convolve(x, *weights[1], stride=(2, 2)))
        x = _relu(_convolve(x, *weights[2], stride=(2, 1)))
        staves.append(_relu(_convolve(x.reshape(-1, 1, x.shape[2]), *weights[3])))
    x = np.concatenate([np.mean(staves, axis=0), np.min(staves, axis=0)])
    x = _relu(_convolve(x, *weights[4]))
    return _convolve(x, *weights[5])[:, 0].T


def _ending_outputs(strips: Float32) -> Float32:
    weights = _weights("endings")
    x = _relu(_convolve(strips, *weights[0], stride=(2, 2)))
    x = _relu(_convolve(x, *weights[1], stride=(2, 2)))
    x = _relu(_convolve(x, *weights[2]))
    x = _relu(_convolve(x, *weights[3])).max(axis=1, keepdims=True)
    x = _relu(_convolve(x, *weights[4]))
    return _convolve(x, *weights[5])[:, 0].T


def _in_pieces(network: Callable[[Float32], Float32], strips: Float32, column_px: int) -> Float32:
    """Run a network on pieces of a long strip that overlap by more than it can see."""
    width = strips.shape[2]
    found = []
    for start in range(0, width, _AT_ONCE_PX):
        left, right = max(0, start - _REACH_PX), min(width, start + _AT_ONCE_PX + _REACH_PX)
        outputs = network(strips[:, :, left:right])
        skipped = (start - left) // column_px
        kept = -(-(min(width, start + _AT_ONCE_PX) - start) // column_px)
        found.append(outputs[skipped : skipped + kept])
    return np.concatenate(found)


def _evened(strips: Float32) -> Float32:
    """Make the darkest ink of strips about 1."""
    darkest = max(float(np.percentile(strips, 99.5)), _LEAST_INK)
    return np.asarray(np.clip(strips / darkest, 0, 1.5), np.float32)


def _convolve(x: Float32, weights: Float32, bias: Float32, stride: tuple[int, int] = (1, 1)) -> Float32:
    """Convolve channels [shape=(c, height, width)] with weights [shape=(n, c, rows, columns)], with padding."""
    _, _, rows, columns = weights.shape
    padded = np.pad(x, ((0, 0), (rows // 2, rows // 2), (columns // 2, columns // 2)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (1, rows, columns))[:, :, :, 0]
    seen = seen[:, :: stride[0], :: stride[1]]  # (c, height, width, rows, columns)
    height, width = seen.shape[1:3]
    flat = seen.transpose(0, 3, 4, 1, 2).reshape(-1, height * width)
    made = weights.reshape(len(weights), -1) @ flat + bias[:, None]
    return np.asarray(made.reshape(-1, height, width), np.float32)


def _relu(x: Float32) -> Float32:
    return np.maximum(x, np.float32(0))


def _softmax(x: Float32) -> Float32:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), np.float32)


@cache
def _weights(name: str) -> tuple[tuple[Float32, Float32], ...]:
    with np.load(Path(__file__).with_name("sign_network.npz")) as file:
        layers = [(file[f"{name}.{n}.weight"], file[f"{name}.{n}.bias"]) for n in range(1, 7)]
    return tuple(_layer(weight, bias) for weight, bias in layers)


def _layer(weight: Float32, bias: Float32) -> tuple[Float32, Float32]:
    upright = weight[:, :, None] if weight.ndim == 3 else weight  # (n, c, 1, columns)
    return upright.astype(np.float32), bias.astype(np.float32)
