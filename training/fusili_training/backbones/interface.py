"""The interface of a backbone: two towers that turn a batch into tokens, and the geometry of these tokens.

Images are float32 [shape=(B, S, height, width)]: 0 is ink, 1 is paper, S is the number of strips in an image (the
staves of a system, or 1). Recordings are float32 waveforms [shape=(B, n_samples)] with a full scale of 1. All
scaling and all spectra are computed inside the towers, so that training and inference cannot differ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor, nn

from fusili_mir.errors import InputError
from fusili_mir.geometry import FrameGrid, PatchGrid

__all__ = ["AudioGeometry", "AudioTower", "Backbone", "EncoderTower", "ImageGeometry", "ImageTower", "Tokens"]


@dataclass(frozen=True)
class Tokens:
    """The features of a batch, before the heads.

    Attributes
    ----------
    local : Tensor [shape=(B, L, width)]
        One token per patch (row-major) or per frame.
    pooled : Tensor [shape=(B, P, width)]
        Global features of P parts of the input; the global embedding is the mean of their projections.
    class_token : Tensor [shape=(B, 1, width)] or None
        The encoder's class token, which is not a patch.
    mask : Tensor of bool [shape=(B, L)] or None
        False where `local` is padding; None if the backbone has no padding.
    """

    local: Tensor
    pooled: Tensor
    class_token: Tensor | None = None
    mask: Tensor | None = None


@dataclass(frozen=True)
class ImageGeometry:
    """The input of an image tower, and the places of its patches.

    Attributes
    ----------
    height_px : int
        Height of one strip.
    width_px : int or None
        Width of an image; None: any.
    patch_width_px, patch_height_px : int
        Size of a patch in a strip; a patch as high as the strip covers all strips of the image.
    max_strips : int or None
        Largest number of strips in an image; None: any number.
    staff_space_px, margin_spaces : float or None
        Distance of the staff lines, and margin above and below the staff in staff spaces; None unless every strip
        shows one staff.
    """

    height_px: int
    width_px: int | None
    patch_width_px: int
    patch_height_px: int
    max_strips: int | None = 1
    staff_space_px: float | None = None
    margin_spaces: float | None = None

    def grid(self, width_px: int, n_strips: int = 1) -> PatchGrid:
        """Return the patches of an image of a given width; an incomplete last column is left out."""
        cols = width_px // self.patch_width_px
        rows = self.height_px // self.patch_height_px
        return PatchGrid(
            rows, cols, self.patch_width_px, self.patch_height_px * (n_strips if rows == 1 else 1)
        )

    def check(self, images: Tensor) -> None:
        """Raise an error if the tower cannot take these images [shape=(B, S, height, width)]."""
        fits = (
            images.ndim == 4
            and images.shape[2] == self.height_px
            and (
                images.shape[3] == self.width_px if self.width_px else images.shape[3] >= self.patch_width_px
            )
            and (self.max_strips is None or images.shape[1] <= self.max_strips)
        )
        if not fits:
            strips = "S" if self.max_strips is None else self.max_strips
            raise InputError(
                f"images of shape {tuple(images.shape)};"
                f" expected (B, {strips}, {self.height_px}, {self.width_px or 'width'})"
            )


@dataclass(frozen=True)
class AudioGeometry:
    """The input of an audio tower, and the times of its frames.

    Attributes
    ----------
    sample_rate_hz : int
        Sample rate of the waveform.
    frame_samples : int
        Samples from one frame to the next.
    window_samples : int or None
        The length of the waveform must be a multiple of this; None: any length, without an incomplete last frame.
    frame_repeats : int
        How many frames of the paper's protocol one frame stands for.
    """

    sample_rate_hz: int
    frame_samples: int
    window_samples: int | None = None
    frame_repeats: int = 1

    @property
    def frame_sec(self) -> float:
        """Time from one frame to the next."""
        return self.frame_samples / self.sample_rate_hz

    def grid(self, n_samples: int) -> FrameGrid:
        """Return the frames of a waveform of a given length."""
        return FrameGrid(n_samples // self.frame_samples, self.frame_sec)

    def check(self, waveforms: Tensor) -> None:
        """Raise an error if the tower cannot take these waveforms [shape=(B, n_samples)]."""
        if waveforms.ndim != 2:
            raise InputError(f"waveforms of shape {tuple(waveforms.shape)}; expected (B, n_samples), mono")
        n_samples = waveforms.shape[1]
        unit = self.window_samples or self.frame_samples
        if n_samples < unit or (self.window_samples and n_samples % unit):
            raise InputError(
                f"waveforms of {n_samples} samples;"
                f" expected {'a multiple of' if self.window_samples else 'at least'} {unit}"
                f" ({unit / self.sample_rate_hz:g} s at {self.sample_rate_hz} Hz): pad them with zeros"
            )


class EncoderTower(nn.Module, ABC):
    """One encoder.

    Attributes
    ----------
    width : int
        Number of features of a token.
    embedding_dim : int
        Dimension d of the global embeddings.
    normalise_parts : bool
        Whether the projections of the parts of an input are normalised before their mean is taken.
    """

    width: int
    embedding_dim: int
    normalise_parts: bool = False

    @abstractmethod
    def forward(self, inputs: Tensor) -> Tokens:
        """Encode a batch."""

    @abstractmethod
    def project_global(self, features: Tensor) -> Tensor:
        """Apply the global head to pooled features [shape=(..., width)] -> [shape=(..., embedding_dim)]."""

    def project_tokens_globally(self, tokens: Tensor) -> Tensor:
        """Apply the global head to local tokens, for models whose local heads are untrained."""
        return self.project_global(tokens)

    def freeze_pretrained(self) -> None:
        """Freeze the parameters that are not fine-tuned when the weights are pretrained; none by default."""

    def set_gradient_checkpointing(self, enabled: bool) -> None:
        """Recompute activations in the backward pass to save memory; without effect by default."""

    def head_parameters(self) -> Iterator[nn.Parameter]:
        """Yield the parameters that are trained with the learning rate of the heads; none by default."""
        return iter(())

    def global_head_parameters(self) -> Iterator[nn.Parameter]:
        """Yield the parameters that only the global embedding uses; none by default."""
        return iter(())


class ImageTower(EncoderTower):
    """Images [shape=(B, S, height, width)] -> patch tokens."""

    geometry: ImageGeometry


class AudioTower(EncoderTower):
    """Waveforms [shape=(B, n_samples)] -> frame tokens."""

    geometry: AudioGeometry


@dataclass(frozen=True)
class Backbone:
    """The two towers of a model."""

    name: str
    image: ImageTower
    audio: AudioTower
