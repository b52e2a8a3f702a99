from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from fusili_mir import InputError
from fusili_mir.collection.file_states import file_state
from fusili_mir.collection.index_files import IndexedPiece, read_pieces, write_json
from fusili_mir.collection.kinds import kind_of, list_files


def test_content_decides_where_the_name_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"%PDF-1.7")
    (tmp_path / "b").write_text("**kern\n4c\n*-\n")
    (tmp_path / "c").write_bytes(b"RIFF....WAVE")
    assert [kind_of(tmp_path / name) for name in "abc"] == ["score", "score", "recording"]


def test_folders_give_what_looks_like_music_and_files_are_taken_as_they_are(tmp_path: Path) -> None:
    for name in ("b/2.FLAC", "a/1.mxl", "a/.hidden.mxl", "a/notes.txt", ".git/3.wav", "odd.name"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = list_files([tmp_path, tmp_path / "odd.name", tmp_path / "a" / "1.mxl"])
    assert [str(file.relative_to(tmp_path)) for file in found] == ["a/1.mxl", "b/2.FLAC", "odd.name"]
    with pytest.raises(InputError, match="not found"):
        list_files([tmp_path / "nothing"])


def test_a_file_with_several_names_is_listed_once_by_the_one_that_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    song = tmp_path / "a" / "b" / "song.mxl"
    song.touch()
    (tmp_path / "link").symlink_to(tmp_path / "a" / "b")
    (tmp_path / "other.mxl").symlink_to(song)
    names = (tmp_path / "other.mxl", tmp_path / "a" / ".." / "a" / "b", tmp_path / "link" / ".." / "b", song)
    assert list_files(names) == [song]
    assert list_files([tmp_path / "link" / ".." / "b" / "song.mxl"]) == [song]
    assert list_files([tmp_path / "link"]) == [tmp_path / "link" / "song.mxl"]


def test_links_to_folders_are_followed_and_loops_end(tmp_path: Path) -> None:
    archive, elsewhere = tmp_path / "archive.mxl", tmp_path / "elsewhere"  # a folder may be called anything
    archive.mkdir()
    elsewhere.mkdir()
    (archive / "loop").symlink_to(archive)
    (archive / "more").symlink_to(elsewhere)
    (elsewhere / "back").symlink_to(archive)
    (elsewhere / "song.mxl").touch()
    assert list_files([archive]) == [archive / "more" / "song.mxl"]


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 0)() == 0, reason="nothing is locked to root")
def test_a_locked_folder_is_listed_itself(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o000)
    assert list_files([tmp_path, locked / "song.mxl"]) == [locked, locked / "song.mxl"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert kind_of(tmp_path / "pipe") == "recording"
    with pytest.raises(InputError, match="pipe: not a regular file; expected a score or a recording"):
        file_state(tmp_path / "pipe")


@pytest.mark.skipif(sys.platform != "linux", reason="names are valid Unicode there")
def test_a_name_that_an_index_cannot_hold_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "pr\udce9lude.mxl").write_bytes(b"x")
    with pytest.raises(InputError, match="its name is not valid Unicode, which an index needs; rename it"):
        file_state(tmp_path / "pr\udce9lude.mxl")


def test_an_index_of_a_stranger_names_no_files_outside(tmp_path: Path) -> None:
    piece = IndexedPiece("../../../etc/passwd", "a.mxl", "score", 1, 1, "0", 1)
    write_json(tmp_path / "pieces-1.json", [asdict(piece)])
    with pytest.raises(InputError, match="a piece whose id is no checksum"):
        read_pieces(tmp_path, 1)
