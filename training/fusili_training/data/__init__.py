"""Rendered pairs as batches: reading shards, varying pairs, and putting them together."""

from fusili_training.data.augmentation import Augmentation
from fusili_training.data.batch import Batch
from fusili_training.data.batch_plan import BatchOptions, plan_batches
from fusili_training.data.loader import PairLoader
from fusili_training.data.shard_folder import Pair, PairEntry, ShardFolder

__all__ = [
    "Augmentation",
    "Batch",
    "BatchOptions",
    "Pair",
    "PairEntry",
    "PairLoader",
    "ShardFolder",
    "plan_batches",
]
