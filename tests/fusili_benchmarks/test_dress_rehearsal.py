"""The dress rehearsal of the paper's tables, at its smallest: one row, from toy scores to the filled table."""

from __future__ import annotations

from pathlib import Path

import pytest

from dress_rehearsal import rehearse, rows
from fusili_benchmarks.gpu_needs import GpuNeeds, Workload
from fusili_mir.model.bundle import load_bundle
from fusili_training.evaluation.published import TABLES


def test_a_row_goes_from_scores_to_the_table_under_bfloat16_on_two_ranks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rehearse(tmp_path / "out", ["table2-global"])  # alpha 0: its first validation needs the global heads
    said = capsys.readouterr().out
    filled = next(line for line in said.splitlines() if line.startswith("alpha 0  "))
    assert "- (" not in filled  # every cell has a number of ours
    recipe = load_bundle(tmp_path / "out" / "bundles" / "table2-global").manifest.recipe
    assert recipe["training"]["precision"] == "bfloat16"
    assert recipe["local_heads"] == "global"
    commands = [line.split()[1:3] for line in said.splitlines() if line.startswith("$ ")]
    expected = ["render", *["--nproc-per-node"] * 3, "export", "evaluate"]  # killed, resumed, stopped early
    assert [command[1] for command in commands] == expected


def test_all_rows_of_both_tables_can_be_rehearsed() -> None:
    published = {row.recipe for table in TABLES.values() for row in table if row.recipe is not None}
    assert published == set(rows())


def test_needs_grow_with_the_work() -> None:
    needs = GpuNeeds(operations_per_pair=3e11, kb_per_pair=200.0, pairs_per_cpu_sec=100.0)
    work = Workload(n_pairs=324_000, batch_size=128, epochs=20, n_gpus=4)
    assert work.n_steps == 2531 * 20
    steps, *gpus, disk = needs.lines(work)
    assert "51.2 TFLOP a step" in steps  # 128 pairs of 0.3 TFLOP, with the forward pass repeated
    assert "0.14 s a step, 1.9 h a run, 8 GPU hours" in gpus[0]  # 4 A100 at 30 % of 312 TFLOP/s
    assert "138 GB for 690,000 pairs of 200 kB" in disk
