"""Aligning one pair: its result appears as a whole folder, or not at all."""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
import warnings
from pathlib import Path

from fusili_mir.alignment.aligner import Aligner
from fusili_mir.alignment.results import Alignment
from fusili_mir.alignment.swapped_files import refuse_swapped
from fusili_mir.batch.pair_report import REPORT_FILE, PairReport, report_failure, report_result, save_report
from fusili_mir.batch.pair_request import PairRequest
from fusili_mir.batch.work_settings import WorkSettings, stamp_files
from fusili_mir.boundary import unexpected
from fusili_mir.errors import FusiliError, FusiliWarning, OutputError, option
from fusili_mir.output.alignment_files import check_formats, write_formats
from fusili_mir.pages.pages import Pages, check_score
from fusili_mir.viewer.inputs import INPUTS_FILE, Inputs, save_inputs

__all__ = ["PairWork"]


class PairWork:
    """Aligns pairs one after another; model and score are kept for the next pair.

    Parameters
    ----------
    settings : WorkSettings
    """

    def __init__(self, settings: WorkSettings) -> None:
        self.settings = settings
        self._pages_key: tuple[object, ...] | None = None
        self._pages: Pages | None = None

    def align(self, request: PairRequest) -> PairReport:
        """Align a pair and write its result; what goes wrong is in the report."""
        start_sec = _cpu_sec()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", FusiliWarning)
            try:
                alignment = self._align(request)
                messages = [" ".join(str(each.message).split()) for each in caught]
                report = report_result(request, alignment, _cpu_sec() - start_sec, messages)
                self._write(request, alignment, report)
            except FusiliError as error:
                return report_failure(request, str(error))
            except MemoryError:
                return report_failure(
                    request, f"out of memory; use fewer processes ({option('--jobs', 'jobs')})"
                )
            except OSError as error:
                return report_failure(request, f"{error.filename or request.name}: {error.strerror or error}")
            except Exception as error:  # noqa: BLE001  # a defect of ours must not end the run
                return report_failure(request, unexpected(error))
        return report

    @functools.cached_property
    def _aligner(self) -> Aligner:
        chosen = self.settings
        return Aligner(
            chosen.model,
            device=chosen.device,
            batch_size=chosen.batch_size,
            device_options=chosen.device_options,
        )

    def _align(self, request: PairRequest) -> Alignment:
        options = request.options
        refuse_swapped(request.score, request.recording, "exchange them")
        is_symbolic = check_score(list(request.score), options.dpi, options.pages)
        check_formats(self.settings.formats, str(request.score[0]), is_symbolic)
        return self._aligner.align(self._opened(request), request.recording, options)

    def _opened(self, request: PairRequest) -> Pages:
        """Return the opened score: that of the last pair, if it is the same."""
        key = (request.pages_key, stamp_files(request.score))
        if self._pages is None or self._pages_key != key:
            self._pages = self._pages_key = None  # frees the old one before the new one is made
            self._pages = self._aligner.open_score(list(request.score), request.options)
            self._pages_key = key
        return self._pages

    def _write(self, request: PairRequest, alignment: Alignment, report: PairReport) -> None:
        settings, final = self.settings, self.settings.folder / request.name
        settings.drafts.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f"{request.name}-", dir=settings.drafts))
        draft.chmod(0o777 & ~_umask())
        try:
            write_formats(alignment, draft, settings.formats)
            model = None if settings.model is None else Path(settings.model)
            inputs = Inputs(request.score, request.recording, request.options, model, settings.formats)
            save_inputs(inputs, draft / INPUTS_FILE, final)
            save_report(report, settings.key(request), draft / REPORT_FILE)
            _put_in_place(draft, final)
        except OSError as error:
            if isinstance(error, OutputError):
                raise
            raise OutputError(f"{final}: cannot be written ({error.strerror or error})") from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def _put_in_place(draft: Path, final: Path) -> None:
    """Give a whole folder its name; an older result of that name goes."""
    if final.exists():
        old = Path(tempfile.mkdtemp(prefix=f"{final.name}-", dir=draft.parent))
        final.rename(old / final.name)
        draft.rename(final)
        shutil.rmtree(old, ignore_errors=True)
    else:
        draft.rename(final)


def _cpu_sec() -> float:
    """Return the processor time of this process so far, and of those that it has waited for."""
    return sum(os.times()[:4])


@functools.cache
def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
