from __future__ import annotations

import signal
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
        pytest.raises(OutputError, match="the folder is not empty; choose another one, or add --force"),
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
    replace = Path.replace

    def replace_slowly(self: Path, target: Path) -> Path:
        signal.raise_signal(signal.SIGINT)
        return replace(self, target)

    def write() -> None:
        with staged_folder(out) as folder:
            for name in "abc":
                (folder / name).write_text(name)
            monkeypatch.setattr(Path, "replace", replace_slowly)

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
