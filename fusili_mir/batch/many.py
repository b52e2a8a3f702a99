"""Aligning many pairs: over night, on all cores or a cluster, and on again after whatever stopped it.

    reports = align_many("pairs.csv", "results")

Each pair has a folder of its own in the folder of results, which appears whole or not at all; a run that was
killed goes on with the pairs that have none yet. `summary.csv` and `index.html` are written anew while it works.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from fusili_mir.alignment.align_options import AlignOptions
from fusili_mir.batch.matching import match_recordings
from fusili_mir.batch.pair_report import REPORT_FILE, PairReport, load_report
from fusili_mir.batch.pair_request import PairRequest
from fusili_mir.batch.pair_table import PairsLike, as_pairs
from fusili_mir.batch.pair_workers import align_here, align_on_cluster, group_by_score
from fusili_mir.batch.summary_page import summary_html
from fusili_mir.batch.summary_table import summary_csv
from fusili_mir.batch.work_settings import WorkSettings
from fusili_mir.errors import InputError, OutputError, option
from fusili_mir.folder_lock import locked_folder
from fusili_mir.model.bundle import Bundle, as_bundle
from fusili_mir.model.encoder import Encoder
from fusili_mir.output.alignment_files import check_formats
from fusili_mir.progress import counted
from fusili_mir.sessions.graph_session import usable_cpus
from fusili_mir.whole_files import write_text

__all__ = ["align_many"]

_SUMMARY_EVERY_SEC = 5.0
_SENT_AT_ONCE = 8  # pairs of one score to one machine of a cluster


def align_many(
    pairs: PairsLike,
    out: str | Path,
    model: str | Path | Bundle | None = None,
    *,
    match: str | Path | None = None,
    least_probability: float = 0.5,
    jobs: int = -1,
    dask: str | None = None,
    formats: Sequence[str] = (),
    options: AlignOptions | None = None,
    force: bool = False,
    device: str = "auto",
    batch_size: int | None = None,
    device_options: Mapping[str, str] | None = None,
    progress: bool = False,
) -> list[PairReport]:
    """Align many recordings with their scores.

    Parameters
    ----------
    pairs : file or sequence
        A table (CSV) with the columns score and recording, and if need be name and options, such as transpose
        or start; or pairs such as ``("song.mxl", "take1.mp3")`` or
        ``("song.mxl", "take2.mp3", AlignOptions(transpose=-1))``.
    out : str or Path
        Folder of all results: a new one, or that of an earlier run, which goes on.
    model : str, Path or Bundle, optional
        Model to encode with; by default the bundle that is installed with the package.
    match : str or Path, optional
        An index (see `build_index`), in which the scores are looked for. `pairs` are then recordings, or folders
        of them; if there are none, all recordings of the index.
    least_probability : float
        With `match`: the least probability of a score to be aligned with a recording.
    jobs : int
        Number of processes; -1: one per core.
    dask : str, optional
        Address of a Dask scheduler, whose machines do the work instead.
    formats : sequence of str
        What is written of each result; see `save_alignment`.
    options : AlignOptions, optional
        What holds for all pairs, unless a row of the table says otherwise.
    force : bool
        Whether results that were made from other files, with other options or another model are replaced.
    device, batch_size, device_options
        See `Encoder`.
    progress : bool
        Whether to show progress on standard error.

    Returns
    -------
    list of PairReport
        What became of each pair, in the order of the table.
    """
    if jobs == 0 or jobs < -1:
        raise InputError(f"{jobs} processes; expected at least 1, or -1 for one per core")
    asked = [] if match is not None else as_pairs(pairs, options)
    check_formats(formats, "the pairs", has_notes=True)
    bundle = as_bundle(model)
    n_workers = usable_cpus() if jobs == -1 else jobs
    settings = WorkSettings(
        out=str(Path(out).absolute()),
        model=None if model is None else str(bundle.folder.absolute()),
        model_key=_model_key(bundle),
        device=device,
        device_options=dict(device_options or {}),
        batch_size=batch_size,
        formats=tuple(formats),
    )
    with locked_folder(out):
        shutil.rmtree(settings.drafts, ignore_errors=True)  # what a run that was killed left behind
        unmatched: list[PairReport] = []
        if match is not None:
            encoder = Encoder(bundle, device, batch_size=batch_size, device_options=device_options)
            asked, unmatched = match_recordings(
                pairs, match, encoder, settings.folder, least_probability, options, progress
            )
        requests = [_absolute(request) for request in asked]
        done = _find_done(requests, settings, force)
        waiting = [request for request in requests if request.name not in done]
        summary = _Summary(requests, settings.folder, done, unmatched)
        try:
            if dask is None:
                found = align_here(group_by_score(waiting, n_workers), settings, n_workers)
            else:
                found = align_on_cluster(
                    group_by_score(waiting, len(waiting) // _SENT_AT_ONCE), settings, dask
                )
            with closing(found), counted("aligning", len(requests), len(done), progress) as count:
                for report in found:
                    summary.add(report)
                    count.advance(note=f"{report.name} {report.status}", each=True)
        finally:
            summary.write()
            shutil.rmtree(settings.drafts, ignore_errors=True)
    return summary.reports


class _Summary:
    """What became of the pairs so far, and its two files."""

    def __init__(
        self,
        requests: Sequence[PairRequest],
        folder: Path,
        done: Mapping[str, PairReport],
        unmatched: Sequence[PairReport],
    ) -> None:
        self._names = [request.name for request in requests]
        self._folder, self._found, self._unmatched = folder, dict(done), list(unmatched)
        self._written_sec = -_SUMMARY_EVERY_SEC

    @property
    def reports(self) -> list[PairReport]:
        """Reports of the pairs that are done, in the order of the table."""
        return [self._found[name] for name in self._names if name in self._found] + self._unmatched

    def add(self, report: PairReport) -> None:
        """Add a report; the files follow from time to time."""
        self._found[report.name] = report
        if time.monotonic() - self._written_sec >= _SUMMARY_EVERY_SEC:
            self.write()

    def write(self) -> None:
        """Write both files."""
        reports = self.reports
        n_pairs = len(self._names) + len(self._unmatched)
        write_text(self._folder / "summary.csv", summary_csv(reports))
        write_text(self._folder / "index.html", summary_html(reports, n_pairs, self._folder))
        self._written_sec = time.monotonic()


def _absolute(request: PairRequest) -> PairRequest:
    """Name all files in full: other processes, and other machines, work elsewhere."""
    return replace(
        request,
        score=tuple(file.absolute() for file in request.score),
        recording=request.recording.absolute(),
    )


def _find_done(requests: Sequence[PairRequest], settings: WorkSettings, force: bool) -> dict[str, PairReport]:
    """Return the reports of results that are there already and are those asked for."""
    page = settings.folder / "index.html"
    if page.exists() and not (settings.folder / "summary.csv").exists():
        raise OutputError(
            f"{page}: exists, but is no summary of align-many; move it away, or choose another folder"
        )
    done, other = {}, []
    for request in requests:
        folder = settings.folder / request.name
        if not folder.exists():
            continue
        if not (folder / REPORT_FILE).is_file():
            raise OutputError(
                f"{folder}: exists, but is no result of align-many; move it away, or choose another folder"
            )
        try:
            report, key = load_report(folder / REPORT_FILE)
        except InputError:  # damaged: not what was asked for
            report, key = None, ""
        if report is not None and key == settings.key(request):
            done[request.name] = report
        else:
            other.append(request.name)
    if other and not force:
        raise OutputError(
            f"{settings.folder}: {len(other)} of the results ({other[0]} first) were made from other files, with "
            "other options or by another model or version; add "
            f"{option('--force', 'force=True')} to replace them, or choose another folder"
        )
    return done


def _model_key(bundle: Bundle) -> str:
    manifest = (bundle.folder / "manifest.json").read_bytes()
    graphs = f"{bundle.manifest.image.sha256} {bundle.manifest.audio.sha256}"
    return hashlib.sha256(manifest + graphs.encode()).hexdigest()
