"""Reading weights from files without running any code in them.

Only `download_clip_weights` uses the network, and it is called only if a recipe says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fusili_mir.boundary import reading, reason, refuse_address
from fusili_mir.errors import InputError
from fusili_training.backbones.published_encoders import import_open_clip
from fusili_training.model.model import FusiliModel

__all__ = [
    "CLAP_KEYS",
    "CLIP_KEYS",
    "RELEASED_KEYS",
    "ReleasedParts",
    "download_clip_weights",
    "is_released_checkpoint",
    "load_clap_weights",
    "load_clip_weights",
    "load_released_checkpoint",
    "load_state_dict",
    "read_checkpoint",
]

# Prefixes in a file -> prefixes in `FusiliModel`. Other weights in a file, such as text encoders, are ignored.
RELEASED_ENCODER_KEYS = {
    "image_model.visual.": "image.visual.",
    "audio_model.model.audio_branch.": "audio.branch.",
    "audio_model.model.audio_projection.": "audio.projection.",
}
# The released code creates these only if its method trains them.
RELEASED_LOCAL_KEYS = {
    "proj_img.": "image_head.",
    "proj_audio.": "audio_head.",
    "logit_scale_local": "logit_scale_local",
}
RELEASED_GLOBAL_KEYS = {"logit_scale_global": "logit_scale_global"}
RELEASED_KEYS = RELEASED_ENCODER_KEYS | RELEASED_LOCAL_KEYS | RELEASED_GLOBAL_KEYS
CLIP_KEYS = {"visual.": "image.visual."}
CLAP_KEYS = {"audio_branch.": "audio.branch.", "audio_projection.": "audio.projection."}

_PRETRAINED_CLIP = ("ViT-B-32", "laion2b_s34b_b79k")
_STATE_KEYS = ("model_state_dict", "state_dict")
_WRAPPER = "module."  # prefix that DistributedDataParallel adds to every key


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a safetensors file, or a torch file that contains tensors and plain values only."""
    expected = "expected the path of a .safetensors or torch file"
    refuse_address(path)
    with reading(path, expected):
        is_file = path.is_file()
    if not is_file:
        raise InputError(f"there is no weights file {path}; {expected}")
    if path.suffix == ".safetensors":
        return _read_safetensors(path)
    try:
        with torch.serialization.safe_globals(_numpy_scalar_types()):
            content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:  # unpickling raises whatever a damaged file makes it trip over
        raise InputError(
            f"{path} cannot be read safely as a torch weights file ({reason(error)}); expected tensors and plain"
            " values, saved by torch.save since torch 1.6, or a .safetensors file"
        ) from error
    if not isinstance(content, dict):
        raise InputError(f"{path} holds a {type(content).__name__}; expected a dictionary of tensors")
    return content


