"""Stopping a run: Ctrl-C, or a scheduler's SIGTERM, ends it after the current step."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from fusili_mir.errors import FusiliError

__all__ = ["STOP_SIGNALS", "StopRequest", "TrainingInterruptedError", "watch_for_stop"]

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class TrainingInterruptedError(FusiliError):
    """A run was stopped on request and saved a checkpoint to resume from."""


class StopRequest:
    """Whether the run was asked to stop.

    Parameters
    ----------
    patient : bool
        Whether the run finishes its step even after a second Ctrl-C. Needed under torchrun, which sends the
        signal again to every rank.
    """

    def __init__(self, patient: bool) -> None:
        self.made = False
        self._patient = patient

    def receive(self, number: int, _frame: FrameType | None) -> None:
        """Handle the signal: record the request."""
        if self.made and number == signal.SIGINT and not self._patient:
            raise KeyboardInterrupt
        self.made = True


@contextmanager
def watch_for_stop(patient: bool = False) -> Iterator[StopRequest]:
    """Catch SIGINT and SIGTERM within the context; `patient` as in `StopRequest`."""
    request = StopRequest(patient)
    if threading.current_thread() is not threading.main_thread():
        yield request  # signals reach the main thread only
        return
    earlier = {number: signal.signal(number, request.receive) for number in STOP_SIGNALS}
    try:
        yield request
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
