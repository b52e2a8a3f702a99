"""Results of small cases are those that were kept in `tests/goldens`.

A commit that is meant to change a figure states the table of differences, and keeps the cases anew:

    python benchmarks/goldens.py compare tests/goldens
    python benchmarks/goldens.py keep tests/goldens --force --only NAME ...
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fusili_benchmarks.golden_cases import Case, align_case, small_cases
from fusili_benchmarks.golden_tables import compare_tables, load_tables

KEPT = sorted((Path(__file__).parents[2] / "goldens").glob("*.npz"))


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    return {case.name: case for case in small_cases(tmp_path_factory.mktemp("goldens"))}


def test_the_example_is_kept_in_all_three_ways() -> None:
    assert {file.stem for file in KEPT} > {"demo-score", "demo-png", "demo-pdf"}


@pytest.mark.parametrize("kept", KEPT, ids=[file.stem for file in KEPT])
def test_results_are_those_that_were_kept(kept: Path, cases: dict[str, Case]) -> None:
    differences = compare_tables(load_tables(kept)[0], align_case(cases[kept.stem]))
    assert [each.row for each in differences] == []
