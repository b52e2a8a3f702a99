"""Note-exact matching where a performance MIDI exists beside the recording: parangonar, led by our anchors."""

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
        Of `align_score`, from a recording of that performance.
    score_data : partitura.score.Score
        That the alignment came with.
    performance_data : partitura.performance.Performance
        The MIDI performance, with the clock of the recording.
    spacing_beat : float
        Least distance of the anchors that parangonar is led by.

    Returns
    -------
    list of dict
        `match`, `insertion` (wrong notes) and `deletion` (left out notes).
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
        raise InputError(f"{len(anchors)} anchor; expected an alignment of at least two onsets")
    matched: NoteAlignment = AnchorPointNoteMatcher()(
        score_data[0].note_array(include_grace_notes=True), performance_data.note_array(), anchors
    )
    return matched
