"""Aligning in one line: which note, and which spot on which page, sounds at which second.

    alignment = align_recording("scan.pdf", "recording.wav")                         # everything
    performance, alignment, score = align_score("piece.musicxml", "recording.wav")   # partitura's types
    frames = align_pages("scan.pdf", "recording.wav")                                # a table

Each opens an `Aligner` for one alignment. Scores and recordings are files or objects: see `open_pages` and
`open_recording`.
"""

from __future__ import annotations

from typing import Any, Unpack

import partitura as pt

from fusili_mir.alignment.align_options import AligningKeywords, AlignOptions
from fusili_mir.alignment.aligner import Aligner
from fusili_mir.alignment.performance import NoteAlignment
from fusili_mir.alignment.results import Alignment
from fusili_mir.alignment.swapped_files import refuse_swapped
from fusili_mir.arrays import Table
from fusili_mir.audio.recording import RecordingLike
from fusili_mir.errors import InputError
from fusili_mir.pages.pages import Pages, check_score

__all__ = ["align_pages", "align_recording", "align_score"]


def align_recording(score: Any, recording: RecordingLike, **options: Unpack[AligningKeywords]) -> Alignment:
    """Align a recording with a score.

    Parameters
    ----------
    score : Pages, file, image or symbolic score
        Anything that `open_pages` opens.
    recording : str, Path, (samples, rate), file object or Recording
        Anything that `open_recording` opens, such as an audio file or ``(y, sr)`` from librosa.
    **options
        The fields of `AlignOptions`, such as ``transpose=-2``, and the `model` and `cache` of `Aligner`.

    Returns
    -------
    Alignment
    """
    said: dict[str, Any] = {**options}
    aligner = Aligner(said.pop("model", None), cache=said.pop("cache", None))
    return aligner.align(score, recording, AlignOptions(**said))


def align_score(
    score: Any, recording: RecordingLike, **options: Unpack[AligningKeywords]
) -> tuple[pt.performance.Performance, NoteAlignment, pt.score.Score]:
    """Align a recording with a symbolic score, in partitura's terms.

    Parameters
    ----------
    score : str, Path, partitura score or Pages
        Anything that `render_pages` engraves, or its pages.
    recording, **options
        See `align_recording`.

    Returns
    -------
    performance : partitura.performance.Performance
        The notes that were heard, with their times in seconds.
    alignment : list of dict
        `label`, `score_id`, `performance_id`, `performance_time` and `confidence`.
    score : partitura.score.Score
        Unfolded as it was played, with all parts merged into one: the only form that `partitura.save_match` and
        the time maps accept. Ids are those of the file; if the score has repeats, each time that a note is
        played adds ``-1``, ``-2``, ...
    """
    refuse_swapped(score, recording)
    if not check_score(score):
        name = score.filename if isinstance(score, Pages) else score
        raise InputError(
            f"{name}: only images are known, so there are no notes to align; use align_pages, or give a symbolic "
            "score"
        )
    alignment = align_recording(score, recording, **options)
    assert alignment.played is not None  # noqa: S101
    return alignment.performance, alignment.note_alignment, alignment.played.score


def align_pages(score: Any, recording: RecordingLike, **options: Unpack[AligningKeywords]) -> Table:
    """Align a recording with page images.

    Parameters
    ----------
    score : Pages, file, image, or a sequence of files or images
        Pages from `load_pages`, or anything that `open_pages` opens.
    recording, **options
        See `align_recording`.

    Returns
    -------
    np.ndarray of `FRAME_DTYPE` [shape=(M,)]
        One row per audio frame: `onset_sec`, `page`, `system`, `x`, `y` (pixels of the original page),
        `similarity` and `confidence`.
    """
    return align_recording(score, recording, **options).frames
