"""The logs of a run: CSV files, which a resumed run continues seamlessly, and TensorBoard events."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fusili_mir.errors import OutputError
from fusili_mir.whole_files import write_text

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

__all__ = ["CsvLog", "RunLogs", "save_text"]


def save_text(text: str, path: Path) -> None:
    """Write a small text file."""
    write_text(path, text + "\n")


class CsvLog:
    """A CSV file with one row per step, flushed after each row.

    Parameters
    ----------
    path : Path
        The file.
    columns : sequence of str
        Names of the columns; the first is ``step``.
    last_step : int
        Rows of later steps, left by an interrupted run, are removed.
    """

    def __init__(self, path: Path, columns: tuple[str, ...], last_step: int) -> None:
        self.path, self.columns = path, columns
        kept = _rows_until(path, last_step) if path.exists() else []
        lines = io.StringIO(newline="")
        writer = csv.writer(lines)
        writer.writerow(columns)
        writer.writerows(kept)
        write_text(path, lines.getvalue())  # a run that is killed here loses no row
        try:
            self._file = path.open("a", newline="", encoding="utf-8")
        except OSError as error:
            raise OutputError(f"{path}: cannot be written ({error.strerror})") from error

    def write(self, values: Mapping[str, float]) -> None:
        """Append a row; columns without a value stay empty."""
        try:
            csv.writer(self._file).writerow([values.get(column, "") for column in self.columns])
            self._file.flush()
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be written ({error.strerror})") from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _rows_until(path: Path, last_step: int) -> list[list[str]]:
    """Return the complete rows of steps up to `last_step`, without the header."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    rows = csv.reader(line for line in lines[1:] if line.endswith("\n"))
    return [row for row in rows if row and int(row[0]) <= last_step]


class RunLogs:
    """``steps.csv`` and ``validations.csv`` of a run, and the same figures for TensorBoard.

    Parameters
    ----------
    folder : Path
        Folder of the run.
    step_columns, validation_columns : tuple of str
        Names of the columns; the first of each is ``step``.
    last_step : int
        Step after which the run continues; 0 for a new run.
    """

    def __init__(
        self,
        folder: Path,
        step_columns: tuple[str, ...],
        validation_columns: tuple[str, ...],
        last_step: int,
    ) -> None:
        self._steps = CsvLog(folder / "steps.csv", step_columns, last_step)
        self._validations = CsvLog(folder / "validations.csv", validation_columns, last_step)
        self._events = _open_events(folder / "tensorboard", last_step)

    def write_step(self, values: Mapping[str, float]) -> None:
        """Log a training step."""
        self._steps.write(values)
        self._write_events("training", values)

    def write_validation(self, values: Mapping[str, float]) -> None:
        """Log a validation."""
        self._validations.write(values)
        self._write_events("validation", values)

    def _write_events(self, kind: str, values: Mapping[str, float]) -> None:
        try:
            for name, value in values.items():
                if name != "step":
                    self._events.add_scalar(f"{kind}/{name}", value, int(values["step"]))
        except OSError as error:
            raise OutputError(f"{self._events.log_dir}: cannot be written ({error.strerror})") from error

    def close(self) -> None:
        """Close all files."""
        self._steps.close()
        self._validations.close()
        self._events.close()


def _open_events(folder: Path, last_step: int) -> SummaryWriter:
    from torch.utils.tensorboard import SummaryWriter

    try:
        return SummaryWriter(str(folder), purge_step=last_step + 1)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror})") from error
