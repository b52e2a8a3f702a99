import csv
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from example_melodies import TINY_MODEL, Melody, MelodySource, batch_of, random_melodies

from fusili_mir.errors import InputError
from fusili_training.data.batch import Batch
from fusili_training.loop.checkpoint import Progress, load_checkpoint, load_trained_model
from fusili_training.loop.distributed import ProcessRanks
from fusili_training.loop.interruption import TrainingInterruptedError
from fusili_training.loop.recipe import Recipe
from fusili_training.loop.recipe_files import recipe_from_dict
from fusili_training.loop.trainer import Trainer
from fusili_training.loop.validation import Validation

CPU = ProcessRanks(0, 1, torch.device("cpu"))
N_MELODIES, BATCH_SIZE = 12, 4  # 3 batches per epoch


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def recipe(**changes: dict[str, Any]) -> Recipe:
    table: dict[str, Any] = {
        "name": "melodies",
        "model": {
            "backbone": "small",
            "backbone_options": TINY_MODEL,
            "initial_scale": 10.0,
            "max_scale": 30.0,
        },
        "data": {"batch_size": BATCH_SIZE},
        "optimiser": {"head_rate": 3e-3, "encoder_rate": 3e-3, "warmup_steps": 4, "max_gradient_norm": 1.0},
        "training": {"epochs": 4, "checkpoint_every_steps": 5, "patience": 0},
    }
    for section, values in changes.items():
        table[section] = table.get(section, {}) | values
    return recipe_from_dict(table, "test")


@dataclass(frozen=True)
class SignallingSource(MelodySource):
    """Melodies, and a signal to this process before the third batch of the third epoch: after 8 steps."""

    number: signal.Signals = signal.SIGINT

    def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
        for index, batch in enumerate(super().epoch(number, skip), start=skip):
            if (number, index) == (2, 2):
                os.kill(os.getpid(), self.number)
            yield batch


def build(folder: Path, how: Recipe, resume: bool = False, source: MelodySource | None = None) -> Trainer:
    melodies = random_melodies(N_MELODIES)
    batches = source or MelodySource(melodies, BATCH_SIZE)
    trainer = Trainer(how, folder, batches, MelodySource(melodies, BATCH_SIZE), CPU, resume)
    # Noise on the images makes every step depend on the state of the random numbers.
    trainer.objective.model.image.register_forward_pre_hook(
        lambda tower, inputs: (inputs[0] - 0.1 * torch.rand_like(inputs[0]),) if tower.training else inputs
    )
    return trainer


def figures(folder: Path) -> list[str]:
    return [(folder / name).read_text() for name in ("steps.csv", "validations.csv")]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    assert build(folder, recipe()).run().step == 12
    torch.set_num_threads(threads)
    return folder


def test_a_small_model_learns_64_pairs_by_heart(tmp_path: Path) -> None:
    melodies = random_melodies(64)
    how = recipe(
        data={"batch_size": 32},
        optimiser={"warmup_steps": 10, "schedule": "cosine"},
        training={"epochs": 50, "checkpoint_every_steps": 0},
    )
    Trainer(how, tmp_path, MelodySource(melodies, 32), None, CPU).run()
    model, _ = load_trained_model(tmp_path / "last.pt")
    batch = batch_of(melodies)
    with torch.no_grad():
        images, recordings = model.encode_images(batch.images), model.encode_recordings(batch.waveforms)
    similarity = images.pooled @ recordings.pooled.T
    assert similarity.argmax(dim=1).tolist() == list(range(64))  # image to audio
    assert similarity.argmax(dim=0).tolist() == list(range(64))  # audio to image


def test_a_step_leaves_out_frames_in_which_others_are_heard(tmp_path: Path) -> None:
    trainer = build(tmp_path, recipe(loss={"alpha": 1.0}))
    batch = next(trainer.batches.epoch(0))
    length_sec = batch.waveforms.shape[1] / trainer.objective.model.audio.geometry.sample_rate_hz
    own = replace(batch, own_sec=((0.0, 0.5 * length_sec),) * len(batch.keys))
    before = {name: value.clone() for name, value in trainer.objective.state_dict().items()}
    losses = []
    for each in (batch, own, batch):
        trainer.objective.load_state_dict(before)
        torch.manual_seed(0)
        losses.append(trainer.step(each)["local_loss"])
    assert losses[0] == losses[2] != losses[1]


