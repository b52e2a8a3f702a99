"""What holds for every run of pytest here: which modules have no doctests, and coverage summed up by package."""

from __future__ import annotations

import io

import pytest

PACKAGES = ("fusili_mir", "fusili_training", "fusili_export", "fusili_integrations")

try:
    import skia  # noqa: F401
except ImportError:  # not installed, or without the system's libEGL
    collect_ignore = ["fusili_mir/pages/skia_raster.py"]


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
