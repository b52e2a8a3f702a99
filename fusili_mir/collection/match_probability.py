"""How probable it is that a candidate is a match at all, given how well it explains a query.

The weights were fitted by `benchmarks/collection_search.py fit` on validation pieces of the corpus, played by a
piano that training never heard: right pieces against wrong ones, in each direction. A probability is that of one
candidate among some forty, one of which is right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fusili_mir.collection.kinds import Kind

__all__ = ["WEIGHTS", "Evidence", "features", "match_nats", "probability_of"]


@dataclass(frozen=True)
class Evidence:
    """What is known about a query and a candidate.

    Attributes
    ----------
    likelihood, backwards, free : float
        Of the passages of the query, on average; see `FoundPassage`.
    pooled : float
        Largest inner product of a window of the query and one of the candidate, on average over the query.
    n_groups : int
        Length of all passages together.
    """

    likelihood: float
    backwards: float
    free: float
    pooled: float
    n_groups: int


WEIGHTS: dict[tuple[Kind, Kind], tuple[float, ...]] = {
    ("recording", "score"): (-16.7, 2.17, 1.81, 17.6, -0.354),  # 59 queries, 2331 candidates
    ("score", "recording"): (-12.3, 1.54, 0.64, 25.2, -0.209),  # 30 queries, 1200 candidates
    ("recording", "recording"): (-14.3, 2.1, 1.23, 7.7, -0.455),  # 49 queries, 1766 candidates
    ("score", "score"): (-15, 0.64, 0.399, 7.77, 0.585),  # 30 queries, 1200 candidates
}
"""Query and candidate -> weights of `features`: slopes of the model before, constants of the one that ships."""


def features(evidence: Evidence) -> tuple[float, ...]:
    """Return what is weighed: 1, the likelihood, its lead over backwards, the pooled similarity, and `free`."""
    ahead = evidence.likelihood - evidence.backwards
    return (1.0, evidence.likelihood, ahead, evidence.pooled, evidence.free)


def match_nats(evidence: Evidence, query: Kind, candidate: Kind) -> float:
    """Return the logarithm of the odds that a candidate is the piece of a query."""
    weights = WEIGHTS[query, candidate]
    return sum(weight * value for weight, value in zip(weights, features(evidence), strict=True))


def probability_of(nats: float) -> float:
    """Return the probability with given odds.

    >>> probability_of(0.0)
    0.5
    """
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, nats))))
