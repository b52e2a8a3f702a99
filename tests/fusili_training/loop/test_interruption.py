import os
import signal

import pytest

from fusili_training.loop.interruption import watch_for_stop


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_first_signal_is_only_noted(number: signal.Signals) -> None:
    with watch_for_stop() as stop:
        assert not stop.made
        os.kill(os.getpid(), number)
        assert stop.made


def test_a_second_ctrl_c_does_not_wait() -> None:
    with pytest.raises(KeyboardInterrupt), watch_for_stop():  # noqa: PT012
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)


def test_under_torchrun_repeated_signals_wait() -> None:
    with watch_for_stop(patient=True) as stop:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.made


def test_earlier_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with watch_for_stop():
        pass
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
