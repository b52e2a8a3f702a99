from __future__ import annotations

import io
import logging
import time

import pytest

from fusili_mir import progress
from fusili_mir.progress import progress_bar, progress_hidden, progress_shown, stage


class Terminal(io.StringIO):
    """A standard error that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def use_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Make standard error a terminal; in the test itself, for pytest replaces it between fixtures and tests."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(progress, "_SHOWN_AFTER_SEC", 0.01)
    monkeypatch.setattr(progress, "_STEP_SEC", 0.01)
    return terminal


def test_a_stage_shows_its_seconds_on_a_terminal_and_ends_its_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = use_terminal(monkeypatch)
    with stage("decoding"):
        time.sleep(0.1)
    shown = terminal.getvalue()
    assert shown.count("\rdecoding  ") >= 2
    assert shown.endswith(" s\n")


def test_a_short_stage_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = use_terminal(monkeypatch)
    monkeypatch.setattr(progress, "_SHOWN_AFTER_SEC", 60.0)
    with stage("decoding"):
        pass
    assert terminal.getvalue() == ""


def test_a_stage_that_fails_ends_its_line_and_lets_the_error_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> None:
        time.sleep(0.05)
        raise ValueError("no")

    terminal = use_terminal(monkeypatch)
    with pytest.raises(ValueError, match="no"), stage("decoding"):
        fail()
    assert terminal.getvalue().endswith("\n")


def test_nothing_is_shown_when_it_is_hidden_not_asked_for_or_no_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = use_terminal(monkeypatch)
    assert progress_shown()
    with progress_hidden():
        assert not progress_shown()
        with stage("decoding"):
            time.sleep(0.05)
        assert list(progress_bar(range(3), "reading")) == [0, 1, 2]
    with stage("decoding", shown=False):
        time.sleep(0.05)
    assert list(progress_bar(range(3), "reading", shown=False)) == [0, 1, 2]
    monkeypatch.setattr(terminal, "isatty", lambda: False)
    with stage("decoding"):
        time.sleep(0.05)
    assert terminal.getvalue() == ""
    assert not progress_shown()


def test_bars_and_stages_are_logged_with_their_time(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "fusili_mir")
    with stage("decoding"):
        pass
    list(progress_bar(range(3), "reading"))
    assert [record.getMessage() for record in caplog.records] == ["decoding: 0.0 s", "reading: 0.0 s"]
