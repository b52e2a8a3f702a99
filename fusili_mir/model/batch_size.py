"""How many segments or clips go through a graph together.

On a CPU a larger batch is not faster and takes more memory, so two are enough. A GPU takes as many as fit into
half of its free memory; the work memory of an item is estimated from the size of its input.
"""

from __future__ import annotations

import numpy as np

from fusili_mir.arrays import Float32
from fusili_mir.model.bundle import TOWERS, Bundle, Tower
from fusili_mir.model.manifest import ImageSpec
from fusili_mir.sessions.devices import Device, free_bytes

__all__ = ["choose_batch_size", "item_bytes", "typical_batch"]

_CPU_BATCH = 2
_LARGEST = 256
_UNKNOWN = 16  # where the free memory is not known
_WORK_PER_INPUT = 60  # bytes of work memory per byte of input
_TYPICAL_WIDTH_PX, _TYPICAL_STRIPS, _TYPICAL_SEC = 768, 2, 20.0


def choose_batch_size(bundle: Bundle, device: Device) -> int:
    """Return the batch size for a bundle on a device."""
    most = _CPU_BATCH if device.name == "cpu" else _LARGEST
    free = free_bytes(device)
    if free is None:
        return min(most, _UNKNOWN)
    largest_item = max(item_bytes(bundle, tower) for tower in TOWERS)
    return int(np.clip(free // 2 // largest_item, 1, most))


def item_bytes(bundle: Bundle, tower: Tower) -> int:
    """Return the work memory that one item of a batch takes, roughly."""
    return _WORK_PER_INPUT * typical_batch(bundle, tower).nbytes


def typical_batch(bundle: Bundle, tower: Tower) -> Float32:
    """Return a batch of one item of the usual size: paper, or silence."""
    spec = bundle.spec(tower)
    if isinstance(spec, ImageSpec):
        strips = 1 if spec.segment == "square" else _TYPICAL_STRIPS
        width_px = spec.width_px or _TYPICAL_WIDTH_PX // spec.patch_width_px * spec.patch_width_px
        return np.ones((1, strips, spec.height_px, width_px), np.float32)
    n_frames = spec.clip_frames or round(_TYPICAL_SEC / spec.frame_sec)
    return np.zeros((1, n_frames * spec.frame_samples), np.float32)
