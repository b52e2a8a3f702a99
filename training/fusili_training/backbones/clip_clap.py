"""The full-size backbone: open_clip's ViT-B-32 and LAION-CLAP's HTSAT-base."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Self

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from fusili_mir.errors import InputError
from fusili_training.backbones.interface import (
    AudioGeometry,
    AudioTower,
    Backbone,
    ImageGeometry,
    ImageTower,
    Tokens,
)
from fusili_training.backbones.precision import full_precision
from fusili_training.backbones.published_encoders import import_htsat, import_open_clip
from fusili_training.backbones.sizes import check_sizes

__all__ = ["ClipClapOptions", "ClipTower", "HtsatTower", "build_clip_clap"]

_SAMPLE_RATE_HZ = 48_000
_WINDOW_SAMPLES = 10 * _SAMPLE_RATE_HZ
_STAGES = 4  # of HTSAT
_FRAMES_PER_WINDOW = 32
_PROTOCOL_FRAMES_PER_WINDOW = 128


@dataclass(frozen=True)
class ClipClapOptions:
    """Sizes of the two encoders; the defaults are the published ones.

    Attributes
    ----------
    embedding_dim : int
        Dimension d of the global embeddings.
    image_width, image_layers, image_heads : int
        Width, number of layers and number of attention heads of the vision transformer.
    audio_width : int
        Channels of HTSAT's first stage; its frames have eight times as many features.
    audio_depths, audio_heads : tuple of int
        Number of blocks and of attention heads in each of HTSAT's four stages.
    local_before_norm : bool
        Whether local tokens are taken before the transformer's last normalisation (``ln_post``), as in the
        paper's released code; pooled and global features always come after it.
    normalise_windows : bool
        Whether the embedding of each window of 10 s is normalised before the mean, as laion_clap does.
    audio_in_eval_mode : bool
        Whether HTSAT stays in evaluation mode while it is trained, as in laion_clap: no dropout, no masking of
        spectra, and the batch statistics of the pretrained encoder.
    """

    embedding_dim: int = 512
    image_width: int = 768
    image_layers: int = 12
    image_heads: int = 12
    audio_width: int = 128
    audio_depths: tuple[int, ...] = (2, 2, 12, 2)
    audio_heads: tuple[int, ...] = (4, 8, 16, 32)
    local_before_norm: bool = True
    normalise_windows: bool = True
    audio_in_eval_mode: bool = True

    def __post_init__(self) -> None:
        for name in (
            "embedding_dim",
            "image_width",
            "image_heads",
            "audio_width",
            "audio_depths",
            "audio_heads",
        ):
            check_sizes(name, getattr(self, name))
        check_sizes("image_layers", self.image_layers, "layers")
        if self.image_width % self.image_heads:
            raise InputError(
                f"model.backbone_options.image_width is {self.image_width} with {self.image_heads} image_heads; "
                "expected a multiple"
            )
        if not len(self.audio_depths) == len(self.audio_heads) == _STAGES:
            raise InputError(
                f"model.backbone_options has {len(self.audio_depths)} audio_depths and {len(self.audio_heads)} "
                f"audio_heads; expected {_STAGES} each, one for each stage"
            )
        for stage, heads in enumerate(self.audio_heads):
            if self.audio_width * 2**stage % heads:
                raise InputError(
                    f"model.backbone_options.audio_heads has {heads} in stage {stage + 1}, of "
                    f"{self.audio_width * 2**stage} channels; expected a divisor"
                )


def build_clip_clap(options: ClipClapOptions) -> Backbone:
    """Build both towers with random weights."""
    return Backbone("clip-clap", ClipTower(options), HtsatTower(options))


class ClipTower(ImageTower):
    """A vision transformer on 224 x 224 images: 7 x 7 patches of 32 pixels and a class token."""

    geometry = ImageGeometry(height_px=224, width_px=224, patch_width_px=32, patch_height_px=32)
    mean: Tensor
    deviation: Tensor

    def __init__(self, options: ClipClapOptions) -> None:
        super().__init__()
        open_clip = import_open_clip()
        self.width, self.embedding_dim = options.image_width, options.embedding_dim
        self.local_before_norm = options.local_before_norm
        self.visual = open_clip.transformer.VisionTransformer(
            image_size=self.geometry.height_px,
            patch_size=self.geometry.patch_width_px,
            width=options.image_width,
            layers=options.image_layers,
            heads=options.image_heads,
            mlp_ratio=4.0,
            output_dim=options.embedding_dim,
        )
        for name, values in (
            ("mean", open_clip.OPENAI_DATASET_MEAN),
            ("deviation", open_clip.OPENAI_DATASET_STD),
        ):
            self.register_buffer(name, torch.tensor(values).view(1, 3, 1, 1), persistent=False)

    def forward(self, inputs: Tensor) -> Tokens:
        """Encode images [shape=(B, 1, 224, 224)] into 49 patches."""
        self.geometry.check(inputs)
        colours = (inputs - self.mean) / self.deviation
        features = self.visual.forward_intermediates(
            colours,
            indices=1,
            normalize_intermediates=not self.local_before_norm,
            output_fmt="NLC",
            output_extra_tokens=True,
            intermediates_only=True,
        )
        class_token: Tensor = features["image_intermediates_prefix"][0]
        return Tokens(features["image_intermediates"][0], self._normalised(class_token), class_token)

    def _normalised(self, tokens: Tensor) -> Tensor:
        normalised: Tensor = self.visual.ln_post(tokens) if self.local_before_norm else tokens
        return normalised

    def project_global(self, features: Tensor) -> Tensor:
        """Apply CLIP's projection."""
        projected: Tensor = features @ self.visual.proj
        return projected

    def project_tokens_globally(self, tokens: Tensor) -> Tensor:
        """Apply the last normalisation, if the tokens come before it, and CLIP's projection."""
        return self.project_global(self._normalised(tokens))

    def freeze_pretrained(self) -> None:
        """Freeze the patch embedding, the positional embedding and the first normalisation."""
        self.visual.conv1.requires_grad_(False)
        self.visual.ln_pre.requires_grad_(False)
        self.visual.positional_embedding.requires_grad_(False)

    def set_gradient_checkpointing(self, enabled: bool) -> None:
        """Recompute the transformer blocks in the backward pass."""
        self.visual.set_grad_checkpointing(enabled)

    def head_parameters(self) -> Iterator[nn.Parameter]:
        """Yield the projection, the last normalisation and the class embedding."""
        yield self.visual.proj
        yield self.visual.class_embedding
        yield from self.visual.ln_post.parameters()

    def global_head_parameters(self) -> Iterator[nn.Parameter]:
        """Yield the projection, and the last normalisation if local tokens are taken before it."""
        yield self.visual.proj
        if self.local_before_norm:
            yield from self.visual.ln_post.parameters()


