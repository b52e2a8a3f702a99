"""Augmenting pairs during training: the image like a scan or a photograph, the sound like a recording.

The truth follows the changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import numpy as np

from fusili_mir.errors import InputError
from fusili_training.data.shard_folder import Pair
from fusili_training.rendering.degrade import Degradation, DegradationLimits
from fusili_training.sound.augment_audio import AudioAugmentation, augment_audio

__all__ = ["Augmentation", "augment"]


@dataclass(frozen=True)
class Augmentation:
    """How often and how strongly pairs are augmented.

    Attributes
    ----------
    image_probability, audio_probability : float
        Share of the images and of the recordings that are changed.
    image : DegradationLimits
        Largest changes of an image. The rotation is what remains after a page was deskewed.
    audio : AudioAugmentation
        Largest changes of a recording.
    neighbour_probability : float
        Share of the recordings before and after which one hears what the systems before and after sound like, as
        in a recording of a whole piece.
    audience_probability : float
        How often one of those recordings has applause or speech where the piece begins or ends.
    """

    image_probability: float = 0.5
    audio_probability: float = 0.6
    image: DegradationLimits = field(
        default_factory=lambda: DegradationLimits(
            rotation_deg=0.15, ink=0.24, light=0.3, paper=0.15, blur_px=0.72, noise=0.048, jpeg_loss=36.0
        )
    )
    audio: AudioAugmentation = field(
        default_factory=lambda: AudioAugmentation(
            detune_cents=30.0, colour_db=4.0, reverb_sec=1.2, lowest_snr_db=12.0, gain_db=8.0
        )
    )
    neighbour_probability: float = 0.0
    audience_probability: float = 0.0

    def __post_init__(self) -> None:
        for share in fields(self):
            if share.name.endswith("_probability") and not 0 <= getattr(self, share.name) <= 1:
                raise InputError(f"{share.name} is {getattr(self, share.name)}; expected 0 to 1")


def augment(pair: Pair, limits: Augmentation, rng: np.random.Generator) -> Pair:
    """Augment a pair at random.

    Parameters
    ----------
    pair : Pair
    limits : Augmentation
    rng : np.random.Generator

    Returns
    -------
    Pair
        Its truth gives the new places of the heads and the new times of the notes.
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
    own_sec = pair.own_sec
    if own_sec is not None:
        own_sec = (own_sec[0] * changed.time_factor, own_sec[1] * changed.time_factor)
    return replace(pair, waveform=changed.samples, truth=truth, own_sec=own_sec)


def _augment_image(pair: Pair, limits: Augmentation, rng: np.random.Generator) -> Pair:
    """Degrade all strips of a page alike: each is rotated about its own centre by the same angle."""
    drawn = Degradation.draw_within(limits.image, rng)
    # A draw of its own keeps the random numbers of runs that earlier versions began.
    degradation = replace(drawn, rotation_deg=limits.image.rotation_deg * rng.uniform(-1.0, 1.0))
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
