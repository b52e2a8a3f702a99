"""What holds for every run of pytest here: what it sees of the machine, what may be skipped, coverage."""

from __future__ import annotations

import io
import os
import signal
import sys
import tempfile
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from example_machine import sealed

PACKAGES = ("fusili_mir", "fusili_training", "fusili_export", "fusili_integrations")
MAY_BE_SKIPPED = ("nothing is locked to root", "has a GPU", "only Debian is sealed off")

if find_spec("skia") is None:
    collect_ignore = ["fusili_mir/pages/skia_raster.py"]


def pytest_configure(config: pytest.Config) -> None:
    """Hide what `make test` does not install, from tests and from the processes that they start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # by a shell that runs the tests in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(
        config, "workerinput"
    ):  # of pytest-xdist; it has the environment of the process that started it
        return
    folder = tempfile.TemporaryDirectory(prefix="fusili-mir-tests-")
    config.add_cleanup(folder.cleanup)
    inside = sealed(os.environ, Path(folder.name))
    os.environ.clear()
    os.environ.update(inside)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    """Let a test fail that is skipped on Linux for something that `make test` installs."""
    report = yield
    if report.skipped and sys.platform == "linux" and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        without = find_spec("torch") is None and "No module named" in reason  # `make test-runtime`
        if reason not in MAY_BE_SKIPPED and not without:
            report.outcome, report.longrepr = "failed", f"on Linux, a test is not skipped: {reason}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """With ``--cov``, print the share of lines that ran: one line, not one for each file."""
    if not config.pluginmanager.hasplugin("_cov"):
        return
    from coverage import Coverage
    from coverage.exceptions import NoDataError

    measured = Coverage()
    measured.load()
    terminalreporter.section("coverage")
    for package in PACKAGES:
        try:
            percent = measured.report(include=[f"*/{package}/*"], file=io.StringIO())
        except NoDataError:
            continue
        terminalreporter.write_line(f"{package:<20} {percent:5.1f} % of lines")
