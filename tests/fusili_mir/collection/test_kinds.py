from __future__ import annotations

from pathlib import Path

import pytest

from fusili_mir import InputError
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
