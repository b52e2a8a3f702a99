from __future__ import annotations

import io
import logging
import sys
import time

import pytest

from fusili_mir import progress
from fusili_mir.progress import ProgressLines, counted, progress_bar, progress_hidden, progress_shown, stage


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


class Clock:
    """A clock that a test sets, in seconds after its beginning."""

    def __init__(self) -> None:
        self.sec = 0.0

    def __call__(self) -> float:
        return 1000.0 + self.sec


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "_now_sec", clock)
    return clock


class Run:
    """Lines of something that goes on, at chosen times after its beginning."""

    def __init__(self, clock: Clock, total: int = 0, done: int = 0) -> None:
        self.clock = clock
        self.lines = ProgressLines("indexing", total, done)

    def at(self, sec: float, done: int = 0, note: str = "") -> list[str]:
        self.clock.sec = sec
        return self.lines.due(done, note)


def test_a_line_says_what_how_far_how_long_and_what_is_left(clock: Clock) -> None:
    assert Run(clock, 240).at(95, 12, "loss 0.5") == [
        "fusili-mir: indexing: 12 of 240 (5 %), loss 0.5, 95 s so far, about 30 min left"
    ]


def test_what_was_done_before_does_not_make_it_look_faster(clock: Clock) -> None:
    # 10 of 20 s for one of 2: those 8 that were there took no time.
    assert Run(clock, 10, 8).at(10, 9) == [
        "fusili-mir: indexing: 9 of 10 (90 %), 10 s so far, about 10 s left"
    ]


def test_short_runs_have_no_lines(clock: Clock) -> None:
    run = Run(clock, 4)
    assert [run.at(sec, done) for sec, done in ((1, 1), (5, 2), (9, 3), (9.9, 4))] == [[], [], [], []]
    assert run.lines.last(4) == []


def test_a_line_comes_after_10_s_then_at_5_percent_or_30_s(clock: Clock) -> None:
    run = Run(clock, 100)
    due = {
        sec: bool(run.at(sec, done)) for sec, done in ((10, 0), (15, 7), (20, 8), (29, 9), (49, 12), (50, 12))
    }
    # 10: the first; 15: 5 %, but 5 s later; 20: 8 %; 49: 4 % after 29 s; 50: after 30 s
    assert due == {10: True, 15: False, 20: True, 29: False, 49: False, 50: True}


def test_a_stage_of_unknown_length_says_that_it_goes_on_and_that_it_ended(clock: Clock) -> None:
    run = Run(clock)
    assert run.at(10) == ["fusili-mir: indexing: 10 s so far"]
    assert run.at(39) == []
    assert run.at(754) == ["fusili-mir: indexing: 12 min 34 s so far"]
    clock.sec += 1
    assert run.lines.last(0) == ["fusili-mir: indexing: done in 12 min 35 s"]


def test_the_last_line_says_how_far_it_came_if_that_was_not_said(clock: Clock) -> None:
    run = Run(clock, 100)
    assert run.at(10, 90)
    clock.sec += 1
    assert run.lines.last(90) == []
    assert run.lines.last(95) == ["fusili-mir: indexing: 95 of 100 (95 %), 11 s so far, about 1 s left"]


def test_lines_worth_saying_wait_for_ten_seconds_and_then_come_at_once(clock: Clock) -> None:
    run = Run(clock, 4)
    assert run.at(2, 1) == []
    run.lines.keep(1, "one aligned")
    assert run.at(9, 1) == []
    assert run.at(11, 1) == ["fusili-mir: indexing: 1 of 4 (25 %), one aligned, 2 s so far, about 6 s left"]
    run.lines.keep(2, "two failed")
    assert run.at(12, 2) == ["fusili-mir: indexing: 2 of 4 (50 %), two failed, 11 s so far, about 11 s left"]
    assert run.at(13, 2) == []


def test_what_strangers_call_their_files_does_not_command_the_terminal(clock: Clock) -> None:
    (line,) = Run(clock, 2).at(10, 1, "a\x1b[2J aligned")
    assert "\x1b" not in line


def test_lines_come_while_nothing_is_done(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_LOOK_EVERY_SEC", 0.001)
    said = ""
    with counted("rendering", 3), stage("engraving"):
        clock.sec = 12.0
        while said.count("\n") < 2:  # ends when both threads have looked
            said += capsys.readouterr().err
            time.sleep(0.001)
    said += capsys.readouterr().err
    assert sorted(said.splitlines()) == [
        "fusili-mir: engraving: 12 s so far",
        "fusili-mir: engraving: done in 12 s",
        "fusili-mir: rendering: 0 of 3 (0 %), 12 s so far",
    ]


def test_items_are_counted_as_they_are_dealt_with(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    for clock.sec in progress_bar((7.0, 14.0, 21.0), "reading"):
        pass
    assert capsys.readouterr().err.splitlines() == [
        "fusili-mir: reading: 2 of 3 (67 %), 14 s so far, about 7 s left",
        "fusili-mir: reading: 3 of 3 (100 %), 21 s so far",
    ]


def test_a_reader_that_has_gone_does_not_end_the_work(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stderr", Gone())
    for clock.sec in progress_bar((20.0, 40.0), "reading"):
        pass
    assert clock.sec == 40.0


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


def test_a_terminal_gets_a_bar_with_notes_and_messages_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = use_terminal(monkeypatch)
    with counted("training", 4, 1) as count:
        count.advance(note="loss 0.5000", each=True)
        count.say("the best so far")
        count.advance(2)
    shown = terminal.getvalue()
    assert "training" in shown
    assert "2/4" in shown
    assert "loss 0.5000" in shown
    assert "\r\033[Kthe best so far\n" in shown
    assert "4/4" in shown.split("the best so far")[1]
    assert "fusili-mir:" not in shown


def test_nothing_is_shown_when_it_is_hidden_or_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = use_terminal(monkeypatch)
    monkeypatch.setattr(progress, "_LEAST_BETWEEN_SEC", 0.0)
    assert progress_shown()
    for is_terminal in (True, False):
        monkeypatch.setattr(terminal, "isatty", lambda answer=is_terminal: answer)
        with progress_hidden():
            assert not progress_shown()
            with stage("decoding"), counted("training", 3) as count:
                time.sleep(0.05)
                count.advance(each=True)
                count.say("the best so far")
            assert list(progress_bar(range(3), "reading")) == [0, 1, 2]
        with stage("decoding", shown=False):
            time.sleep(0.05)
        assert list(progress_bar(range(3), "reading", shown=False)) == [0, 1, 2]
    monkeypatch.setattr(sys, "stderr", None)  # as pythonw has it
    assert list(progress_bar(range(3), "reading")) == [0, 1, 2]
    assert terminal.getvalue() == ""


def test_bars_and_stages_are_logged_with_their_time(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "fusili_mir")
    with stage("decoding"):
        pass
    list(progress_bar(range(3), "reading"))
    assert [record.getMessage() for record in caplog.records] == ["decoding: 0.0 s", "reading: 0.0 s"]
