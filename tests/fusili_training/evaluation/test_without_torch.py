"""Evaluation without the packages of the extra `train`, as after `pip install 'fusili-mir[cpu,evaluate]'`."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
from example_bundles import write_pitch_bundle
from example_datasets import write_melodies, write_table

import fusili_training.evaluation
from fusili_mir.model.bundle import load_bundle
from fusili_mir.model.encoder import Encoder
from fusili_training.evaluation.evaluating import TaskOptions, evaluate_bundle

TRAINING_ONLY = (
    "torch",
    "torchvision",
    "open_clip",
    "laion_clap",
    "onnx",
    "onnxscript",
    "safetensors",
    "joblib",
    "webdataset",
    "tensorboard",
    "tqdm",
    "skia",
)

REFUSE = """
import importlib, sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {packages!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Refuse())
{code}
"""


def run_without(packages: tuple[str, ...], code: str) -> subprocess.CompletedProcess[str]:
    script = REFUSE.format(packages=packages, code=code)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)


def evaluate_without(packages: tuple[str, ...], *arguments: object) -> subprocess.CompletedProcess[str]:
    called = ["evaluate", *map(str, arguments)]
    return run_without(packages, f"from fusili_mir.cli.main import main; main({called!r})")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("without")
    write_melodies(folder)
    page = next((folder / "msmd" / "Tune").glob("scores/*/img/01.png"))
    audio = next((folder / "msmd" / "Tune").glob("performances/*/*.wav"))
    write_table(folder / "listed.csv", ["image_filename", "audio_filename"], [[page, audio]] * 2)
    return folder


def test_every_module_of_evaluation_imports_without_the_packages_of_training() -> None:
    package = fusili_training.evaluation
    names = [module.name for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    assert len(names) > 25
    done = run_without(TRAINING_ONLY, f"for name in {names!r}: importlib.import_module(name)")
    assert done.returncode == 0, done.stderr


def test_a_rendered_corpus_is_evaluated_without_torch(rendered: Path, tmp_path: Path) -> None:
    bundle = write_pitch_bundle(tmp_path / "bundle")
    tasks = ["--task", "local", "--task", "retrieval"]
    done = evaluate_without(
        TRAINING_ONLY, bundle.folder, rendered, "--split", "train", "--format", "json", *tasks
    )
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert report["n_pairs"] > 2
    assert {each["task"] for each in report["measurements"]} == {"local", "retrieval"}


@pytest.mark.parametrize(
    ("data", "tasks"),
    [
        ("shards", {"local", "retrieval", "point", "onsets"}),
        ("msmd", {"local", "retrieval", "point", "onsets"}),
        ("listed.csv", {"retrieval"}),
        ("scored/scores.csv", {"onsets"}),
    ],
)
def test_each_kind_of_data_gives_the_figures_that_it_gives_with_torch(
    folder: Path, data: str, tasks: set[str]
) -> None:
    plots = folder / "plots" / data
    done = evaluate_without(
        TRAINING_ONLY, folder / "bundle", folder / data, "--format", "json", "--plots", plots
    )
    assert (done.returncode, done.stderr) == (0, "")
    measured = json.loads(done.stdout)["measurements"]
    assert {each["task"] for each in measured} == tasks
    assert list(plots.glob("*.png"))
    encoder = Encoder(load_bundle(folder / "bundle"))
    expected = evaluate_bundle(encoder, folder / data, TaskOptions()).report.measurements
    assert [each["found"]["value"] for each in measured] == pytest.approx(
        [each.found.value for each in expected], rel=1e-4
    )


@pytest.mark.parametrize("ranking", ["sinkhorn", "reranked"])
def test_ranking_by_sinkhorn_asks_for_torch_before_anything_else(tmp_path: Path, ranking: str) -> None:
    nowhere = tmp_path / "nowhere"  # neither the bundle nor the data have been looked at yet
    done = evaluate_without(TRAINING_ONLY, nowhere, nowhere, "--ranking", ranking)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "fusili-mir: the rankings sinkhorn and reranked need torch; install it with `pip install "
        "'fusili-mir[train]'`, or rank by pooled or summed cosines"
    ]


def test_a_ranking_that_no_task_uses_asks_for_nothing(folder: Path) -> None:
    arguments = ["--task", "local", "--ranking", "sinkhorn"]
    assert evaluate_without(TRAINING_ONLY, folder / "bundle", folder / "shards", *arguments).returncode == 0


def test_a_missing_package_is_named_with_the_extra_to_install(folder: Path) -> None:
    done = evaluate_without(("fsspec",), folder / "bundle", folder / "shards")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "fusili-mir: evaluating needs the package fsspec; install it with `pip install 'fusili-mir[evaluate]'`"
    ]


def test_matplotlib_is_needed_for_plots_alone(folder: Path, tmp_path: Path) -> None:
    arguments = [folder / "bundle", folder / "shards", "--task", "local"]
    assert evaluate_without(("matplotlib",), *arguments).returncode == 0
    done = evaluate_without(("matplotlib",), *arguments, "--plots", tmp_path / "plots")
    assert (done.returncode, done.stdout) == (1, "")
    assert "plots need matplotlib; install it with `pip install 'fusili-mir[evaluate]'`" in done.stderr
