from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fusili_mir.errors import InputError, OutputError
from fusili_mir.staging import check_output_folder, interrupts_held, staged_folder


@pytest.fixture(autouse=True)
def ctrl_c_is_heard() -> Iterator[None]:
    """Enable Ctrl-C: a shell that runs the tests in the background disables it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_files_appear_together_when_all_are_written(tmp_path: Path) -> None:
    with staged_folder(tmp_path / "deep" / "out") as folder:
        (folder / "a.txt").write_text("a")
        assert not (tmp_path / "deep" / "out").exists()
    assert names(tmp_path / "deep" / "out") == ["a.txt"]
    assert names(tmp_path / "deep") == ["out"]


@pytest.mark.parametrize(
    "error", [InputError("bad page"), KeyboardInterrupt(), OSError(28, "No space left on device")]
)
def test_after_an_error_nothing_is_left_and_nothing_is_lost(tmp_path: Path, error: BaseException) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.txt").write_text("old")

    def write() -> None:
        with staged_folder(out, force=True) as folder:
            (folder / "a.txt").write_text("half")
            raise error

    with pytest.raises((InputError, KeyboardInterrupt, OutputError)):
        write()
    assert (out / "a.txt").read_text() == "old"
    assert names(tmp_path) == ["out"]


def test_a_folder_that_is_not_empty_needs_force(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with (
        pytest.raises(OutputError, match="the folder is not empty; choose another one, or add force=True"),
        staged_folder(tmp_path),
    ):
        pass
    with staged_folder(tmp_path, force=True) as folder:
        (folder / "new.txt").write_text("new")
    assert names(tmp_path) == ["mine.txt", "new.txt"]


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with (
        pytest.raises(OutputError, match="out: is a file"),
        staged_folder(tmp_path / "out", force=True),
    ):
        pass


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"), staged_folder(tmp_path / "file" / "out"):
        pass


def test_files_are_staged_on_the_disk_they_will_stand_on(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with staged_folder(out) as folder:
        assert folder.parent == tmp_path
    out.mkdir(exist_ok=True)  # as a mount point would be
    with staged_folder(out) as folder:
        assert folder.parent == out
        (folder / "a.txt").write_text("a")
    assert names(out) == ["a.txt"]
    assert names(tmp_path) == ["out"]


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    out.mkdir()

    def refuse(prefix: str, dir: Path) -> str:  # noqa: A002  # as tempfile calls it
        raise PermissionError(13, "Permission denied") if dir == out else AssertionError(dir)

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    worked = False
    with (
        pytest.raises(OutputError, match=r"out: cannot be written \(Permission denied\)"),
        staged_folder(out),
    ):
        worked = True
    assert not worked


def test_an_input_that_the_system_refuses_is_not_blamed_on_the_output(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match=r"x{150}\.\.\.x{146}\.mxl: cannot be read \(File name too long\)"),
        staged_folder(tmp_path / "out"),
    ):
        Path("x" * 5000 + ".mxl").stat()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["out", "out/new", "out/new/deeper"])
def test_a_place_without_permission_is_seen_by_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    check_output_folder(tmp_path / name)
    monkeypatch.setattr("os.access", lambda folder, mode: folder != out)  # root may write anywhere
    with pytest.raises(OutputError, match="cannot be written"):
        check_output_folder(tmp_path / name)


@pytest.mark.parametrize("exists", [True, False])
def test_ctrl_c_while_files_get_their_names_waits_until_all_have_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exists: bool
) -> None:
    out = tmp_path / "out"
    if exists:
        out.mkdir()
    name_change = "replace" if exists else "rename"
    change = getattr(Path, name_change)

    def change_slowly(self: Path, target: Path) -> Path:
        signal.raise_signal(signal.SIGINT)
        changed: Path = change(self, target)
        return changed

    def write() -> None:
        with staged_folder(out) as folder:
            for name in "abc":
                (folder / name).write_text(name)
            monkeypatch.setattr(Path, name_change, change_slowly)

    with pytest.raises(KeyboardInterrupt):
        write()
    assert names(out) == ["a", "b", "c"]
    assert names(tmp_path) == ["out"]


def test_interrupts_held_twice_are_let_go_by_the_outer_one() -> None:
    passed = []

    def hold() -> None:
        with interrupts_held():
            with interrupts_held():
                signal.raise_signal(signal.SIGINT)
            passed.append("inner")
        passed.append("outer")

    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        hold()
    assert passed == ["inner"]
    assert signal.getsignal(signal.SIGINT) is handler


def test_files_are_staged_in_any_thread(tmp_path: Path) -> None:
    def write() -> None:
        with staged_folder(tmp_path / "out") as folder:
            (folder / "a.txt").write_text("a")

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert names(tmp_path / "out") == ["a.txt"]


def test_a_folder_under_the_name_of_a_file_is_refused_before_any_file_is_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "b.txt").mkdir(parents=True)
    (out / "a.txt").write_text("old")

    def write() -> None:
        with staged_folder(out, force=True) as folder:
            for name in ("a.txt", "b.txt"):
                (folder / name).write_text("new")

    with pytest.raises(OutputError, match=r"b\.txt: is a folder, expected a file"):
        write()
    assert (out / "a.txt").read_text() == "old"
    assert names(out) == ["a.txt", "b.txt"]


KILLED = """
import os, signal, sys
from pathlib import Path
from fusili_mir import staging