def load_state_dict(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a weights file by name, without wrappers and prefixes."""
    content: Any = read_checkpoint(path)
    for key in _STATE_KEYS:
        if isinstance(content.get(key), Mapping):
            content = content[key]
            break
    state = {str(name): value for name, value in content.items() if isinstance(value, Tensor)}
    if not state:
        raise InputError(f"{path} holds no tensors; expected a state dictionary")
    if all(name.startswith(_WRAPPER) for name in state):
        state = {name.removeprefix(_WRAPPER): value for name, value in state.items()}
    return state


def load_clip_weights(model: FusiliModel, path: Path) -> None:
    """Load CLIP's vision transformer from an open_clip checkpoint into a clip-clap model."""
    _load(model, load_state_dict(path), CLIP_KEYS, ("image.visual.",), path)


def load_clap_weights(model: FusiliModel, path: Path) -> None:
    """Load HTSAT and its projection from a LAION-CLAP checkpoint into a clip-clap model."""
    _load(model, load_state_dict(path), CLAP_KEYS, ("audio.branch.", "audio.projection."), path)


def load_released_checkpoint(model: FusiliModel, path: Path) -> ReleasedParts:
    """Load a checkpoint of the paper's released code into a clip-clap model, and return what it was trained with.

    Heads and scales that the file does not have keep their initial values.
    """
    state = load_state_dict(path)
    parts = ReleasedParts.of(state)
    keys = RELEASED_ENCODER_KEYS | (RELEASED_LOCAL_KEYS if parts.local_heads else {})
    keys |= RELEASED_GLOBAL_KEYS if parts.global_scale else {}
    _load(model, state, keys, tuple(keys.values()), path)
    return parts


@dataclass(frozen=True)
class ReleasedParts:
    """What a checkpoint of the released code has besides its encoders: local heads and scale, global scale."""

    local_heads: bool
    global_scale: bool

    @classmethod
    def of(cls, state: Iterable[str]) -> ReleasedParts:
        """Read from the names of weights; some of the local weights are enough for local heads."""
        names = list(state)
        has = {key: any(name.startswith(key) for name in names) for key in RELEASED_KEYS}
        return cls(
            any(has[key] for key in RELEASED_LOCAL_KEYS), all(has[key] for key in RELEASED_GLOBAL_KEYS)
        )

    @property
    def alpha(self) -> float:
        """Weight of the local loss: 0 without local heads, 1 without a global scale, else the paper's 0.5."""
        return 0.0 if not self.local_heads else 0.5 if self.global_scale else 1.0


def is_released_checkpoint(state: Iterable[str]) -> bool:
    """Return whether these are the names of weights of the paper's released code, for any of its losses."""
    names = list(state)
    encoders = all(any(name.startswith(prefix) for name in names) for prefix in RELEASED_ENCODER_KEYS)
    parts = ReleasedParts.of(names)
    return encoders and (parts.local_heads or parts.global_scale)


def download_clip_weights(model: FusiliModel) -> None:
    """Download CLIP's pretrained weights by open_clip's tag and load them into a clip-clap model."""
    name, tag = _PRETRAINED_CLIP
    pretrained = import_open_clip().create_model(name, pretrained=tag)
    state = {f"visual.{key}": value for key, value in pretrained.visual.state_dict().items()}
    _load(model, state, CLIP_KEYS, ("image.visual.",), Path(f"open_clip:{name}:{tag}"))


def _load(
    model: nn.Module,
    state: Mapping[str, Tensor],
    keys: Mapping[str, str],
    wanted: tuple[str, ...],
    path: Path,
) -> None:
    """Copy the weights with the `wanted` prefixes from a file into the model; all must be there and fit."""
    renamed = {
        ours + name.removeprefix(theirs): value
        for name, value in state.items()
        for theirs, ours in keys.items()
        if name.startswith(theirs)
    }
    own = model.state_dict()
    expected = {name: value for name, value in own.items() if name.startswith(wanted)}
    if not expected:
        raise InputError(f"{path} is for the clip-clap backbone; this model has no {wanted[0]}*")
    missing = sorted(expected.keys() - renamed.keys())
    if missing:
        raise InputError(f"{path} lacks {len(missing)} of {len(expected)} weights, such as {missing[0]}")
    for name, value in expected.items():
        if renamed[name].shape != value.shape:
            raise InputError(
                f"{path}: {name} has shape {tuple(renamed[name].shape)}; expected {tuple(value.shape)}"
            )
    model.load_state_dict({name: renamed[name] for name in expected}, strict=False)


def _read_safetensors(path: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    try:
        return dict(load_file(path))
    except Exception as error:  # those of safetensors and of torch have no base in common
        raise InputError(f"{path} is not a safetensors file ({reason(error)})") from error


def _numpy_scalar_types() -> list[Any]:
    """Return the types of the numpy scalars that LAION-CLAP's checkpoints contain besides tensors."""
    scalar = np.float64(0).__reduce__()[0]
    return [
        scalar,
        np.dtype,
        type(np.dtype(np.float64)),
        type(np.dtype(np.float32)),
        type(np.dtype(np.int64)),
    ]
