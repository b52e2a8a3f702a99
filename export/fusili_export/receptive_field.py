"""How far a frame of an audio tower looks to either side: what neighbouring clips must share."""

from __future__ import annotations

from torch import nn

from fusili_mir.errors import InputError
from fusili_training.backbones import AudioTower
from fusili_training.backbones.small import FrameTower

__all__ = ["context_sec"]


def context_sec(tower: AudioTower) -> float:
    """Return how far a frame looks beyond its own beginning and end.

    A tower of fixed windows looks at all of its window and at nothing else, so that no overlap makes its frames
    those of one long pass. One frame then is what is left to the neighbouring clip: the one that the cut itself
    falls on.
    """
    geometry = tower.geometry
    if geometry.window_samples is not None:
        return geometry.frame_sec
    if not isinstance(tower, FrameTower):
        raise InputError(
            f"an audio tower {type(tower).__name__}, whose receptive field is not known; expected FrameTower"
        )
    # The layers follow one another, so that their reaches add up.
    convolutions = [layer for layer in tower.modules() if isinstance(layer, nn.Conv1d)]
    n_frames = sum(layer.dilation[0] * (layer.kernel_size[0] // 2) for layer in convolutions)
    bank = tower.filter_bank
    n_hops = max(bank.low.n_hops, bank.high.n_hops)
    reach_samples = n_frames * geometry.frame_samples + (n_hops - 1) * bank.hop_samples / 2
    return reach_samples / geometry.sample_rate_hz
