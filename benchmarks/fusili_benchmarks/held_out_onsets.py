"""Onset errors of held-out pieces under each shift; every look and every sound is encoded once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from fusili_benchmarks.held_out_pieces import HeldOutPiece, Playing, open_piece
from fusili_benchmarks.held_out_shifts import Shift
from fusili_mir.audio.heard_recording import HeardRecording
from fusili_mir.audio.pitch_curve import PitchCurve
from fusili_mir.audio.recording import RecordingLike
from fusili_mir.errors import InputError
from fusili_mir.model.encoded import EncodedAudio, EncodedScore
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import Pages
from fusili_mir.progress import progress_bar
from fusili_training.evaluation.onset_errors import (
    ComparedErrors,
    errors_of_piece,
    median_error_ms,
    share_within,
)
from fusili_training.evaluation.whole_pieces import Knowledge, PieceSource
from fusili_training.notation.layouts import Layout
from fusili_training.rendering.corpus import CorpusPiece

__all__ = ["RememberingEncoder", "ShiftResult", "format_results", "measure_images", "measure_shifts"]

_TOLERANCES_MS = (25, 50, 100, 250)
_Encoded = TypeVar("_Encoded", EncodedScore, EncodedAudio)


class RememberingEncoder(Encoder):
    """An encoder that encodes each object once, until it is told to forget."""

    _kept: dict[int, tuple[object, Any]]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._kept = {}

    def encode_pages(self, pages: Pages, progress: bool = False) -> EncodedScore:
        """Encode a score, or return its embeddings if it was encoded before."""
        return self._once(pages, lambda: Encoder.encode_pages(self, pages, progress))

    def encode_recording(
        self,
        recording: RecordingLike | HeardRecording,
        progress: bool = False,
        pitch: PitchCurve | None = None,
    ) -> EncodedAudio:
        """Encode a recording, or return its embeddings if it was encoded before."""
        return self._once(recording, lambda: Encoder.encode_recording(self, recording, progress, pitch))

    def forget(self) -> None:
        """Drop all embeddings."""
        self._kept.clear()

    def _once(self, thing: object, encode: Callable[[], _Encoded]) -> _Encoded:
        # The object is kept, too: its id stays unique only as long as it lives.
        if id(thing) not in self._kept:
            self._kept[id(thing)] = (thing, encode())
        encoded: _Encoded = self._kept[id(thing)][1]
        return encoded


@dataclass
class ShiftResult:
    """The errors under one shift, piece by piece; `cpu_sec` is the time added to that of the shifts before it."""

    name: str
    knowledge: Knowledge
    pieces: list[str] = field(default_factory=list)
    layouts: list[Layout] = field(default_factory=list)
    errors: list[ComparedErrors] = field(default_factory=list)
    cpu_sec: float = 0.0

    def of_layout(self, layout: Layout) -> ShiftResult:
        """Return the result of the pieces in one layout, under a name that says so."""
        chosen = [place for place, own in enumerate(self.layouts) if own == layout]
        return ShiftResult(
            f"{self.name}: {layout}",
            self.knowledge,
            [self.pieces[place] for place in chosen],
            [layout] * len(chosen),
            [self.errors[place] for place in chosen],
        )


def measure_shifts(
    pieces: Sequence[tuple[CorpusPiece, Layout]],
    shifts: Sequence[Shift],
    playing: Playing,
    encoder: RememberingEncoder,
    progress: bool = False,
) -> list[ShiftResult]:
    """Measure the onset errors of pieces under shifts.

    Parameters
    ----------
    pieces : sequence of CorpusPiece and Layout
    shifts : sequence of Shift
    playing : Playing
    encoder : RememberingEncoder
    progress : bool
        Whether to show a bar on a terminal.

    Returns
    -------
    list of ShiftResult
        From images alone for each shift; then with the symbolic score, for the shifts that ask for it.
    """
    with_score = [shift for shift in shifts if shift.with_score]
    results = [ShiftResult(shift.name, "images") for shift in shifts]
    results += [ShiftResult(shift.name, "score") for shift in with_score]
    for piece, layout in progress_bar(pieces, "held-out pieces", shown=progress):
        with open_piece(piece, layout, playing) as held_out:
            for shift, result in zip([*shifts, *with_score], results, strict=True):
                begin = time.process_time()
                result.errors.append(_errors(held_out, shift, result.knowledge, encoder))
                result.pieces.append(held_out.name)
                result.layouts.append(held_out.layout)
                result.cpu_sec += time.process_time() - begin
        encoder.forget()
    return results


def measure_images(name: str, source: PieceSource, encoder: Encoder, progress: bool = False) -> ShiftResult:
    """Measure the onset errors of whole pieces from images alone, such as those of another engraver."""
    result = ShiftResult(name, "images")
    begin = time.process_time()
    for piece in progress_bar(source.pieces, name, shown=progress):
        with source.open(piece, "images") as whole:
            result.errors.append(errors_of_piece(whole, encoder))
        result.pieces.append(piece)
        result.layouts.append("whole")
    result.cpu_sec = time.process_time() - begin
    return result


def _errors(piece: HeldOutPiece, shift: Shift, knowledge: Knowledge, encoder: Encoder) -> ComparedErrors:
    try:
        return errors_of_piece(piece.under(shift, knowledge), encoder)
    except InputError:
        # No staff was found on the pages, so no note was. The symbolic score says how many there are.
        lost = np.full(len(piece.under(Shift("", sound=shift.sound), "score").heads), np.inf)
        return ComparedErrors(lost, lost, lost)


def format_results(results: Iterable[ShiftResult]) -> str:
    """Format results as a Markdown table: errors in milliseconds, shares in per cent."""
    header = ["shift", "pieces", "notes", "median ms", "95 %", "median of pieces"]
    header += [f"<= {tolerance} ms" for tolerance in _TOLERANCES_MS] + [
        "95 % of the last",
        "straight line ms",
    ]
    lines = [header, ["---"] * len(header), *(_row(result) for result in results)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _row(result: ShiftResult) -> list[str]:
    model = [errors.model for errors in result.errors]
    median = median_error_ms(model)
    by_piece = 1000 * float(np.median([np.median(errors) for errors in model]))
    shares = [share_within(model, tolerance) for tolerance in _TOLERANCES_MS]
    straight = median_error_ms([errors.straight for errors in result.errors]).value
    return [
        result.name,
        str(len(model)),
        str(sum(len(errors) for errors in model)),
        f"{median.value:.1f}",
        f"{median.low:.1f} - {median.high:.1f}",
        f"{by_piece:.1f}",
        *(f"{100 * share.value:.1f}" for share in shares),
        f"{100 * shares[-1].low:.1f} - {100 * shares[-1].high:.1f}",
        f"{straight:.0f}",
    ]
