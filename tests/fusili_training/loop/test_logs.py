import os
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from fusili_mir.errors import OutputError
from fusili_training.loop.logs import CsvLog, RunLogs


def test_columns_without_a_value_stay_empty(tmp_path: Path) -> None:
    log = CsvLog(tmp_path / "steps.csv", ("step", "loss", "notes_loss"), last_step=0)
    log.write({"step": 1, "loss": 0.1})
    assert (tmp_path / "steps.csv").read_text() == "step,loss,notes_loss\n1,0.1,\n"
    log.close()


def test_a_resumed_run_drops_the_rows_that_it_will_write_again(tmp_path: Path) -> None:
    path = tmp_path / "steps.csv"
    path.write_bytes(b"step,loss\r\n1,0.5\r\n2,0.4\r\n3,0.3\r\n4,0.")  # killed while writing
    log = CsvLog(path, ("step", "loss"), last_step=2)
    log.write({"step": 3, "loss": 0.25})
    log.close()
    assert path.read_text().split() == ["step,loss", "1,0.5", "2,0.4", "3,0.25"]


def test_a_resumed_run_that_finds_the_disk_full_loses_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "steps.csv"
    path.write_text("step,loss\n1,0.5\n2,0.4\n")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match=r"steps\.csv: cannot be written \(No space left on device\)"):
        CsvLog(path, ("step", "loss"), last_step=1)
    assert path.read_text() == "step,loss\n1,0.5\n2,0.4\n"


def test_tensorboard_sees_the_same_figures(tmp_path: Path) -> None:
    logs = RunLogs(tmp_path, ("step", "loss"), ("step", "local_top1"), last_step=0)
    logs.write_step({"step": 1, "loss": 0.5})
    logs.write_step({"step": 2, "loss": 0.25})
    logs.write_validation({"step": 2, "local_top1": 0.75})
    logs.close()
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [(event.step, event.value) for event in events.Scalars("training/loss")] == [(1, 0.5), (2, 0.25)]
    assert [(event.step, event.value) for event in events.Scalars("validation/local_top1")] == [(2, 0.75)]
