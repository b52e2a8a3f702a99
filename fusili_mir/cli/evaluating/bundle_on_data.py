"""The first program: measure a bundle on a dataset."""

from __future__ import annotations

from pathlib import Path

from fusili_mir.cli.evaluating.measuring import Measuring, evaluation_packages, expect_paths
from fusili_mir.cli.evaluating.running import Running

__all__ = ["measure_bundle"]


def measure_bundle(paths: tuple[Path, ...], running: Running, measuring: Measuring) -> None:
    """Measure the bundle on the data, the two paths, and show the result."""
    bundle, data = expect_paths(paths, 2, "BUNDLE DATA")
    options = measuring.task_options()
    with evaluation_packages():
        from fusili_mir.model.bundle import load_bundle
        from fusili_training.evaluation.evaluating import evaluate_bundle
    measuring.show(evaluate_bundle(running.encoder(load_bundle(bundle)), data, options))
