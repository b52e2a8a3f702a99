"""Varying pairs while training: the image as a scan or a photograph, the sound as a recording. Truth follows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from fusili_mir.errors import InputError
from fusili_training.data.shard_folder import Pair
from fusili_training.rendering.degrade import Degradation
from fusili_training.sound.augment_audio import AudioAugmentation, augment_audio

__all__ = ["Augmentation", "augment"]


@dataclass(frozen=True)
class Augmentation:
    """How far pairs are varied.

    Attributes
    ----------
    image_probability : float
        Share of images that are changed at all.
    image_strength : float
        Ink, light, blur, noise and compression, 0 to 1, as in `Degradation.draw`.
    rotation_deg : float
        Largest turn: what is left after a page was deskewed.
    audio_probability : float
        Share of recordings that are changed at all.
    audio : AudioAugmentation
    """

    image_probability: float = 0.5
    image_strength: float = 0.6
    rotation_deg: float = 0.15
    audio_probability: float = 0.6
    audio: AudioAugmentation = field(
        default_factory=lambda: AudioAugmentation(
            detune_cents=30.0, colour_db=4.0, reverb_sec=1.2, lowest_snr_db=12.0, gain_db=8.0
        )
    )

    def __post_init__(self) -> None:
        for name, highest in (
            ("image_probability", 1.0),
            ("image_strength", 1.0),
            ("rotation_deg", 3.0),
            ("audio_probability", 1.0),
        ):
            if not 0 <= getattr(self, name) <= highest:
                raise InputError(f"{name} is {getattr(self, name)}; expected 0 to {highest:g}")


def augment(pair: Pair, limits: Augmentation, rng: np.random.Generator) -> Pair:
    """Vary a pair at random.

    Parameters
    ----------
    pair : Pair
    limits : Augmentation
    rng : np.random.Generator

    Returns
    -------
    Pair
        Its truth says where the heads went, and when the notes sound now.
    """
    changes_audio, changes_image = rng.uniform(size=2) < (limits.audio_probability, limits.image_probability)
    if changes_audio:
        pair = _augment_audio(pair, limits, rng)
    return _augment_image(pair, limits, rng) if changes_image else pair


def _augment_audio(pair: Pair, limits: Augmentation, rng: np.random.Generator) -> Pair:
    changed = augment_audio(pair.waveform, pair.sample_rate_hz, limits.audio, rng)
    truth = pair.truth.copy()
    truth["onset_sec"] *= changed.time_factor
    truth["offset_sec"] *= changed.time_factor
    return replace(pair, waveform=changed.samples, truth=truth)


def _augment_image(pair: Pair, limits: Augmentation, rng: np.random.Generator) -> Pair:
    """Spoil all strips in the same way: one page has one angle, by which each strip turns about its middle."""
    drawn = Degradation.draw(rng, limits.image_strength)
    degradation = replace(drawn, rotation_deg=limits.rotation_deg * rng.uniform(-1.0, 1.0))
    height_px, width_px = pair.strip_height_px, pair.image.shape[1]
    strips = pair.image.reshape(-1, height_px, width_px)
    image = np.concatenate([degradation.apply(strip, rng) for strip in strips])
    truth = pair.truth.copy()
    x, y = (truth["x0"] + truth["x1"]) / 2, (truth["y0"] + truth["y1"]) / 2
    top = np.floor(y / height_px) * height_px
    new_x, new_y = degradation.to_degraded(x, y - top, width_px=width_px, height_px=height_px)
    for name, shift in (
        ("x0", new_x - x),
        ("x1", new_x - x),
        ("y0", new_y + top - y),
        ("y1", new_y + top - y),
    ):
        truth[name] += shift.astype(np.float32)
    return replace(pair, image=image, truth=truth)
