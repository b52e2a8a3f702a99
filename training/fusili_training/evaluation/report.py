"""The results of an evaluation: numbers with their intervals and the baselines they have to beat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fusili_training.evaluation.bootstrap import Interval

__all__ = ["Measurement", "Report"]


@dataclass(frozen=True)
class Measurement:
    """One measured number.

    Attributes
    ----------
    task : str
        "local", "retrieval", "point" or "onsets".
    variant : str
        The grid, the ranking, or the data it was measured with.
    direction : str
        "A2I" (audio to image), "I2A", or empty.
    metric : str
    found : Interval
    n : int
        Number of judged frames, patches, queries or notes.
    baselines : mapping of str to float
        The same metric for "chance", "straight line" and "shuffled", where they are defined.
    """

    task: str
    variant: str
    direction: str
    metric: str
    found: Interval
    n: int
    baselines: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """The measurements of one model on one dataset; `dropped` counts the pairs left out, by reason."""

    model: str
    data: str
    n_pieces: int
    n_pairs: int
    dropped: Mapping[str, int]
    measurements: tuple[Measurement, ...]

    def find(self, task: str, metric: str, direction: str, variant: str | None = None) -> float | None:
        """Return the first matching value; None if it was not measured."""
        for each in self.measurements:
            if (each.task, each.metric, each.direction) == (task, metric, direction) and variant in (
                None,
                each.variant,
            ):
                return each.found.value
        return None