class HtsatTower(AudioTower):
    """HTSAT on windows of 10 s at 48 kHz, each encoded separately into 32 frames.

    The published encoder repeats each of these frames 32 times; the paper's protocol keeps four of each.
    """

    geometry = AudioGeometry(
        sample_rate_hz=_SAMPLE_RATE_HZ,
        frame_samples=_WINDOW_SAMPLES // _FRAMES_PER_WINDOW,
        window_samples=_WINDOW_SAMPLES,
        frame_repeats=_PROTOCOL_FRAMES_PER_WINDOW // _FRAMES_PER_WINDOW,
    )

    def __init__(self, options: ClipClapOptions) -> None:
        super().__init__()
        self.width, self.embedding_dim = 8 * options.audio_width, options.embedding_dim
        self.normalise_parts, self.in_eval_mode = options.normalise_windows, options.audio_in_eval_mode
        self.gradient_checkpointing = False
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="torch.meshgrid", category=UserWarning)
            self.branch = import_htsat().HTSAT_Swin_Transformer(
                spec_size=256,
                patch_size=4,
                patch_stride=(4, 4),
                num_classes=527,
                embed_dim=options.audio_width,
                depths=list(options.audio_depths),
                num_heads=list(options.audio_heads),
                window_size=8,
                config=SimpleNamespace(
                    sample_rate=_SAMPLE_RATE_HZ,
                    window_size=1024,
                    hop_size=480,
                    mel_bins=64,
                    fmin=50,
                    fmax=14000,
                ),
            )
        # The classifier is part of the published checkpoint, but is never run.
        self.branch.tscam_conv.requires_grad_(False)
        self.branch.head.requires_grad_(False)
        self.projection = nn.Sequential(
            nn.Linear(self.width, options.embedding_dim),
            nn.ReLU(),
            nn.Linear(options.embedding_dim, options.embedding_dim),
        )

    def forward(self, inputs: Tensor) -> Tokens:
        """Encode waveforms [shape=(B, windows * 480000)] into windows * 32 frames."""
        self.geometry.check(inputs)
        batch = inputs.shape[0]
        frames = self._encode_windows(inputs.reshape(-1, _WINDOW_SAMPLES))  # (B * windows, 32, width)
        pooled = frames.mean(dim=1).reshape(batch, -1, self.width)
        return Tokens(frames.reshape(batch, -1, self.width), pooled)

    def _encode_windows(self, windows: Tensor) -> Tensor:
        branch = self.branch
        with full_precision(windows.device):
            mel = branch.logmel_extractor(branch.spectrogram_extractor(windows))  # (windows, 1, 1001, 64)
            mel = branch.bn0(mel.transpose(1, 3)).transpose(1, 3)
        if branch.training:
            mel = branch.spec_augmenter(mel)
        tokens = branch.pos_drop(branch.patch_embed(branch.reshape_wav2img(mel)))
        for stage in branch.layers:
            for block in stage.blocks:
                if self.gradient_checkpointing and self.training:
                    tokens, _ = checkpoint(block, tokens, use_reentrant=False)
                else:
                    tokens, _ = block(tokens)
            if stage.downsample is not None:
                tokens = stage.downsample(tokens)
        tokens = branch.norm(tokens)  # (windows, 64, width): 4 periods x 2 bands x 8 steps
        # t: period of 2.5 s, f: band, c: time step within a period
        cells: Tensor = tokens.reshape(-1, 4, 2, 8, self.width)  # (windows, t, f, c, width)
        return cells.mean(dim=2).flatten(1, 2)

    def train(self, mode: bool = True) -> Self:
        """Set the mode; the encoder itself may stay in evaluation mode, see `ClipClapOptions`."""
        super().train(mode)
        if self.in_eval_mode:
            self.branch.eval()
        return self

    def project_global(self, features: Tensor) -> Tensor:
        """Apply CLAP's projection."""
        projected: Tensor = self.projection(features)
        return projected

    def set_gradient_checkpointing(self, enabled: bool) -> None:
        """Recompute the transformer blocks in the backward pass."""
        self.gradient_checkpointing = enabled

    def head_parameters(self) -> Iterator[nn.Parameter]:
        """Yield the projection."""
        return self.projection.parameters()

    def global_head_parameters(self) -> Iterator[nn.Parameter]:
        """Yield the projection."""
        return self.projection.parameters()