def test_a_run_writes_one_row_a_step_and_one_a_validation(undisturbed: Path) -> None:
    with (undisturbed / "steps.csv").open(newline="") as file:
        steps = list(csv.DictReader(file))
    assert [int(row["step"]) for row in steps] == list(range(1, 13))
    assert [int(row["epoch"]) for row in steps] == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    assert float(steps[0]["loss"]) == pytest.approx(
        0.5 * float(steps[0]["local_loss"]) + 0.5 * float(steps[0]["global_loss"])
    )
    assert steps[0]["notes_loss"] == ""
    assert float(steps[0]["heads_rate"]) == pytest.approx(3e-3 / 4)
    with (undisturbed / "validations.csv").open(newline="") as file:
        assert [int(row["step"]) for row in csv.DictReader(file)] == [3, 6, 9, 12]


def test_the_last_checkpoint_holds_recipe_progress_and_state(undisturbed: Path) -> None:
    last = load_checkpoint(undisturbed / "last.pt")
    assert last.recipe == recipe()
    assert (last.progress.step, last.progress.epoch, last.progress.n_batches) == (12, 4, 0)
    assert last.optimiser is not None
    assert len(last.random_states) == 1


def test_a_killed_run_goes_on_to_the_same_figures(undisturbed: Path, tmp_path: Path) -> None:
    killed = subprocess.run(
        [sys.executable, __file__, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=120,
    )
    assert killed.returncode == -signal.SIGKILL
    assert figures(tmp_path) != figures(undisturbed)
    assert load_checkpoint(tmp_path / "last.pt").progress.step == 6  # the end of the second epoch
    build(tmp_path, recipe(), resume=True).run()
    assert figures(tmp_path) == figures(undisturbed)


def test_ctrl_c_saves_a_checkpoint_and_says_how_to_go_on(undisturbed: Path, tmp_path: Path) -> None:
    source = SignallingSource(random_melodies(N_MELODIES), BATCH_SIZE)
    with pytest.raises(TrainingInterruptedError, match=r"stopped after step 9 of 12.*with resume=True"):
        build(tmp_path, recipe(), source=source).run()
    assert load_checkpoint(tmp_path / "last.pt").progress.step == 9
    build(tmp_path, recipe(), resume=True).run()
    assert figures(tmp_path) == figures(undisturbed)


def test_a_stopped_run_goes_on_with_what_it_remembered(tmp_path: Path) -> None:
    how = recipe(loss={"memory": 6})
    build(tmp_path / "whole", how).run()
    source = SignallingSource(random_melodies(N_MELODIES), BATCH_SIZE)
    with pytest.raises(TrainingInterruptedError, match=r"stopped after step 9 of 12"):
        build(tmp_path / "stopped", how, source=source).run()
    build(tmp_path / "stopped", how, resume=True).run()
    assert figures(tmp_path / "stopped") == figures(tmp_path / "whole")


def test_a_killed_run_goes_on_with_its_averaged_weights(tmp_path: Path) -> None:
    averaging = recipe(optimiser={"average_decay": 0.8})
    build(tmp_path / "whole", averaging).run()
    stopped = tmp_path / "stopped"
    with pytest.raises(TrainingInterruptedError):
        build(stopped, averaging, source=SignallingSource(random_melodies(N_MELODIES), BATCH_SIZE)).run()
    build(stopped, averaging, resume=True).run()
    assert figures(stopped) == figures(tmp_path / "whole")


def test_the_best_checkpoint_has_the_averaged_weights_and_training_goes_on_with_its_own(
    undisturbed: Path, tmp_path: Path
) -> None:
    build(tmp_path, recipe(optimiser={"average_decay": 0.8}, training={"epochs": 1})).run()  # one validation
    best, last = load_checkpoint(tmp_path / "best.pt"), load_checkpoint(tmp_path / "last.pt")
    assert best.progress.step == last.progress.step == 3
    assert last.average is not None
    torch.testing.assert_close(best.model, last.average, rtol=0, atol=0)
    assert not torch.equal(best.model["logit_scale_local"], last.model["logit_scale_local"])
    steps, first_steps = figures(tmp_path)[0], figures(undisturbed)[0].splitlines()[:4]
    assert [row.rsplit(",", 2)[0] for row in steps.splitlines()] == [
        row.rsplit(",", 2)[0] for row in first_steps
    ]


def test_a_checkpoint_from_before_there_were_memories_goes_on_with_an_empty_one(
    undisturbed: Path, tmp_path: Path
) -> None:
    content = torch.load(undisturbed / "last.pt", weights_only=True)
    del content["memory"], content["recipe"]["loss"]["memory"]
    torch.save(content, tmp_path / "last.pt")
    trainer = build(tmp_path, recipe(loss={"memory": 100}, training={"epochs": 5}), resume=True)
    assert trainer.objective.memory is not None
    assert trainer.objective.memory.n_filled == 0
    assert trainer.run().step == 15
    assert trainer.objective.memory.n_filled == 3 * BATCH_SIZE  # not the validation pairs


def test_only_the_global_heads_of_a_trained_model_may_learn(undisturbed: Path, tmp_path: Path) -> None:
    start = load_checkpoint(undisturbed / "last.pt").model
    weights = {"checkpoint": str(undisturbed / "last.pt"), "trained": "global heads"}
    trainer = build(tmp_path, recipe(weights=weights, loss={"memory": 8}))
    assert trainer.run().step == 12
    changed = {
        name for name, value in trainer.objective.model.state_dict().items() if not value.equal(start[name])
    }
    heads = {
        f"{side}.global_head.{layer}"
        for side in ("image", "audio")
        for layer in ("0.weight", "0.bias", "2.weight")
    }
    assert heads | {"logit_scale_global"} <= changed  # and no running mean of a batch normalisation
    assert all("global" in name for name in changed)
    with (tmp_path / "steps.csv").open(newline="") as file:
        steps = list(csv.DictReader(file))
    assert {row["local_loss"] for row in steps} == {""}
    assert [row["loss"] for row in steps] == [row["global_loss"] for row in steps]


def test_global_heads_alone_need_a_model_to_begin_with(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"weights.checkpoint is empty; expected a trained model"):
        build(tmp_path, recipe(weights={"trained": "global heads"}))


def test_resuming_without_a_checkpoint_starts_anew(tmp_path: Path) -> None:
    assert build(tmp_path, recipe(training={"max_steps": 1}), resume=True).run().step == 1


def test_a_folder_with_a_run_is_not_overwritten(undisturbed: Path) -> None:
    with pytest.raises(InputError, match="already holds a run; add resume=True"):
        build(undisturbed, recipe())


def test_a_run_does_not_go_on_with_another_loss(undisturbed: Path) -> None:
    with pytest.raises(InputError, match=r"was trained with loss.alpha = 0.5, but the recipe now says 0.25"):
        build(undisturbed, recipe(loss={"alpha": 0.25}), resume=True)


def test_a_run_may_go_on_for_longer(undisturbed: Path) -> None:
    trainer = build(undisturbed, recipe(training={"epochs": 9}), resume=True)
    assert (trainer.progress.step, trainer.total_steps) == (12, 27)


def poison(melody: Melody) -> Melody:
    waveform = melody.waveform.copy()
    waveform[100] = float("nan")
    return replace(melody, waveform=waveform)


def test_a_loss_that_is_not_finite_stops_the_run_and_names_the_batch(tmp_path: Path) -> None:
    # The bad recording is in batch 1 of epoch 0, so step 2 fails, after the checkpoint of step 1.
    melodies = random_melodies(N_MELODIES)
    good = list(MelodySource(melodies, BATCH_SIZE).epoch(0))
    bad = int(good[1].keys[2].split("-")[1])
    melodies[bad] = poison(melodies[bad])
    how = recipe(training={"checkpoint_every_steps": 1})
    with pytest.raises(InputError, match="the loss of step 2 is nan") as caught:
        build(tmp_path, how, source=MelodySource(melodies, BATCH_SIZE)).run()
    assert good[1].keys[0] in str(caught.value)
    assert (tmp_path / "not-finite.txt").read_text().split() == list(good[1].keys)
    last = load_checkpoint(tmp_path / "last.pt")
    assert last.progress.step == 1
    assert all(value.isfinite().all() for value in last.model.values())


def test_data_that_ends_early_is_noticed(tmp_path: Path) -> None:
    class ShortSource(MelodySource):
        def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
            yield from list(super().epoch(number, skip))[:2]

    with pytest.raises(InputError, match=r"epoch 0 ended after 2 batches; expected 3"):
        build(tmp_path, recipe(), source=ShortSource(random_melodies(N_MELODIES), BATCH_SIZE)).run()


def run_with(validations: list[Validation], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Progress:
    """Train with one step per validation, whose results are given, until two in a row are no improvement."""
    given = iter(validations)
    monkeypatch.setattr("fusili_training.loop.trainer.validate", lambda *_: next(given))
    return build(folder, recipe(training={"patience": 2, "validate_every_steps": 1})).run()


def test_a_run_ends_when_loss_and_top1_together_improve_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Step 3 has the best loss and step 4 the best top-1, but step 2 has the best combination.
    pairs = [(2.0, 0.1), (1.0, 0.3), (0.9, 0.1), (2.5, 0.35)]
    progress = run_with([Validation(*pair) for pair in pairs], tmp_path, monkeypatch)
    assert (progress.step, progress.n_worse) == (4, 2)
    assert load_checkpoint(tmp_path / "best.pt").progress.step == 2
    assert load_checkpoint(tmp_path / "last.pt").progress.step == 4


if __name__ == "__main__":  # a run that is killed in between
    torch.set_num_threads(1)
    killer = SignallingSource(random_melodies(N_MELODIES), BATCH_SIZE, number=signal.SIGKILL)
    build(Path(sys.argv[1]), recipe(), source=killer).run()
