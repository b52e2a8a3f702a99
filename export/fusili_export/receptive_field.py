"""The receptive field of an audio tower: how much neighbouring clips must overlap."""

from __future__ import annotations

from torch import nn

from fusili_mir.errors import InputError
from fusili_training.backbones import AudioTower
from fusili_training.backbones.sequence_layers import NeighbourBlock
from fusili_training.backbones.small import FrameTower

__all__ = ["context_sec"]


def context_sec(tower: AudioTower) -> float:
    """Return how far the receptive field of a frame extends beyond the frame, on each side.

    In a tower with fixed windows, a frame sees its whole window and nothing else, so no overlap gives the frames
    of one long pass. The context is then one frame, so that no frame that is kept touches a cut.
    """
    geometry = tower.geometry
    if geometry.window_samples is not None:
        return geometry.frame_sec
    if not isinstance(tower, FrameTower):
        raise InputError(
            f"the receptive field of the audio tower {type(tower).__name__} is unknown; expected a FrameTower"
        )
    # The layers are sequential, so their contexts add up.
    convolutions = [layer for layer in tower.modules() if isinstance(layer, nn.Conv1d)]
    n_frames = sum(layer.dilation[0] * (layer.kernel_size[0] // 2) for layer in convolutions)
    n_frames += sum(layer.reach for layer in tower.modules() if isinstance(layer, NeighbourBlock))
    bank = tower.filter_bank
    n_hops = max(bank.low.n_hops, bank.high.n_hops)
    reach_samples = n_frames * geometry.frame_samples + (n_hops - 1) * bank.hop_samples / 2
    return reach_samples / geometry.sample_rate_hz
