"""What an evaluation found: numbers with their intervals, and what each has to beat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fusili_training.evaluation.bootstrap import Interval

__all__ = ["Measurement", "Report"]


@dataclass(frozen=True)
class Measurement:
    """One number.

    Attributes
    ----------
    task : str
        "local", "retrieval", "point" or "onsets".
    variant : str
        On which grid, by which ranking, or from what.
    direction : str
        "A2I" (audio to image), "I2A", or empty.
    metric : str
    found : Interval
    n : int
        Frames, patches, queries or notes that were judged.
    baselines : mapping of str to float
        The same metric for "chance", "straight line" and "shuffled", where it has a meaning.
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
    """The numbers of one model on one dataset; `dropped` counts what was left out, by reason."""

    model: str
    data: str
    n_pieces: int
    n_pairs: int
    dropped: Mapping[str, int]
    measurements: tuple[Measurement, ...]

    def find(self, task: str, metric: str, direction: str, variant: str | None = None) -> float | None:
        """Return a number, the first that fits; None if it was not measured."""
        for each in self.measurements:
            if (each.task, each.metric, each.direction) == (task, metric, direction) and variant in (
                None,
                each.variant,
            ):
                return each.found.value
        return None
