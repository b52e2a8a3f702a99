"""The score as MusicXML in which every note states its id, so that any program finds the notes of a result."""

from __future__ import annotations

import warnings
from pathlib import Path

from fusili_mir.argument_kinds import checked
from fusili_mir.errors import InputError
from fusili_mir.pages.pages import Pages
from fusili_mir.scores.loading import LoadedScore, ScoreSource, load_score
from fusili_mir.scores.score_warning import ScoreWarning
from fusili_mir.scores.score_writing import write_score_file
from fusili_mir.whole_files import write_bytes

__all__ = ["check_has_ids", "save_score_with_ids"]


def check_has_ids(filename: str, is_symbolic: bool) -> None:
    """Refuse to write a score of images, which has no notes with ids."""
    if not is_symbolic:
        raise InputError(
            f"{filename}: a score of images has no notes to write with their ids; expected a symbolic one"
        )


@checked
def save_score_with_ids(score: Pages | ScoreSource, out: str | Path) -> None:
    """Write a symbolic score as MusicXML, as notated, with the ids of the results on its notes.

    `partitura.load_score` of the file gives the ids that the results have as `notated_id`; those of a score whose
    repeats are written out add partitura's ``-1``, ``-2``, ... to them.

    Parameters
    ----------
    score : Pages, or a score that `render_pages` takes
        Pages must be of a symbolic score.
    out : str or Path
        The file, such as ``score.musicxml``. MusicXML keeps its notation; other formats are written by partitura.
    """
    write_bytes(Path(out), _musicxml(_loaded(score)))


def _loaded(score: Pages | ScoreSource) -> LoadedScore:
    if not isinstance(score, Pages):
        return load_score(score)
    check_has_ids(score.filename, score.score_file is not None)
    assert score.score_file is not None  # noqa: S101
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScoreWarning)  # the pages have said so already
        return load_score(score.score_file.unpack())


def _musicxml(loaded: LoadedScore) -> bytes:
    if loaded.score_file.kind == "musicxml":
        return loaded.named_file().to_bytes()
    written = write_score_file(loaded.score, loaded.filename, may_round=False)
    return written.score_file.with_note_ids(written.note_ids).to_bytes()
