"""A score alignment for Piano Precision (File > Load Score Alignment): places of the score and their seconds.

A place is a label such as ``3+1/4``: a measure, counted from 1 (a pick-up is 0), and how many whole notes after
its start. Piano Precision knows no repeats and no grace notes: what is played again is left out.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np

from fusili_mir.alignment.results import Alignment
from fusili_mir.output.score_time import score_time

__all__ = ["piano_precision_rows", "save_piano_precision_csv"]

_MAX_DENOMINATOR = 1024


def save_piano_precision_csv(alignment: Alignment, filename: str | Path) -> None:
    """Write the two columns LABEL and TIME."""
    with Path(filename).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["LABEL", "TIME"])
        writer.writerows((label, f"{second:.6f}") for label, second in piano_precision_rows(alignment))


def piano_precision_rows(alignment: Alignment) -> Iterator[tuple[str, float]]:
    """Yield the label and the second of each onset of the score, the first time that it is played."""
    time, measures = score_time(alignment), alignment.measures
    missing = Fraction(*time.signatures[0]) - _wholes(
        time.measure_end_quarter[0] - time.measure_start_quarter[0]
    )
    has_pick_up = int(measures["measure"][0]) == 0 and missing > 0
    heard = np.isfinite(alignment.notes["onset_sec"]) & ~alignment.notes["is_grace"]
    order = np.lexsort((alignment.notes["onset_sec"][heard], time.onset_quarter[heard]))
    onsets, first = np.unique(time.onset_quarter[heard][order], return_index=True)
    seen: set[str] = set()
    for quarter, second in zip(onsets, alignment.notes["onset_sec"][heard][order][first], strict=True):
        row = int(np.searchsorted(time.measure_start_quarter, quarter + 1e-6)) - 1
        if row < 0:
            continue
        measure = int(measures["measure"][row])
        place = _wholes(quarter - time.measure_start_quarter[row])
        if has_pick_up and measure == 0:
            place += missing
        number = measure if has_pick_up else measure + 1
        label = f"{number}+{place.numerator}/{place.denominator}"
        if label not in seen:
            seen.add(label)
            yield label, float(second)


def _wholes(quarters: float) -> Fraction:
    return (Fraction(float(quarters)) / 4).limit_denominator(_MAX_DENOMINATOR)
