"""Note-level matching of a MIDI of the recorded performance: parangonar, guided by our anchors."""

from __future__ import annotations

import numpy as np
import partitura as pt

from fusili_mir.alignment.performance import NoteAlignment, anchors_from_alignment
from fusili_mir.errors import InputError, MissingExtraError

__all__ = ["match_performance"]


def match_performance(
    alignment: NoteAlignment,
    score_data: pt.score.ScoreLike,
    performance_data: pt.performance.PerformanceLike,
    spacing_beat: float = 4.0,
) -> NoteAlignment:
    """Match the notes of a MIDI performance with those of a score.

    Parameters
    ----------
    alignment : list of dict
        Alignment returned by `align_score` for a recording of that performance.
    score_data : partitura.score.Score
        Score returned with the alignment.
    performance_data : partitura.performance.Performance
        The MIDI performance, on the time axis of the recording.
    spacing_beat : float
        Minimum distance between the anchors that guide parangonar.

    Returns
    -------
    list of dict
        Entries labelled `match`, `insertion` (wrong notes) and `deletion` (omitted notes).
    """
    try:
        from parangonar import AnchorPointNoteMatcher
    except ImportError as error:
        raise MissingExtraError(
            "parangonar is not installed; pip install 'fusili-mir[integrations]'"
        ) from error
    anchors = anchors_from_alignment(alignment, score_data, spacing_beat)
    last = anchors_from_alignment(alignment, score_data)[-1]
    if last[0] > anchors[-1, 0]:
        anchors = np.vstack((anchors, last))
    if len(anchors) < 2:
        raise InputError(f"an alignment of {len(anchors)} onset, expected at least two to match notes")
    matched: NoteAlignment = AnchorPointNoteMatcher()(
        score_data[0].note_array(include_grace_notes=True), performance_data.note_array(), anchors
    )
    return matched
