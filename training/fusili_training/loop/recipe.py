"""The recipe of a training run: everything that decides how a model is trained.

Recipes are written in TOML (see `fusili_training.loop.recipe_files`), with one table per section, and are stored
in checkpoints. Each section refuses values that cannot work; `Recipe` refuses sections that do not fit together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from fusili_mir.errors import InputError
from fusili_training.data.augmentation import Augmentation
from fusili_training.model.model import ModelOptions

__all__ = [
    "DataOptions",
    "LossOptions",
    "OptimiserOptions",
    "Recipe",
    "TrainingOptions",
    "WeightsOptions",
]

_MOST = 1e12  # of any number: steps of a run that outlives us

_MOST_ITERATIONS, _MOST_PAIRS, _MOST_WORKERS = 10_000, 10_000_000, 1024


@dataclass(frozen=True)
class WeightsOptions:
    """Where the initial weights come from, and which of them are trained.

    Attributes
    ----------
    clip : str
        "random", "download" (open_clip's pretrained tag), or the path of an open_clip checkpoint.
    clap : str
        "random", or the path of a LAION-CLAP checkpoint.
    checkpoint : str
        Path of a checkpoint, ours or of the paper's released code, or folder of a bundle of the small backbone,
        with which a new run starts; "": none.
    trained : str
        "all", or "global heads": all other weights stay those of the checkpoint, and only the global loss is
        computed.
    """

    clip: str = "random"
    clap: str = "random"
    checkpoint: str = ""
    trained: Literal["all", "global heads"] = "all"

    @property
    def pretrained_image(self) -> bool:
        """Whether the image encoder starts from pretrained weights."""
        return self.clip != "random"


@dataclass(frozen=True)
class LossOptions:
    """The loss.

    Attributes
    ----------
    alpha : float
        Weight of the local loss relative to the global loss, within [0, 1].
    local_similarity : str
        How the patches of an image and the frames of a recording are compared.
    sinkhorn_iterations : int
        The paper's K.
    memory : int
        Number of pairs of earlier batches that are further candidates for the global loss; 0: none, as in the
        paper.
    supervision : str
        "global": by pairs only. "local": also by the renderer's note positions.
    alignment_weight : float
        Weight of the patch-frame cross-entropy in local supervision.
    note_weight : float
        Weight of the note prediction heads in local supervision; they need ``model.note_heads``.
    recency_sec : float
        Half-life of the weight of a held note in local supervision.
    """

    alpha: float = 0.5
    local_similarity: Literal["fusili", "cosine", "softmax"] = "fusili"
    sinkhorn_iterations: int = 20
    memory: int = 0
    supervision: Literal["global", "local"] = "global"
    alignment_weight: float = 1.0
    note_weight: float = 1.0
    recency_sec: float = 0.25

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1:
            raise InputError(
                f"loss.alpha is {self.alpha}; expected a weight within [0, 1]"
                " (0: global loss only, 1: local loss only)"
            )
        _at_least(1, "loss.sinkhorn_iterations", self.sinkhorn_iterations, _MOST_ITERATIONS)
        _at_least(0, "loss.memory", self.memory, _MOST_PAIRS)
        if self.memory and self.alpha == 1:
            raise InputError(
                f"loss.memory is {self.memory} with loss.alpha = 1; expected 0: the memory holds global"
                " embeddings, and there is no global loss"
            )
        _at_least(0, "loss.alignment_weight", self.alignment_weight)
        _at_least(0, "loss.note_weight", self.note_weight)
        _above(0, "loss.recency_sec", self.recency_sec)

    @property
    def predicts_notes(self) -> bool:
        """Whether the loss has a term for the note prediction heads."""
        return self.supervision == "local" and self.note_weight > 0

    @property
    def trains_local_heads(self) -> bool:
        """Whether any term of the loss trains the local heads."""
        return self.alpha > 0 or (self.supervision == "local" and self.alignment_weight > 0)


@dataclass(frozen=True)
class DataOptions:
    """The training data, and how batches are composed.

    Attributes
    ----------
    folder : str
        Folder or URL of the rendered shards.
    batch_size : int
        Pairs per batch, over all ranks.
    pieces : str
        "random": the pairs of a batch come from random pieces. "same": from as few pieces as possible. "few":
        from about four pieces, with pairs of similar size.
    mutations : str
        "none". "negative": each original comes with a mutant that is a candidate only. "positive": mutants are
        ordinary pairs.
    layout : str
        Only pairs of this layout, such as "piano"; "": all.
    max_duration_sec : float
        Only pairs up to this duration; 0: all.
    augment : bool
        Whether images and recordings are augmented, differently in each epoch, as ``[augmentation]`` says.
    validation : str
        "as in training": validation batches are composed as training batches, mutants included. "originals":
        shuffled originals, as in the paper's released code.
    msmd, msmd_split_file : str
        Folder of MSMD pieces whose split "valid" gives the local top-1 of a validation, and MSMD's split file, as
        in the paper; "": the validation pairs give it.
    workers : int
        Number of processes that prefetch on each rank; 0: read in the training process.
    """

    folder: str = ""
    batch_size: int = 128
    pieces: Literal["random", "same", "few"] = "random"
    mutations: Literal["none", "negative", "positive"] = "none"
    layout: str = ""
    max_duration_sec: float = 0.0
    augment: bool = False
    validation: Literal["as in training", "originals"] = "as in training"
    msmd: str = ""
    msmd_split_file: str = ""
    workers: int = 4

    def __post_init__(self) -> None:
        _at_least(2, "data.batch_size", self.batch_size, _MOST_PAIRS)
        _at_least(0, "data.max_duration_sec", self.max_duration_sec)
        _at_least(0, "data.workers", self.workers, _MOST_WORKERS)


@dataclass(frozen=True)
class OptimiserOptions:
    """AdamW and its learning rates.

    Attributes
    ----------
    head_rate, encoder_rate : float
        Learning rates of the heads and scales, and of the encoders.
    weight_decay : float
        Weight decay of all parameters.
    warmup_steps : int
        Number of steps over which the learning rates rise from 0.
    schedule : str
        Learning rates after the warm-up: "constant", or "cosine", which falls to 0 at the last step.
    max_gradient_norm : float
        Gradients with a larger norm are clipped to it; 0: no clipping.
    average_decay : float
        Validations and the best checkpoint take a running average of the weights, of which this share is kept
        at each step; 0: the weights of the step itself.
    """

    head_rate: float = 2e-4
    encoder_rate: float = 2e-5
    weight_decay: float = 0.01
    warmup_steps: int = 0
    schedule: Literal["constant", "cosine"] = "constant"
    max_gradient_norm: float = 0.0
    average_decay: float = 0.0

    def __post_init__(self) -> None:
        _above(0, "optimiser.head_rate", self.head_rate)
        _above(0, "optimiser.encoder_rate", self.encoder_rate)
        _at_least(0, "optimiser.weight_decay", self.weight_decay)
        _at_least(0, "optimiser.warmup_steps", self.warmup_steps)
        _at_least(0, "optimiser.max_gradient_norm", self.max_gradient_norm)
        if not 0 <= self.average_decay < 1:
            raise InputError(
                f"optimiser.average_decay is {self.average_decay:g}; expected at least 0 and less than 1"
            )


@dataclass(frozen=True)
class TrainingOptions:
    """Length, device and precision of a run, and how often it validates and saves.

    Attributes
    ----------
    epochs : int
        Number of passes over the training pairs.
    max_steps : int
        Largest number of steps; 0: no limit.
    device : str
        "auto" uses a GPU if there is one.
    precision : str
        "auto": bfloat16 autocast on a GPU, float32 on a CPU.
    gradient_checkpointing : bool
        Whether to recompute activations instead of keeping them.
    compile : bool
        Whether to compile the model with torch.compile.
    validate_every_steps : int
        Steps between validations; 0: at the end of each epoch.
    checkpoint_every_steps : int
        Steps between checkpoints, besides those at the end of each epoch; 0: only those.
    patience : int
        Number of validations without an improvement after which the run ends; 0: it never ends early.
    """

    epochs: int = 20
    max_steps: int = 0
    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Literal["auto", "bfloat16", "float32"] = "auto"
    gradient_checkpointing: bool = False
    compile: bool = False
    validate_every_steps: int = 0
    checkpoint_every_steps: int = 500
    patience: int = 5

    def __post_init__(self) -> None:
        _at_least(1, "training.epochs", self.epochs)
        for name in ("max_steps", "validate_every_steps", "checkpoint_every_steps", "patience"):
            _at_least(0, f"training.{name}", getattr(self, name))


@dataclass(frozen=True)
class Recipe:
    """The whole recipe.

    Attributes
    ----------
    name : str
        Name of the run; by default that of the recipe file.
    description : str
        One line that says what the recipe is for.
    seed : int
        Seed of the weights, of the order of the batches and of all other randomness in training.
    augmentation : Augmentation
        How pairs are augmented, if ``data.augment`` is true.
    """

    name: str
    description: str = ""
    seed: int = 0
    model: ModelOptions = field(default_factory=ModelOptions)
    weights: WeightsOptions = field(default_factory=WeightsOptions)
    loss: LossOptions = field(default_factory=LossOptions)
    data: DataOptions = field(default_factory=DataOptions)
    augmentation: Augmentation = field(default_factory=Augmentation)
    optimiser: OptimiserOptions = field(default_factory=OptimiserOptions)
    training: TrainingOptions = field(default_factory=TrainingOptions)

    def __post_init__(self) -> None:
        _at_least(0, "seed", self.seed, 2**63 - 1)
        if self.loss.predicts_notes != self.model.note_heads:
            raise InputError(
                f"model.note_heads is {str(self.model.note_heads).lower()} with"
                f' loss.supervision = "{self.loss.supervision}" and loss.note_weight = {self.loss.note_weight:g};'
                " expected note heads if, and only if, local supervision gives them a weight"
            )
        if self.weights.trained == "global heads" and self.loss.alpha == 1:
            raise InputError(
                'weights.trained is "global heads" with loss.alpha = 1; expected an alpha below 1: there is no'
                " global loss"
            )
        if self.model.pooling == "prototypes" and not self.loss.trains_local_heads:
            raise InputError(
                f'model.pooling is "prototypes" with loss.alpha = {self.loss.alpha:g}; expected an alpha above 0'
                " or local supervision: prototypes need trained local embeddings"
            )
        if self.data.mutations != "none" and self.data.batch_size % 2:
            raise InputError(
                f"data.batch_size is {self.data.batch_size} with {self.data.mutations} mutations;"
                " expected an even number, half originals and half mutants"
            )

    def as_dict(self) -> dict[str, Any]:
        """Return the recipe as plain values, with one dictionary per section."""
        return {key: _plain(value) for key, value in asdict(self).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _at_least(least: float, name: str, value: float, most: float = _MOST) -> None:
    if not value >= least:
        raise InputError(f"{name} is {value:g}; expected at least {least:g}")
    if not value <= most:
        raise InputError(f"{name} is {float(value):g}; expected at most {most:g}")


def _above(limit: float, name: str, value: float) -> None:
    if not value > limit:
        raise InputError(f"{name} is {value:g}; expected more than {limit:g}")
    if not value <= _MOST:
        raise InputError(f"{name} is {float(value):g}; expected at most {_MOST:g}")
