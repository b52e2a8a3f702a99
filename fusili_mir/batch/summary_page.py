"""The summary of many results as a page: `index.html`, without scripts, whatever comes from files escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from urllib.parse import quote

from fusili_mir import __version__
from fusili_mir.batch.pair_report import PairReport
from fusili_mir.viewer.view_page import VIEW_FILE

__all__ = ["summary_html"]

_PAGE = Template(
    """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>$title</title>
<style>
:root { color-scheme: light dark; --line: light-dark(#d3d0c9, #363b41); --quiet: light-dark(#5f6770, #98a1aa);
  --doubt: light-dark(#9a6200, #e0a33a); --bad: light-dark(#b3261e, #ff8a80);
  --good: light-dark(#1f7a3d, #6fce8f);
  font: 15px/1.4 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
body { max-width: 1200px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; margin: 0 0 .3rem; }
p { color: var(--quiet); margin: 0 0 1.2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; position: sticky; top: 0; background: Canvas; }
th, td { padding: .35rem .7rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.aligned { color: var(--good); } td.doubtful, td.unmatched { color: var(--doubt); }
td.failed { color: var(--bad); }
td:first-child { min-width: 16rem; }
small { color: var(--quiet); display: block; overflow-wrap: anywhere; }
</style>
</head>
<body>
<h1>$title</h1>
<p>$counts. The same table for programs: <a href="summary.csv">summary.csv</a>. Made by fusili-mir $version.</p>
<div class="wide">
<table>
<thead><tr><th>result</th><th>status</th><th class="number">reliability</th><th class="number">notes</th>
<th class="number">measures</th><th class="number">length</th><th class="number">CPU</th>
<th>remarks</th></tr></thead>
<tbody>
$rows
</tbody>
</table>
</div>
</body>
</html>
"""
)


def summary_html(reports: Sequence[PairReport], n_pairs: int, folder: Path) -> str:
    """Return reports as a page.

    Parameters
    ----------
    reports : sequence of PairReport
    n_pairs : int
        Number of pairs, those not yet aligned included.
    folder : Path
        Folder of the results; each that has a viewer is linked to it.

    Returns
    -------
    str
    """
    return _PAGE.substitute(
        title=f"{n_pairs} pair{'' if n_pairs == 1 else 's'} of a score and a recording",
        counts=escape(count_reports(reports, n_pairs)),
        version=escape(__version__),
        rows="\n".join(_row(report, (folder / report.name / VIEW_FILE).is_file()) for report in reports),
    )


def count_reports(reports: Sequence[PairReport], n_pairs: int) -> str:
    """Count reports by status, in words.

    >>> count_reports([PairReport("a", "a.mxl", "a.wav", "aligned")], n_pairs=3)
    '1 aligned, 2 to come'
    """
    counts = Counter(report.status for report in reports)
    words = [
        f"{counts[status]} {status}"
        for status in ("aligned", "doubtful", "unmatched", "failed")
        if counts[status]
    ]
    if n_pairs > len(reports):
        words.append(f"{n_pairs - len(reports)} to come")
    return ", ".join(words)


def _row(report: PairReport, has_view: bool) -> str:
    name = escape(report.name)
    if has_view:
        name = f'<a href="{quote(report.name)}/{VIEW_FILE}">{name}</a>'
    files = "".join(_file(file) for file in (report.score, report.recording))
    heard = "" if report.notes is None else f"{report.notes_heard} of {report.notes}"
    numbers = (
        "" if report.reliability is None else f"{report.reliability:.2f}",
        heard,
        "" if report.measures is None else str(report.measures),
        "" if report.recording_sec is None else _clock(report.recording_sec),
        "" if report.cpu_sec is None else f"{report.cpu_sec:.1f} s",
    )
    played = f"repeats: {report.repeats}" if report.repeats not in ("", "none") else ""
    remarks = "; ".join(filter(None, (played, report.pitch, report.message)))
    cells = "".join(f'<td class="number">{escape(number)}</td>' for number in numbers)
    return (
        f'<tr><td>{name}{files}</td><td class="{report.status}">{report.status}</td>{cells}'
        f"<td>{escape(remarks)}</td></tr>"
    )


def _file(name: str) -> str:
    """Return the name of a file; its folder shows when the mouse is over it."""
    return f'<small title="{escape(name)}">{escape(Path(name).name)}</small>'


def _clock(seconds: float) -> str:
    """Write seconds as on a clock.

    >>> _clock(75.4), _clock(3600.0)
    ('1:15', '60:00')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
