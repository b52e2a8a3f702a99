"""Collating pairs into a batch for the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fusili_training.data.shard_folder import Pair
from fusili_training.truth import TruthArray

__all__ = ["Batch", "collate"]

_WIDTH_UNIT_PX = 32  # a multiple of all patch widths; keeps the number of different shapes low


@dataclass(frozen=True, eq=False)
class Batch:
    """A batch of B pairs.

    Attributes
    ----------
    images : Tensor [shape=(B, S, H, W)]
        0 is ink, 1 is paper; S strips per image, 1 for squares. Padded with paper on the right and below.
    waveforms : Tensor [shape=(B, n_samples)]
        Padded with zeros at the end.
    is_original : Tensor of bool [shape=(B,)]
        False for mutants.
    keys : tuple of str
    truths : tuple of np.ndarray of `TRUTH_DTYPE`
    own_sec : tuple of (float, float) or None
        From when to when each segment itself is heard; None: throughout. Empty: all are.
    """

    images: Tensor
    waveforms: Tensor
    is_original: Tensor
    keys: tuple[str, ...]
    truths: tuple[TruthArray, ...]
    own_sec: tuple[tuple[float, float] | None, ...] = ()


def collate(pairs: Sequence[Pair], n_samples: int | None = None) -> Batch:
    """Collate pairs into a batch.

    Parameters
    ----------
    pairs : sequence of Pair
        Pairs with the same strip height and sample rate.
    n_samples : int, optional
        Length of the waveforms, to which longer ones are cropped; by default that of the longest.

    Returns
    -------
    Batch
    """
    height_px = pairs[0].strip_height_px
    n_strips = max(pair.image.shape[0] // height_px for pair in pairs)
    widest_px = max(pair.image.shape[1] for pair in pairs)
    width_px = -(-widest_px // _WIDTH_UNIT_PX) * _WIDTH_UNIT_PX
    length = n_samples or max(len(pair.waveform) for pair in pairs)
    images = torch.ones(len(pairs), n_strips, height_px, width_px)
    waveforms = torch.zeros(len(pairs), length)
    for item, pair in enumerate(pairs):
        strips = torch.from_numpy(pair.image.copy()).reshape(-1, height_px, pair.image.shape[1])
        images[item, : len(strips), :, : strips.shape[2]] = strips / 255
        heard = torch.from_numpy(pair.waveform[:length])
        waveforms[item, : len(heard)] = heard
    return Batch(
        images,
        waveforms,
        torch.tensor([pair.mutant_of is None for pair in pairs]),
        tuple(pair.key for pair in pairs),
        tuple(pair.truth for pair in pairs),
        tuple(pair.own_sec for pair in pairs),
    )
