"""The FuSiLi model: two towers, their local heads and the two learned scales."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from fusili_mir.errors import InputError
from fusili_mir.model.bundle import Tower
from fusili_training.backbones import Tokens, build_backbone
from fusili_training.backbones.catalogue import read_backbone_options
from fusili_training.backbones.interface import EncoderTower
from fusili_training.model.embeddings import Embeddings
from fusili_training.model.prototype_pooling import PrototypePooling
from fusili_training.model.supervision import NoteHeads

__all__ = ["FusiliModel", "ModelOptions", "PairOutput", "ParameterGroup"]

Heads = Literal["local", "global"]


@dataclass(frozen=True)
class ModelOptions:
    """The parts of a model; read from a recipe and kept in its checkpoints.

    Attributes
    ----------
    backbone : str
        One of `fusili_training.backbones.BACKBONES`.
    backbone_options : mapping
        Sizes of the backbone; options that are not named keep their defaults.
    initial_scale : float
        Initial exp(logit_scale) of both similarities: 1 / 0.07 with pretrained encoders, 1 from scratch.
    max_scale : float
        Upper limit of both scales; the lower limit is 1.
    class_token_in_similarity : bool
        Whether the class token, if there is one, counts as a patch in the local similarity during training.
    note_heads : bool
        Whether the model has heads that predict pitches, for local supervision.
    pooling : str
        Where global embeddings come from. "mean": the towers' own pooling and global heads, as in the paper.
        "prototypes": the local embeddings, see `fusili_training.model.prototype_pooling`.
    """

    backbone: str = "clip-clap"
    backbone_options: Mapping[str, Any] = field(default_factory=dict)
    initial_scale: float = 1.0
    max_scale: float = 100.0
    class_token_in_similarity: bool = True
    note_heads: bool = False
    pooling: Literal["mean", "prototypes"] = "mean"

    def __post_init__(self) -> None:
        if not 1 <= self.initial_scale <= self.max_scale:
            raise InputError(
                f"model.initial_scale is {self.initial_scale:g} and model.max_scale is {self.max_scale:g};"
                " expected 1 <= initial_scale <= max_scale"
            )
        frozen = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in self.backbone_options.items()
        }
        object.__setattr__(self, "backbone_options", frozen)
        read_backbone_options(self.backbone, frozen)


@dataclass(frozen=True)
class PairOutput:
    """A batch of pairs, encoded for training.

    The contrastive loss takes `images`, `recordings` and the two scales; local supervision takes `patches` and
    the tokens.
    """

    images: Embeddings
    recordings: Embeddings
    image_tokens: Tokens
    audio_tokens: Tokens
    local_scale: Tensor
    global_scale: Tensor

    @property
    def patches(self) -> Tensor:
        """The patch embeddings [shape=(B, N, d)], without the class token that training may put in front."""
        return self.images.local[:, -self.image_tokens.local.shape[1] :]


@dataclass(frozen=True)
class ParameterGroup:
    """Parameters that share a learning rate."""

    name: Literal["heads", "encoders"]
    parameters: list[nn.Parameter]


class FusiliModel(nn.Module):
    """Embeds images and recordings in one space, globally and locally.

    `image` and `audio` are the towers, `image_head` and `audio_head` the local heads. The global heads are part
    of the towers, as in the pretrained encoders; with `pooling` by prototypes they are unused and frozen.
    """

    def __init__(self, options: ModelOptions) -> None:
        super().__init__()
        backbone = build_backbone(options.backbone, options.backbone_options)
        self.options = options
        self.image, self.audio = backbone.image, backbone.audio
        self.image_head = nn.Linear(self.image.width, self.image.embedding_dim)
        self.audio_head = nn.Linear(self.audio.width, self.audio.embedding_dim)
        self.logit_scale_local = nn.Parameter(torch.tensor(math.log(options.initial_scale)))
        self.logit_scale_global = nn.Parameter(torch.tensor(math.log(options.initial_scale)))
        self.note_heads = NoteHeads(self.image.width, self.audio.width) if options.note_heads else None
        self.pooling = None
        if options.pooling == "prototypes":
            self.pooling = PrototypePooling(self.image.embedding_dim)
            for tower in (self.image, self.audio):
                for parameter in tower.global_head_parameters():
                    parameter.requires_grad_(False)

    def forward(self, images: Tensor, waveforms: Tensor) -> PairOutput:
        """Encode a batch of pairs for training.

        Parameters
        ----------
        images : Tensor [shape=(B, S, height, width)]
            0 is ink, 1 is paper.
        waveforms : Tensor [shape=(B, n_samples)]
            Waveforms at the sample rate of ``audio.geometry``.
        """
        image_tokens, audio_tokens = self.image(images), self.audio(waveforms)
        return PairOutput(
            self._embed(image_tokens, "image", class_token=self.options.class_token_in_similarity),
            self._embed(audio_tokens, "audio"),
            image_tokens,
            audio_tokens,
            self.logit_scale_local.exp(),
            self.logit_scale_global.exp(),
        )

    def encode_images(self, images: Tensor, heads: Heads = "local") -> Embeddings:
        """Encode images [shape=(B, S, height, width)] into patches, without the class token.

        `heads` are the heads that embed the patches: "global" for models trained with the global loss alone,
        whose local heads are untrained.
        """
        return self._embed(self.image(images), "image", heads)

    def encode_recordings(self, waveforms: Tensor, heads: Heads = "local") -> Embeddings:
        """Encode waveforms [shape=(B, n_samples)]; `heads` as in `encode_images`."""
        return self._embed(self.audio(waveforms), "audio", heads)

    def _embed(
        self, tokens: Tokens, name: Tower, heads: Heads = "local", class_token: bool = False
    ) -> Embeddings:
        tower: EncoderTower = self.image if name == "image" else self.audio
        local_head = self.image_head if name == "image" else self.audio_head
        head = local_head if heads == "local" else tower.project_tokens_globally
        features, mask = tokens.local, tokens.mask
        if class_token and tokens.class_token is not None:
            features = torch.cat([tokens.class_token, features], dim=1)
            mask = None if mask is None else functional.pad(mask, (1, 0), value=True)
        local = functional.normalize(head(features).float(), dim=-1)
        if self.pooling is None:
            projected = tower.project_global(tokens.pooled).float()  # (B, parts, d)
            if tower.normalise_parts:
                projected = functional.normalize(projected, dim=-1)
            pooled = functional.normalize(projected.mean(dim=1), dim=-1)
        elif heads == "local":
            pooled = self.pooling(local[:, -tokens.local.shape[1] :], tokens.mask, name)
        else:
            raise InputError(
                'heads is "global" for a model with pooling = "prototypes", which has no global heads for local'
                ' features; expected "local"'
            )
        return Embeddings(local, mask, pooled)

    @torch.no_grad()
    def clamp_scales(self) -> None:
        """Clamp both scales to [1, max_scale]; to be called after every optimiser step."""
        for logit_scale in (self.logit_scale_local, self.logit_scale_global):
            logit_scale.clamp_(0.0, math.log(self.options.max_scale))

    def freeze_unused(self, alpha: float) -> None:
        """Freeze the heads that a loss with this `alpha` never reaches, as DistributedDataParallel requires."""
        if alpha == 0:
            self.image_head.requires_grad_(False)
            self.audio_head.requires_grad_(False)
            self.logit_scale_local.requires_grad_(False)
        if alpha == 1:
            for parameter in self.global_parameters():
                parameter.requires_grad_(False)

    def global_parameters(self) -> list[nn.Parameter]:
        """Return the parameters that only the global embeddings use: their heads and their scale."""
        if self.pooling is not None:
            return [self.logit_scale_global, *self.pooling.parameters()]
        towers = (self.image, self.audio)
        return [self.logit_scale_global, *(p for tower in towers for p in tower.global_head_parameters())]

    def parameter_groups(self) -> list[ParameterGroup]:
        """Return the trainable parameters in two groups: heads and scales, and the encoders."""
        in_heads = {id(p) for tower in (self.image, self.audio) for p in tower.head_parameters()}
        in_towers = {id(p) for tower in (self.image, self.audio) for p in tower.parameters()}
        trainable = [p for p in self.parameters() if p.requires_grad]
        encoders = [p for p in trainable if id(p) in in_towers and id(p) not in in_heads]
        encoder_ids = {id(p) for p in encoders}
        heads = [p for p in trainable if id(p) not in encoder_ids]
        return [ParameterGroup("heads", heads), ParameterGroup("encoders", encoders)]
