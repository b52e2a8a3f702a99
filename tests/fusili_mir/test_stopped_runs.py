"""Long commands that are interrupted or killed (Linux): what they say, and who goes on behind their back."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import soundfile
from example_bundles import NATURALS, melody_notes, sine_recording, write_pitch_bundle
from example_processes import FusiliCommand, descendants, messages, still_there
from example_scores import melody

from fusili_mir.folder_lock import locked_folder

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc to find processes")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle, scores that Verovio needs a while for, a recording, and a table of pairs."""
    folder = tmp_path_factory.mktemp("stopped")
    write_pitch_bundle(folder / "bundle")
    soundfile.write(folder / "take.wav", sine_recording(melody_notes(NATURALS, 0.2)), 16_000)
    (folder / "scores").mkdir()
    rows = ["score,recording"]
    for number in range(3):
        (folder / "scores" / f"{number}.musicxml").write_text(melody(2000))
        rows.append(f"scores/{number}.musicxml,take.wav")
    (folder / "pairs.csv").write_text("\n".join(rows) + "\n")
    return folder


def index(files: Path, out: Path) -> list[object]:
    return ["index", files / "scores", "-o", out, "--model", files / "bundle"]


def index_in_two(files: Path, out: Path) -> list[object]:
    return [*index(files, out), "--jobs", 2]


def align_many(files: Path, out: Path) -> list[object]:
    return ["align-many", files / "pairs.csv", "-o", out, "--model", files / "bundle", "--jobs", 2]


def start(arguments: list[object], in_terminal: bool = False) -> tuple[FusiliCommand, list[int]]:
    """Start a command; when Verovio is at work, return it with all its processes."""
    command = FusiliCommand(*arguments, in_terminal=in_terminal)
    names: dict[int, str] = {}

    def is_engraving() -> bool:
        for pid in descendants(command.process.pid):
            names[pid] = Path(f"/proc/{pid}/cmdline").read_text()
        return any("verovio_worker" in name for name in names.values())

    command.wait_until(is_engraving)
    return command, [*names]


@pytest.mark.parametrize(
    ("arguments", "who"), [(index, "parent"), (index_in_two, "terminal"), (align_many, "group")]
)
def test_ctrl_c_ends_in_a_line_that_says_how_to_go_on(
    files: Path, tmp_path: Path, arguments: Callable[[Path, Path], list[object]], who: str
) -> None:
    command, family = start(arguments(files, tmp_path / "out"), in_terminal=who == "terminal")
    if who == "parent":
        command.process.send_signal(signal.SIGINT)
    else:
        command.press_ctrl_c()
    _, said = command.end()
    *before, line = messages(said)
    assert line == "fusili-mir: interrupted; repeat the command to go on"
    assert not before or who == "terminal"  # which shows a bar and ^C as well
    assert "Traceback" not in said
    assert command.process.returncode == 130
    assert still_there(family) == []


@pytest.mark.parametrize("arguments", [index, index_in_two])
def test_after_a_kill_nobody_works_on_and_the_next_run_may_begin_at_once(
    files: Path, tmp_path: Path, arguments: Callable[[Path, Path], list[object]]
) -> None:
    command, family = start(arguments(files, tmp_path / "out"))
    command.process.kill()
    command.process.wait()
    with locked_folder(tmp_path / "out"):
        pass
    assert still_there(family) == []
    command.end()
