from __future__ import annotations

from pathlib import Path

import pytest

from fusili_mir.errors import InputError, OutputError
from fusili_mir.staging import staged_folder


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
    with pytest.raises(OutputError, match="a file stands there"), staged_folder(tmp_path / "out", force=True):
        pass


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"), staged_folder(tmp_path / "file" / "out"):
        pass
