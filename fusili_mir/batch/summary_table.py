"""The summary of many results as a table: `summary.csv`."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, fields

from fusili_mir.batch.pair_report import PairReport

__all__ = ["summary_csv"]


def summary_csv(reports: Sequence[PairReport]) -> str:
    """Return reports as a table, a row each; what is not known is empty."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, [field.name for field in fields(PairReport)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(report) for report in reports)
    return stream.getvalue()
