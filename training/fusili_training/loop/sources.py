"""The training and validation batches of a recipe, read from a folder of rendered pairs."""

from __future__ import annotations

from fusili_mir.errors import InputError, option
from fusili_training.data.augmentation import Augmentation
from fusili_training.data.batch_plan import BatchOptions
from fusili_training.data.loader import PairLoader
from fusili_training.data.shard_folder import ShardFolder
from fusili_training.loop.distributed import ProcessRanks
from fusili_training.loop.msmd_batches import MsmdBatches
from fusili_training.loop.recipe import Recipe
from fusili_training.model.model import FusiliModel

__all__ = ["TrainingData"]


class TrainingData:
    """The folder of pairs that a recipe names.

    Parameters
    ----------
    recipe : Recipe
        Recipe whose ``data.folder`` was written by `fusili-mir render`.
    """

    def __init__(self, recipe: Recipe) -> None:
        if not recipe.data.folder:
            raise InputError(
                f"the recipe names no data; add {option('--data', 'data.folder')}, a folder written by "
                "`fusili-mir render`"
            )
        self.recipe = recipe
        self.folder = self._open("train")

    def _open(self, split: str) -> ShardFolder:
        data = self.recipe.data
        return ShardFolder(data.folder, split, data.layout, data.max_duration_sec)

    def check_fits(self, model: FusiliModel) -> None:
        """Raise an error if the pairs do not have the sample rate of a model."""
        found_hz, expected_hz = self.folder.sample_rate_hz, model.audio.geometry.sample_rate_hz
        if found_hz != expected_hz:
            raise InputError(
                f"{self.folder.url} has audio at {found_hz} Hz; the backbone {self.recipe.model.backbone} takes"
                f" {expected_hz} Hz: render it with audio.sample_rate_hz = {expected_hz}"
            )

    def training_batches(self, ranks: ProcessRanks) -> PairLoader:
        """Return this rank's part of the training batches."""
        ranks.share_of(self.recipe.data.batch_size)
        augmentation = self.recipe.augmentation if self.recipe.data.augment else None
        return self._loader(self.folder, self.recipe.data.batch_size, ranks, augmentation)

    def validation_batches(self, ranks: ProcessRanks) -> PairLoader | None:
        """Return this rank's part of the validation batches, or None if there are too few validation pairs.

        They are composed as ``data.validation`` says, never augmented, and smaller if the pairs fill no batch.
        """
        split = self.folder.manifest["splits"].get("valid", {})
        if not split.get("shards") or split.get("segments") == 0:  # 0 if all its pieces were broken
            return None
        folder = self._open("valid")
        unit = 2 * ranks.n_ranks
        n_originals = sum(entry.mutant_of is None for entry in folder.entries)
        batch_size = min(self.recipe.data.batch_size, n_originals // unit * unit)
        if not batch_size:
            return None
        if self.recipe.data.validation == "originals":
            shuffled = BatchOptions(batch_size, "random", "none", self.recipe.seed)
            return PairLoader(folder, shuffled, None, ranks.rank, ranks.n_ranks, self.recipe.data.workers)
        return self._loader(folder, batch_size, ranks, None)

    def local_validation(self, ranks: ProcessRanks, model: FusiliModel) -> MsmdBatches | None:
        """Return this rank's part of the pairs of MSMD that give the local top-1, if the recipe names them."""
        data = self.recipe.data
        if not data.msmd:
            return None
        return MsmdBatches(data.msmd, data.msmd_split_file or None, model, ranks, data.batch_size)

    def _loader(
        self, folder: ShardFolder, batch_size: int, ranks: ProcessRanks, augmentation: Augmentation | None
    ) -> PairLoader:
        data = self.recipe.data
        options = BatchOptions(batch_size, data.pieces, data.mutations, self.recipe.seed)
        return PairLoader(folder, options, augmentation, ranks.rank, ranks.n_ranks, data.workers)
