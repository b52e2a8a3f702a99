"""The demonstration: the example of the package, aligned from its score, and from its page image alone."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fusili_mir.alignment.aligner import Aligner
from fusili_mir.alignment.results import Alignment
from fusili_mir.arrays import Float64, Table
from fusili_mir.demo.example import Example
from fusili_mir.errors import OutputError, option
from fusili_mir.model.encoder import Encoder
from fusili_mir.output.alignment_files import write_formats
from fusili_mir.progress import stage
from fusili_mir.staging import check_output_folder, staged_folder
from fusili_mir.viewer.inputs import INPUTS_FILE, Inputs, save_inputs

__all__ = [
    "Demonstration",
    "OnsetErrors",
    "check_demo_folder",
    "demonstrate",
    "errors_of_notes",
    "errors_of_places",
]

FROM_SCORE, FROM_IMAGE = "from-score", "from-image"


@dataclass(frozen=True, eq=False)
class OnsetErrors:
    """Absolute onset errors of notes, in seconds [shape=(n,)]; infinite for notes that were not found."""

    errors_sec: Float64

    @property
    def median_ms(self) -> float:
        """Median error in milliseconds."""
        return 1000 * float(np.median(self.errors_sec))

    def share_within(self, tolerance_ms: float) -> float:
        """Return the share of notes whose error is at most `tolerance_ms`.

        >>> OnsetErrors(np.array([0.01, 0.025, 0.2, np.inf])).share_within(25)
        0.5
        """
        return float(np.mean(self.errors_sec <= tolerance_ms / 1000 + 1e-9))


@dataclass(frozen=True, eq=False)
class Demonstration:
    """One way to align the example.

    Attributes
    ----------
    folder : Path
        Folder with all files.
    alignment : Alignment
    errors : OnsetErrors
        Errors of all notes that are played.
    elapsed_sec : float
        Time from opening the score to the finished alignment.
    """

    folder: Path
    alignment: Alignment
    errors: OnsetErrors
    elapsed_sec: float


def check_demo_folder(out: str | Path, force: bool = False) -> None:
    """Raise the error that `demonstrate` would raise; call this before long work."""
    try:
        check_output_folder(out, force)
    except OutputError as error:
        if _holds_demo(Path(out)):
            raise OutputError(
                f"{out}: holds the results of an earlier demo; add "
                f"{option('--force', 'force=True')} to replace them, or choose another folder"
            ) from error
        raise


def demonstrate(
    example: Example, encoder: Encoder, out: str | Path, force: bool = False
) -> tuple[Demonstration, Demonstration]:
    """Align the example in both ways, and write all results.

    Parameters
    ----------
    example : Example
    encoder : Encoder
    out : str or Path
        Folder for the two folders `from-score` and `from-image`, each with all formats that apply.
    force : bool
        Whether to replace files in folders that are not empty.

    Returns
    -------
    from_score, from_image : Demonstration
    """
    out = Path(out)
    check_demo_folder(out, force)
    with staged_folder(out, force) as folder:
        from_score = _align(example.score, example, encoder, out / FROM_SCORE)
        from_image = _align(example.page, example, encoder, out / FROM_IMAGE)
        with stage("writing"):
            for name, score, result in (
                (FROM_SCORE, example.score, from_score),
                (FROM_IMAGE, example.page, from_image),
            ):
                (folder / name).mkdir()
                write_formats(result.alignment, folder / name)
                inputs = Inputs((score,), example.recording, model=encoder.bundle.folder)
                save_inputs(inputs, folder / name / INPUTS_FILE, out / name)
    return from_score, from_image


def errors_of_notes(alignment: Alignment, truth: Table) -> OnsetErrors:
    """Compare the notes of an alignment with the truth.

    Parameters
    ----------
    alignment : Alignment
        Alignment with a symbolic score.
    truth : np.ndarray of `EXAMPLE_NOTE_DTYPE` [shape=(n,)]

    Returns
    -------
    OnsetErrors
        One error per row of the truth; for a note that is played several times, the first time counts.
    """
    notes = alignment.notes[::-1]
    found_sec = dict(zip(notes["notated_id"].tolist(), notes["onset_sec"].tolist(), strict=True))
    return _errors([found_sec.get(note_id, np.nan) for note_id in truth["id"].tolist()], truth)


def errors_of_places(alignment: Alignment, truth: Table) -> OnsetErrors:
    """Compare the times found for the places of note heads with the truth.

    Parameters
    ----------
    alignment : Alignment
        Alignment with the page images on which the truth locates the heads.
    truth : np.ndarray of `EXAMPLE_NOTE_DTYPE` [shape=(n,)]

    Returns
    -------
    OnsetErrors
        One error per row of the truth.
    """
    found_sec = alignment.position_maps.position_to_seconds(truth["page"], truth["x"], truth["y"])
    return _errors(found_sec, truth)


def _holds_demo(out: Path) -> bool:
    with suppress(PermissionError):
        return (out / FROM_SCORE).is_dir() or (out / FROM_IMAGE).is_dir()
    return False


def _errors(found_sec: npt.ArrayLike, truth: Table) -> OnsetErrors:
    errors_sec = np.abs(np.asarray(found_sec, dtype=np.float64) - truth["onset_sec"])
    return OnsetErrors(np.where(np.isnan(errors_sec), np.inf, errors_sec))


def _align(score: Path, example: Example, encoder: Encoder, folder: Path) -> Demonstration:
    start_sec = time.perf_counter()
    alignment = Aligner(encoder, progress=True).align(score, example.recording)
    elapsed_sec = time.perf_counter() - start_sec
    compare = errors_of_places if alignment.played is None else errors_of_notes
    return Demonstration(folder, alignment, compare(alignment, example.truth), elapsed_sec)
