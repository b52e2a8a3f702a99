"""Aligning one pair: its result appears as a whole folder, or not at all."""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
import warnings
from pathlib import Path

from fusili_mir.alignment.aligning import align_pair
from fusili_mir.alignment.encoded_pages import EncodedPages, encode_pages_once
from fusili_mir.alignment.encoded_pair import encode_pair
from fusili_mir.alignment.results import Alignment
from fusili_mir.alignment.swapped_files import refuse_swapped
from fusili_mir.audio.heard_recording import HeardRecording
from fusili_mir.audio.recording import open_recording
from fusili_mir.batch.pair_report import REPORT_FILE, PairReport, report_failure, report_result, save_report
from fusili_mir.batch.pair_request import PairRequest
from fusili_mir.batch.work_settings import WorkSettings, stamp_files
from fusili_mir.boundary import unexpected
from fusili_mir.errors import FusiliError, FusiliWarning, OutputError, option
from fusili_mir.model.encoder import Encoder
from fusili_mir.output.alignment_files import check_formats, write_formats
from fusili_mir.pages.pages import check_score, open_pages
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
        self._pages: EncodedPages | None = None

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
    def _encoder(self) -> Encoder:
        chosen = self.settings
        return Encoder(
            chosen.model, chosen.device, batch_size=chosen.batch_size, device_options=chosen.device_options
        )

    def _align(self, request: PairRequest) -> Alignment:
        options = request.options
        refuse_swapped(request.score, request.recording, "exchange them")
        is_symbolic = check_score(list(request.score), options.dpi, options.page_range)
        check_formats(self.settings.formats, str(request.score[0]), is_symbolic)
        encoder = self._encoder
        recording = open_recording(request.recording, options.start_sec, options.end_sec)
        with HeardRecording(recording, encoder.bundle.audio.sample_rate_hz) as heard:
            pair = encode_pair(
                self._encoded(request),
                heard,
                unfold=options.unfold,
                jumps=options.jumps,
                transpose=options.transpose,
                tuning=options.tuning,
                repeats=options.repeats,
            )
        return align_pair(pair, options.anchors)

    def _encoded(self, request: PairRequest) -> EncodedPages:
        """Return the encoded score: that of the last pair, if it is the same."""
        key = (request.pages_key, stamp_files(request.score))
        if self._pages is None or self._pages_key != key:
            self._pages = self._pages_key = None  # frees the old one before the new one is made
            options = request.options
            pages = open_pages(list(request.score), dpi=options.dpi, pages=options.page_range)
            self._pages, self._pages_key = encode_pages_once(pages, self._encoder), key
        return self._pages

    def _write(self, request: PairRequest, alignment: Alignment, report: PairReport) -> None:
        settings, final = self.settings, self.settings.folder / request.name
        settings.drafts.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f"{request.name}-", dir=settings.drafts))
        draft.chmod(0o777 & ~_umask())
        try:
            write_formats(alignment, draft, settings.formats)
            kept = {
                "model": settings.model,
                **request.options.to_json(),
                "formats": list(settings.formats),
            }
            save_inputs(Inputs(request.score, request.recording, kept), draft / INPUTS_FILE, final)
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
