"""The output of an evaluation: tables in four formats, the paper's tables, plots."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fusili_training.evaluation.bootstrap import Interval
from fusili_training.evaluation.global_retrieval import Ranks
from fusili_training.evaluation.plots import plot_errors, plot_recall, save_plot
from fusili_training.evaluation.published import COLUMNS, TABLES
from fusili_training.evaluation.report import Measurement, Report
from fusili_training.evaluation.reproduce import format_reproduction
from fusili_training.evaluation.tables import format_report


def example_report() -> Report:
    found = Interval(0.305, 0.25, 0.3512)
    measurements = (
        Measurement("local", "paper's grid", "A2I", "top-1", found, 120, {"chance": 1 / 49}),
        Measurement("onsets", "segments", "", "median ms", Interval(np.inf, 30.0, np.inf), 7),
    )
    return Report("small_1", "msmd", 2, 9, {"over 20 s": 3}, measurements)


def test_a_table_has_the_interval_and_the_baselines_beside_each_number() -> None:
    title, _, header, _, first, second = format_report(example_report()).splitlines()
    assert title == "small_1 on msmd: 2 pieces, 9 pairs; left out: 3 over 20 s"
    assert header.split()[:5] == ["task", "variant", "direction", "metric", "value"]
    assert first.split() == [
        "local",
        "paper's",
        "grid",
        "A2I",
        "top-1",
        "0.305",
        "0.250",
        "-",
        "0.351",
        "120",
        "0.020",
        "-",
        "-",
    ]
    assert second.split() == [
        "onsets",
        "segments",
        "median",
        "ms",
        "inf",
        "30.0",
        "-",
        "inf",
        "7",
        "-",
        "-",
        "-",
    ]


def test_csv_and_json_have_all_digits() -> None:
    rows = list(csv.DictReader(io.StringIO(format_report(example_report(), "csv"))))
    assert float(rows[0]["chance"]) == 1 / 49
    assert rows[0]["straight line"] == ""
    content = json.loads(format_report(example_report(), "json"))
    assert content["measurements"][0]["found"] == {"value": 0.305, "low": 0.25, "high": 0.3512}
    assert content["measurements"][1]["found"]["value"] is None  # JSON has no infinity
    assert content["dropped"] == {"over 20 s": 3}


def test_latex_is_escaped() -> None:
    lines = format_report(example_report(), "latex").splitlines()
    assert lines[0] == r"\begin{tabular}{@{}llllllllll@{}}"
    assert r"95 \%" in lines[2]
    assert lines[-1] == r"\end{tabular}"


def test_our_numbers_are_beside_the_published_ones() -> None:
    found = Interval(0.28, 0.2, 0.3)
    ours = Report("x", "msmd", 1, 1, {}, (Measurement("local", "paper's grid", "A2I", "top-1", found, 1),))
    text = format_reproduction("table1", {"table1-random-fusili": {"msmd": ours}}, "csv")
    rows = {row["ours (published)"]: row for row in csv.DictReader(io.StringIO(text))}
    assert rows["Random, +FuSiLi"]["local top-1"] == "0.28 (0.24)"
    assert rows["Random, +FuSiLi"]["local PPL"] == "- (35.51)"
    assert rows["Same Piece, +Pos. Mutations"]["MSMD A2I MRR"] == "- (0.39)"
    assert rows["U-MusT"]["local PPL"] == "- (101.27)"
    assert rows["U-MusT"]["PDMX I2A R@1"] == "- (-)"


def test_both_tables_are_complete_and_have_their_recipes() -> None:
    recipes = Path(__file__).parents[3] / "training" / "recipes"
    assert [len(rows) for rows in TABLES.values()] == [9, 5]
    assert len(COLUMNS) == 16
    for row in (*TABLES["table1"], *TABLES["table2"]):
        assert row.recipe is None or (recipes / f"{row.recipe}.toml").is_file()


def test_plots_are_written_as_png_and_svg(tmp_path: Path) -> None:
    ranks = {("pooled", "I2A"): Ranks(*np.array([[0, 2, 1], [1, 1, 1], [1, 1, 1]]))}
    save_plot(plot_recall(ranks, "toy"), tmp_path / "plots" / "recall")
    save_plot(plot_errors({"segments": np.array([0.01, 0.2, np.inf])}, "toy"), tmp_path / "plots" / "errors")
    assert {file.name for file in (tmp_path / "plots").iterdir()} == {
        "recall.png",
        "recall.svg",
        "errors.png",
        "errors.svg",
    }
    with Image.open(tmp_path / "plots" / "recall.png") as image:
        assert np.asarray(image.convert("L")).std() > 5
    (axes,) = plot_recall(ranks, "toy").axes
    assert axes.lines[0].get_ydata().tolist() == pytest.approx([1 / 3, 2 / 3, 1])  # type: ignore[union-attr]