def replace(self, target, real=Path.replace):
    if target.name == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(self, target)

Path.replace = replace
with staging.staged_folder(sys.argv[1], force=True) as folder:
    (folder / "deep").mkdir()
    for name in ("a", "b", "deep/c"):
        (folder / name).write_text("new " + name)
    if sys.argv[2] == "none":
        os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_while_writing(out: Path, at: str) -> None:
    """Let a process write three files, and kill it before the file `at` gets its name, or before any does."""
    killed = subprocess.run([sys.executable, "-c", KILLED, str(out), at], check=False)
    assert killed.returncode == -signal.SIGKILL


def write_anew(out: Path, force: bool) -> None:
    with staged_folder(out, force) as folder:
        (folder / "d").write_text("d")


def test_a_new_folder_of_a_killed_process_is_not_there_and_the_next_one_cleans_up(tmp_path: Path) -> None:
    kill_while_writing(tmp_path / "out", "none")
    assert len(names(tmp_path)) == 1
    write_anew(tmp_path / "out", force=False)
    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == ["d"]


@pytest.mark.parametrize("at", ["none", "a", "b", "c"])
def test_files_that_a_killed_process_began_to_add_go_again(tmp_path: Path, at: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    kill_while_writing(out, at)
    write_anew(out, force=False)
    assert names(out) == ["d"]


@pytest.mark.parametrize("at", ["a", "b", "c"])
def test_files_that_a_killed_process_began_to_replace_are_all_replaced(tmp_path: Path, at: str) -> None:
    (tmp_path / "b").write_text("old b")
    (tmp_path / "mine").write_text("mine")
    kill_while_writing(tmp_path, at)
    write_anew(tmp_path, force=True)
    assert names(tmp_path) == ["a", "b", "d", "deep", "mine"]
    assert (tmp_path / "b").read_text() == "new b"
    assert (tmp_path / "deep" / "c").read_text() == "new deep/c"


def test_files_that_nobody_began_to_replace_stay(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("old b")
    kill_while_writing(tmp_path, "none")
    write_anew(tmp_path, force=True)
    assert names(tmp_path) == ["b", "d"]
    assert (tmp_path / "b").read_text() == "old b"


def test_while_one_process_writes_a_second_is_told_and_leaves_it_alone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with staged_folder(out) as folder:
        (folder / "a").write_text("first")
        with pytest.raises(OutputError, match="out: another process is writing into it"):
            check_output_folder(out)
        with (
            pytest.raises(OutputError, match="out: another process is writing into it"),
            staged_folder(out, force=True),
        ):
            pass
    assert (out / "a").read_text() == "first"
    assert names(tmp_path) == ["out"]


def test_of_two_that_write_one_folder_for_whoever_comes_first_the_second_is_told(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def write() -> None:
        with staged_folder(out) as first, staged_folder(out, alone=False) as second:
            (first / "a").write_text("first")
            (second / "a").write_text("second")

    with pytest.raises(OutputError, match="the folder is not empty"):
        write()
    assert (out / "a").read_text() == "second"
    assert names(tmp_path) == ["out"]


def test_of_many_that_begin_at_the_same_moment_one_wins(tmp_path: Path) -> None:
    start, ended = threading.Barrier(8), threading.Event()
    won, told = [], []

    def write(number: int) -> None:
        start.wait()
        try:
            with staged_folder(tmp_path / "out", force=True) as folder:
                (folder / "a").write_text(str(number))
                won.append(number)
                ended.wait(10)
        except OutputError as error:
            told.append(str(error))
        if len(told) == 7:
            ended.set()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert all("another process is writing into it" in each for each in told)
    assert (tmp_path / "out" / "a").read_text() == str(won[0])
    assert names(tmp_path) == ["out"]


def test_a_file_that_cannot_be_written_is_named_by_its_final_place(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def write() -> None:
        with staged_folder(out) as folder:
            raise OutputError(f"{folder / 'a'}: cannot be written (No space left on device)")

    with pytest.raises(OutputError, match="out/a: cannot be written") as raised:
        write()
    assert "stage" not in str(raised.value)


def test_a_folder_inside_is_renewed_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    for name in ("a", "kept/a", "kept/outdated"):
        (tmp_path / name).write_text("old")
    with staged_folder(tmp_path, force=True, renewed=("kept",)) as folder:
        (folder / "kept").mkdir()
        (folder / "kept" / "a").write_text("new")
    assert names(tmp_path) == ["a", "kept"]
    assert names(tmp_path / "kept") == ["a"]
    assert (tmp_path / "kept" / "a").read_text() == "new"


def test_if_a_new_file_cannot_be_moved_nothing_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("old")
    move = Path.replace

    def full(self: Path, target: Path) -> Path:
        if Path(target) == tmp_path / "deep" / "c":
            raise OSError(28, "No space left on device")
        return move(self, target)

    def write() -> None:
        with staged_folder(tmp_path, force=True) as folder:
            (folder / "deep").mkdir()
            for name in ("a", "b", "deep/c"):
                (folder / name).write_text("new")
            monkeypatch.setattr(Path, "replace", full)

    with pytest.raises(OutputError, match="No space left on device"):
        write()
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_a_forged_record_moves_nothing_out_of_its_folder(tmp_path: Path) -> None:
    out, stage = tmp_path / "out", tmp_path / "out" / ".fusili-stage-forgery1"
    stage.mkdir(parents=True)
    (stage / ".moving.json").write_text('{"files": ["../mine"], "replaces": false}')
    (tmp_path / "mine").write_text("mine")
    check_output_folder(out)
    assert names(tmp_path) == ["mine", "out"]
    assert names(out) == []


@pytest.mark.parametrize("name", ["a" * 5000, "nul\0"])
def test_a_name_that_no_system_takes_is_one_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(OutputError, match="cannot be written"), staged_folder(tmp_path / name):
        pass


def test_a_new_folder_has_the_usual_permissions(tmp_path: Path) -> None:
    with staged_folder(tmp_path / "out"):
        pass
    (tmp_path / "usual").mkdir()
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_link_to_nothing_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to(tmp_path / "gone")
    with pytest.raises(OutputError, match="out: is a link to nothing"):
        check_output_folder(tmp_path / "out")
    assert (tmp_path / "out").is_symlink()
