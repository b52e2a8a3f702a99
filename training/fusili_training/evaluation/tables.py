"""Reports as text: plain table, CSV, JSON, LaTeX."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Literal, get_args

from fusili_training.evaluation.report import Measurement, Report

__all__ = ["FORMATS", "TableFormat", "format_grid", "format_number", "format_report"]

TableFormat = Literal["table", "csv", "json", "latex"]
FORMATS: tuple[TableFormat, ...] = get_args(TableFormat)

_BASELINES = ("chance", "straight line", "shuffled")
_HEADER = ("task", "variant", "direction", "metric", "value", "95 %", "n", *_BASELINES)
_LATEX_SPECIAL = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}"}


def format_report(report: Report, kind: TableFormat = "table") -> str:
    """Format a report.

    Parameters
    ----------
    report : Report
    kind : "table", "csv", "json" or "latex"
        CSV and JSON have all digits.

    Returns
    -------
    str
        Text without a final newline.
    """
    if kind == "json":
        return json.dumps(_finite(asdict(report)), indent=1, ensure_ascii=False)
    if kind == "csv":
        return _csv(report)
    rows = [_row(each) for each in report.measurements]
    grid = format_grid(_HEADER, rows, kind)
    if kind == "latex":
        return grid
    dropped = ", ".join(f"{number} {reason}" for reason, number in sorted(report.dropped.items()))
    title = f"{report.model} on {report.data}: {report.n_pieces} pieces, {report.n_pairs} pairs"
    return f"{title}{f'; left out: {dropped}' if dropped else ''}\n\n{grid}"


def format_grid(header: Sequence[str], rows: Sequence[Sequence[str]], kind: TableFormat) -> str:
    """Format cells in aligned columns, as CSV, as a LaTeX tabular (booktabs), or as JSON objects."""
    if kind == "json":
        return json.dumps([dict(zip(header, row, strict=True)) for row in rows], indent=1, ensure_ascii=False)
    if kind == "csv":
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([header, *rows])
        return text.getvalue().rstrip("\n")
    if kind == "latex":
        lines = [" & ".join(_escape(cell) for cell in row) + r" \\" for row in [header, *rows]]
        columns = "l" * len(header)
        top = rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}" + "\n\\toprule"
        return "\n".join([top, lines[0], r"\midrule", *lines[1:], r"\bottomrule", r"\end{tabular}"])
    widths = [max(len(row[place]) for row in [header, *rows]) for place in range(len(header))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [header, ["-" * width for width in widths], *rows]
    ]
    return "\n".join(lines)


def format_number(value: float | None, digits: int) -> str:
    """Return a number with `digits` decimals; a dash for an unknown one."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value:.{digits}f}"


def _digits(metric: str) -> int:
    return 2 if metric == "PPL" else 1 if metric == "median ms" else 3


def _row(each: Measurement) -> list[str]:
    digits = _digits(each.metric)
    found = each.found
    interval = f"{format_number(found.low, digits)} - {format_number(found.high, digits)}"
    baselines = [format_number(each.baselines.get(name), digits) for name in _BASELINES]
    value = format_number(found.value, digits)
    return [each.task, each.variant, each.direction, each.metric, value, interval, str(each.n), *baselines]


def _csv(report: Report) -> str:
    header = ["model", "data", *_HEADER[:4], "value", "low", "high", "n", *_BASELINES]
    rows = [
        [
            report.model,
            report.data,
            each.task,
            each.variant,
            each.direction,
            each.metric,
            *(str(number) for number in (each.found.value, each.found.low, each.found.high)),
            str(each.n),
            *(str(each.baselines.get(name, "")) for name in _BASELINES),
        ]
        for each in report.measurements
    ]
    return format_grid(header, rows, "csv")


def _escape(cell: str) -> str:
    return "".join(_LATEX_SPECIAL.get(letter, letter) for letter in cell)


def _finite(content: object) -> object:
    """Replace infinities and NaN, which JSON does not have, by None."""
    if isinstance(content, dict):
        return {name: _finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content
