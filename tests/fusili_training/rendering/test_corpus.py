from __future__ import annotations

from pathlib import Path

import pytest

from fusili_mir.errors import InputError
from fusili_training.rendering.corpus import list_corpus, select_pieces
from fusili_training.splits import split_of


def _table(folder: Path, *rows: str) -> Path:
    table = folder / "manifest.csv"
    table.write_text("\n".join(rows) + "\n")
    return table


def test_a_folder_lists_its_scores_with_ids_from_their_paths(tmp_path: Path) -> None:
    (tmp_path / "opus 1").mkdir()
    (tmp_path / "a.mxl").touch()
    (tmp_path / "opus 1" / "no.1.musicxml").touch()
    (tmp_path / "notes.txt").touch()
    pieces = list_corpus(tmp_path)
    assert [piece.file.name for piece in pieces] == ["a.mxl", "no.1.musicxml"]
    assert pieces[0].id == "a"
    assert pieces[1].id.startswith("opus-1-no-1-")
    assert pieces[1].split == split_of(pieces[1].id)


def test_a_table_says_licence_split_and_performance(tmp_path: Path) -> None:
    table = _table(
        tmp_path,
        "id,file,licence,split,performance",
        "b,b.mxl,CC0-1.0,test,b.match",
        "a,a.mxl,,,",
        "c,c.mxl,CC0-1.0,exclude,",
    )
    first, second = list_corpus(table)
    assert (first.id, first.licence, first.split, first.performance) == ("a", "unknown", split_of("a"), None)
    assert (second.split, second.performance) == ("test", tmp_path / "b.match")
    assert list_corpus(tmp_path) == [first, second]  # a folder with a table


def test_pieces_are_chosen_by_licence_split_and_name(tmp_path: Path) -> None:
    _table(
        tmp_path,
        "id,file,licence,part",
        "a,x/a.mxl,CC0-1.0,train",
        "b,y/b.mxl,CC0-1.0,test",
        "c,x/c.mxl,CC-BY-4.0,train",
    )
    pieces = list_corpus(tmp_path, split_column="part")
    assert [p.id for p in select_pieces(pieces, licences=["CC0-1.0"])] == ["a", "b"]
    assert [p.id for p in select_pieces(pieces, splits=["train"], pattern="*/x/*")] == ["a", "c"]
    with pytest.raises(InputError, match=r"CC-BY-4\.0, CC0-1\.0"):
        select_pieces(pieces, licences=["MIT"])


def test_a_limit_chooses_the_same_pieces_when_others_are_added(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"p{number}.mxl").touch()
    before = {piece.id for piece in select_pieces(list_corpus(tmp_path), limit=5)}
    (tmp_path / "p99.mxl").touch()
    after = {piece.id for piece in select_pieces(list_corpus(tmp_path), limit=5)}
    assert len(before) == 5
    assert len(before & after) >= 4


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["name,file", "a,b"], "expected also id"),
        (["id,file", "a,b.mxl", "a,c.mxl"], "several pieces"),
        (["id,file"], "no pieces"),
    ],
)
def test_bad_tables_are_refused_in_one_line(tmp_path: Path, rows: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        list_corpus(_table(tmp_path, *rows))


def test_a_corpus_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        list_corpus(tmp_path / "none")
