"""How good an alignment is: onsets against a reference, in the figures of the field (mir_eval)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fusili_mir.alignment.match_onsets import TOLERANCES_MS, reference_onsets
from fusili_mir.alignment.performance import NoteAlignment
from fusili_mir.errors import InputError, MissingExtraError

__all__ = ["TOLERANCES_MS", "OnsetScores", "reference_onsets", "score_onsets"]


@dataclass(frozen=True)
class OnsetScores:
    """How far the onsets of an alignment are from those of a reference.

    Attributes
    ----------
    n_onsets : int
        Notes that both have.
    median_sec : float
        Of the absolute errors.
    within : dict of int to float
        Share of notes whose error is at most that many milliseconds; see `TOLERANCES_MS`.
    mir_eval : dict of str to float
        What `mir_eval.alignment.evaluate` says.
    """

    n_onsets: int
    median_sec: float
    within: dict[int, float]
    mir_eval: dict[str, float]


def score_onsets(alignment: NoteAlignment, reference_sec: Mapping[str, float]) -> OnsetScores:
    """Compare the onsets of an alignment with a reference.

    Parameters
    ----------
    alignment : list of dict
        Of `align_score`.
    reference_sec : mapping of str to float
        Score id -> seconds; see `reference_onsets`.

    Returns
    -------
    OnsetScores
    """
    try:
        import mir_eval
    except ImportError as error:
        raise MissingExtraError(
            "mir_eval is not installed; pip install 'fusili-mir[integrations]'"
        ) from error
    pairs = sorted(
        (reference_sec[entry["score_id"]], entry["performance_time"])
        for entry in alignment
        if entry["label"] == "match" and entry["score_id"] in reference_sec
    )
    if not pairs:
        raise InputError(
            "the alignment and the reference have no note in common; expected the same score, unfolded alike"
        )
    true_sec, found_sec = np.array(pairs).T
    error_sec = np.abs(found_sec - true_sec)
    # Notes of a chord may come in any order; mir_eval wants times that never fall.
    scores = mir_eval.alignment.evaluate(true_sec, np.maximum.accumulate(found_sec))
    return OnsetScores(
        n_onsets=len(pairs),
        median_sec=float(np.median(error_sec)),
        within={ms: float(np.mean(error_sec <= ms / 1000 + 1e-9)) for ms in TOLERANCES_MS},
        mir_eval={name: float(value) for name, value in scores.items()},
    )
