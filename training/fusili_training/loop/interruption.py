"""Being told to stop: Ctrl-C, or a scheduler's SIGTERM, ends a run after the step it is in."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from fusili_mir.errors import FusiliError

__all__ = ["StopRequest", "TrainingInterruptedError", "held_stop_signals", "watch_for_stop"]

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class TrainingInterruptedError(FusiliError):
    """A run that was asked to stop, and did, with a checkpoint to go on from."""


class StopRequest:
    """Whether someone asked the run to stop.

    Parameters
    ----------
    patient : bool
        Whether a second Ctrl-C still waits for the step to end, as it should under torchrun, which passes on
        the one that every rank has already received.
    """

    def __init__(self, patient: bool) -> None:
        self.made = False
        self._patient = patient

    def receive(self, number: int, _frame: FrameType | None) -> None:
        """Note the request; this is a signal handler."""
        if self.made and number == signal.SIGINT and not self._patient:
            raise KeyboardInterrupt
        self.made = True


@contextmanager
def watch_for_stop(patient: bool = False) -> Iterator[StopRequest]:
    """Catch SIGINT and SIGTERM meanwhile; `patient` as in `StopRequest`."""
    request = StopRequest(patient)
    if threading.current_thread() is not threading.main_thread():
        yield request  # signals reach the main thread only
        return
    earlier = {number: signal.signal(number, request.receive) for number in _STOP_SIGNALS}
    try:
        yield request
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


@contextmanager
def held_stop_signals() -> Iterator[None]:
    """Hold both signals back meanwhile, and for good from processes that are started meanwhile.

    A Ctrl-C, and most schedulers' SIGTERM, reach all processes of a run: those that read data must outlive the
    step that the run is in.
    """
    earlier = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, earlier)
