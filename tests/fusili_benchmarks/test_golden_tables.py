"""Tables that are kept and compared: what counts as a difference, and what does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fusili_benchmarks.golden_tables import (
    Difference,
    Tables,
    checksum,
    compare_tables,
    load_tables,
    save_tables,
)
from fusili_mir.arrays import Table
from goldens import compare, golden_file, keep

COLUMNS = [("id", "U8"), ("measure", "i4"), ("onset_sec", "f8"), ("x0", "f4"), ("confidence", "f4")]
NOTES = [("n1", 0, 1.0, 100.0, 0.9), ("n2", 0, 1.5, 120.0, 0.8), ("n3", 1, np.nan, 140.0, 0.0)]


def notes(*changes: tuple[str, int, object]) -> Table:
    """Three notes, some of them changed: column, row, value."""
    table = np.array(NOTES, COLUMNS)
    for column, row, value in changes:
        table[column][row] = value
    return table


def differences(found: Table) -> list[Difference]:
    return compare_tables({"notes": notes()}, {"notes": found})


@pytest.mark.parametrize(
    ("column", "was", "near", "far"),
    [
        ("onset_sec", 1.0, 1.0009, 1.002),
        ("x0", 100.0, 100.04, 100.06),
        ("confidence", 0.9, 0.9009, 0.902),
    ],
)
def test_numbers_with_a_fraction_may_differ_within_the_tolerance_of_their_column(
    column: str, was: float, near: float, far: float
) -> None:
    assert differences(notes((column, 0, near))) == []
    (found,) = differences(notes((column, 0, far)))
    assert (found.table, found.column, found.n_rows) == ("notes", column, 1)
    assert found.largest == pytest.approx(far - was, rel=1e-3)


def test_whole_numbers_and_texts_may_not_differ() -> None:
    assert differences(notes(("measure", 0, 1))) == [Difference("notes", "measure", 1, 1.0)]
    assert differences(notes(("id", 1, "n9"), ("id", 2, ""))) == [Difference("notes", "id", 2)]


def test_what_is_not_known_equals_only_what_is_not_known_either() -> None:
    assert differences(notes(("onset_sec", 2, np.nan))) == []
    assert differences(notes(("onset_sec", 2, 2.0))) == [Difference("notes", "onset_sec", 1, np.inf)]
    assert differences(notes(("onset_sec", 0, np.nan))) == [Difference("notes", "onset_sec", 1, np.inf)]


def test_missing_rows_columns_and_tables_are_differences() -> None:
    assert differences(notes()[:2]) == [Difference("notes", "(rows)", 1)]
    without = np.array([(row[0], *row[2:]) for row in NOTES], [COLUMNS[0], *COLUMNS[2:]])
    assert differences(without) == [Difference("notes", "measure (missing)", 3)]
    assert compare_tables({"notes": without}, {"notes": notes()}) == [Difference("notes", "measure (new)", 3)]
    frames = {"notes": notes(), "frames": notes()}
    assert compare_tables(frames, {"notes": notes()}) == [Difference("frames", "(missing)", 3)]
    assert compare_tables({"notes": notes()}, frames) == [Difference("frames", "(new)", 3)]


def test_what_is_read_is_what_was_written_but_for_a_16th_of_the_tolerances(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = np.empty(200, COLUMNS)
    table["id"], table["measure"] = [f"n{row}" for row in range(200)], np.arange(200) // 4
    table["onset_sec"], table["x0"] = np.sort(rng.uniform(0, 900, 200)), rng.uniform(0, 3000, 200)
    table["confidence"] = rng.uniform(0, 1, 200)
    table["onset_sec"][7] = np.nan
    save_tables({"notes": table, "none": table[:0]}, tmp_path / "a.npz")
    found, known = load_tables(tmp_path / "a.npz")
    assert known == checksum({"notes": table, "none": table[:0]})
    assert known != checksum({"notes": table[:-1], "none": table[:0]})
    assert list(found["none"].dtype.names or ()) == [name for name, _ in COLUMNS]
    assert len(found["none"]) == 0
    assert found["notes"]["id"].tolist() == table["id"].tolist()
    assert found["notes"]["measure"].tolist() == table["measure"].tolist()
    for column, within in (("onset_sec", 1e-3 / 32), ("x0", 0.05 / 32), ("confidence", 1e-3 / 32)):
        np.testing.assert_allclose(found["notes"][column], table[column], rtol=0, atol=within)


def test_the_command_says_which_cases_differ_and_in_what(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before: dict[str, Tables] = {name: {"notes": notes()} for name in ("a", "b", "c", "d", "e")}
    assert keep(tmp_path, before.items())
    now: dict[str, Tables | str] = {
        "a": before["a"],
        "b": {"notes": notes(("onset_sec", 0, 1.0001))},
        "c": {"notes": notes(("onset_sec", 0, 1.002), ("onset_sec", 1, 1.6))},
        "d": "InputError: no such score",
    }
    assert not compare(tmp_path, list(before), now.items())
    rows = capsys.readouterr().out.splitlines()[2:]
    assert rows == [
        "| c | notes | onset_sec | 2 | 0.1 |",
        "| d | InputError: no such score | | | |",
        "| e | (no such case) | | | |",
        "",
        "1 equal, 1 close, 3 different",
    ]
    assert compare(tmp_path, ["a", "b"], [(name, now[name]) for name in ("a", "b")])


def test_what_could_not_be_aligned_is_not_kept(tmp_path: Path) -> None:
    assert not keep(tmp_path, [("a", "InputError: no such score")])
    assert not golden_file(tmp_path, "a").exists()
