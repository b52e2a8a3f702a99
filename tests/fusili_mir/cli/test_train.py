import contextlib
import csv
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from example_melodies import random_melodies, save_melodies
from example_processes import FusiliCommand, still_there

from fusili_mir import progress
from fusili_mir.cli.main import main
from fusili_mir.folder_lock import locked_folder
from fusili_training.loop.checkpoint import load_checkpoint, load_trained_model

RECIPE = """
[model]
backbone = "small"
initial_scale = 10.0
max_scale = 30.0
[model.backbone_options]
width = 32
embedding_dim = 16
stem_channels = [4, 8, 8]
image_dilations = [1]
system_dilations = [1]
audio_dilations = [1, 2]
[data]
batch_size = 4
pieces = "same"
augment = true
workers = 0
[optimiser]
head_rate = 3e-3
encoder_rate = 3e-3
[training]
epochs = 2
"""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "pairs"
    melodies = random_melodies(18, n_notes=4)
    save_melodies(folder, {"train": melodies[:12], "valid": melodies[12:]})
    return folder


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recipes") / "melodies.toml"
    path.write_text(RECIPE, encoding="utf-8")
    return path


def call(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as left:
        main(["train", *map(str, arguments)])
    assert isinstance(left.value.code, int)
    return left.value.code


def steps(folder: Path) -> list[dict[str, str]]:
    with (folder / "steps.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def finished(data: Path, recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "finished"
    torch.set_num_threads(1)
    with contextlib.chdir(folder.parent):
        assert call(recipe, "--data", data, "--out", folder.name) == 0
    return folder


def test_a_run_leaves_checkpoints_logs_and_its_recipe(finished: Path) -> None:
    names = {file.name for file in finished.iterdir()}
    assert names == {"best.pt", "last.pt", "recipe.json", "steps.csv", "validations.csv", "tensorboard"}
    assert len(steps(finished)) == 6  # 12 pairs, 4 per batch, 2 epochs
    model, checkpoint = load_trained_model(finished / "best.pt")
    assert checkpoint.recipe.name == "melodies"
    assert model.image.geometry.height_px == 128


def test_a_run_on_shards_goes_on_in_the_middle_of_an_epoch(finished: Path, data: Path, recipe: Path) -> None:
    folder = finished.parent / "resumed"
    common = (recipe, "--data", data, "--out", folder, "--override", "data.workers=1")
    assert call(*common, "--override", "training.max_steps=4") == 0
    assert len(steps(folder)) == 4
    assert call(*common, "--resume") == 0
    assert steps(folder) == steps(finished)


@pytest.mark.parametrize("options", [(), ("--quiet",)])
def test_without_a_terminal_lines_say_how_far_a_run_is(
    data: Path,
    recipe: Path,
    tmp_path: Path,
    options: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(progress, "_LEAST_BETWEEN_SEC", 0.0)  # not after ten seconds
    assert call(recipe, "--data", data, "--out", tmp_path / "run", *options) == 0
    said = capsys.readouterr().err
    lines = re.findall(r"fusili-mir: training: (\d) of 6 \(\d+ %\), loss \d+\.\d{4}, \d+ s so far", said)
    assert lines == ([] if options else ["1", "2", "3", "4", "5", "6"])
    assert said.count("validation loss") == (0 if options else 2)
    assert not options or said == ""


def test_the_summary_says_where_the_best_model_is(
    finished: Path, data: Path, recipe: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(recipe, "--data", data, "--out", finished, "--resume") == 0  # nothing is left to do
    output = capsys.readouterr().out
    assert output.startswith("6 steps, loss ")
    assert output.strip().endswith(f"-> {finished / 'best.pt'}")


def test_a_dry_run_prints_what_a_run_would_take_and_writes_nothing(
    data: Path, recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(recipe, "--data", data, "--out", tmp_path / "run", "--dry-run") == 0
    output = capsys.readouterr().out
    assert "1 x 128 x 96 px" in output
    assert "6 (3 per epoch)" in output
    assert "GB in float32" in output
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["loss.alhpa=1"], "unknown key loss.alhpa; did you mean alpha?"),
        (["loss.alpha=1.5"], "loss.alpha is 1.5; expected a weight within [0, 1]"),
        (["weights.checkpoint=nowhere.pt"], "weights.checkpoint is nowhere.pt, but there is no such file"),
        (["data.folder="], "the recipe names no data; add --data FOLDER"),
        (["data.folder=nowhere"], "expected a folder written by fusili-mir render"),
        (["data.batch_size=64"], "12 pairs do not fill one batch of 64"),
        (["data.mutations=negative"], "the shards have no mutants"),
        (
            ["model.backbone_options.sample_rate_hz=32000"],
            "has audio at 16000 Hz; the backbone small takes 32000 Hz",
        ),
        (["model.backbone_options.margin_spaces=4"], "images of shape (4, 1, 128, 96)"),
        (["data.msmd=nowhere"], "data.msmd is for models that take squares"),
    ],
)
def test_what_cannot_be_trained_gives_one_line_and_exit_code_1(
    overrides: list[str],
    message: str,
    data: Path,
    recipe: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = [part for override in overrides for part in ("--override", override)]
    where: list[str | Path] = [] if any("folder" in override for override in overrides) else ["--data", data]
    assert call(recipe, *where, "--out", tmp_path / "run", *arguments) == 1
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("fusili-mir: ")
    assert message in lines[0]


def test_a_call_without_a_recipe_is_a_usage_error() -> None:
    assert call() == 2


def test_a_missing_package_is_named_with_the_extra_to_install() -> None:
    code = (
        "import sys; sys.modules['torch'] = None; from fusili_mir.cli.main import main; main(['train', 'x'])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert found.returncode == 1
    assert "training needs the package torch" in found.stderr
    assert "pip install 'fusili-mir[train]'" in found.stderr


def test_a_scheduler_that_stops_all_processes_leaves_a_checkpoint(
    data: Path, recipe: Path, tmp_path: Path
) -> None:
    command = [
        sys.executable,
        "-m",
        "fusili_training",
        str(recipe),
        "--data",
        str(data),
        "--out",
        str(tmp_path),
    ]
    for override in ("training.epochs=1000", "training.patience=0", "data.workers=1"):
        command += ["--override", override]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 120
    while not ((tmp_path / "steps.csv").exists() and steps(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(run.pid, signal.SIGTERM)
    _, errors = run.communicate(timeout=60)
    n_steps = len(steps(tmp_path))
    assert run.returncode == 130, errors
    assert f"stopped after step {n_steps} of 3000" in errors
    assert "Traceback" not in errors
    assert load_checkpoint(tmp_path / "last.pt").progress.step == n_steps


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc to find processes")
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_run_that_is_stopped_leaves_no_workers_and_goes_on_at_once(
    data: Path, recipe: Path, tmp_path: Path, is_killed: bool
) -> None:
    arguments: list[str | Path] = [recipe, "--data", data, "--out", tmp_path / "run"]
    arguments += ["--override", "data.workers=2"]
    endless = ["training.epochs=1000", "training.patience=0", "training.checkpoint_every_steps=1"]
    endless = [part for override in endless for part in ("--override", override)]
    command = FusiliCommand("train", *arguments, *endless, in_terminal=not is_killed)
    command.wait_until(lambda: (tmp_path / "run" / "last.pt").exists())
    family = command.wait_for_children(1)
    if is_killed:
        command.process.kill()
        command.process.wait()
        with locked_folder(tmp_path / "run"):
            pass
        command.end()
    else:
        command.press_ctrl_c()
        _, said = command.end()
        assert said.rstrip().endswith("last.pt is saved; to continue, repeat the command with --resume")
        assert "Traceback" not in said
    assert still_there(family) == []
    assert call(*arguments, "--resume", "--override", "training.epochs=1") == 0


def test_two_processes_train_together_under_torchrun(data: Path, recipe: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "fusili_training", str(recipe), "--data", str(data), "--out", str(tmp_path / "run")]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert len(steps(tmp_path / "run")) == 6
    assert done.stdout.count("6 steps") == 1  # only one rank prints
    assert len(load_checkpoint(tmp_path / "run" / "last.pt").random_states) == 2
