from __future__ import annotations

from pathlib import Path

import pytest

from fusili_mir.errors import InputError
from fusili_training.data.shard_folder import ShardFolder
from fusili_training.rendering.segment_pair import Sample
from fusili_training.rendering.shards import shard_name, sidecar_of, write_json, write_shard
from join_pairs import join_pairs


def folder_of(folder: Path, pieces: list[str], rate_hz: int = 16_000, codec: str = "flac") -> Path:
    """Write one shard for each piece, with one pair in it."""
    folder.mkdir()
    recipe = {"segment": {"shape": "staff_strips"}, "audio": {"sample_rate_hz": rate_hz, "codec": codec}}
    write_json(
        folder / "render.json", {"format": 1, "recipe": recipe, "corpus_sha256": folder.name, "n_pieces": 9}
    )
    for number, piece in enumerate(pieces):
        shard = folder / shard_name("train", number)
        written = write_shard(shard, [Sample(f"{piece}.piano.0", None, {"json": b"{}"}, 9, 1.0)])
        report = {
            "id": piece,
            "licence": "CC0-1.0",
            "segments": 1,
            "mutants": 0,
            "dropped": {},
            "error": None,
        }
        write_json(sidecar_of(shard), {"shard": shard.name, "split": "train", "pieces": [report], **written})
    return folder


def test_all_pairs_of_the_folders_are_in_the_new_one_in_order(tmp_path: Path) -> None:
    folders = [folder_of(tmp_path / "a", ["one", "two"]), folder_of(tmp_path / "b", ["three"])]
    manifest = join_pairs(folders, tmp_path / "all")
    assert [entry.piece for entry in ShardFolder(tmp_path / "all").entries] == ["one", "two", "three"]
    assert manifest["pieces"] == manifest["segments"] == 3
    assert manifest["licences"] == {"CC0-1.0": 3}
    assert [joined["corpus_sha256"] for joined in manifest["joined"]] == ["a", "b"]


def test_an_unfinished_shard_is_left_out(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "a", ["one"])
    (folder / shard_name("train", 7)).write_bytes(b"half a shard, without its JSON file")
    join_pairs([folder], tmp_path / "all")
    assert len(ShardFolder(tmp_path / "all").entries) == 1


def test_clips_at_another_rate_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    folders = [folder_of(tmp_path / "a", ["one"]), folder_of(tmp_path / "b", ["two"], rate_hz=48_000)]
    with pytest.raises(InputError, match=r"b: pairs of .*48000.*; expected .*16000.*, as in .*a"):
        join_pairs(folders, tmp_path / "all")
    assert not (tmp_path / "all").exists()


def test_a_piece_that_is_in_two_folders_is_refused(tmp_path: Path) -> None:
    folders = [folder_of(tmp_path / "a", ["one", "two"]), folder_of(tmp_path / "b", ["two"])]
    with pytest.raises(InputError, match=r"b: has the piece two, as .*a does; expected other pieces"):
        join_pairs(folders, tmp_path / "all")
    assert not (tmp_path / "all").exists()


def test_clips_that_are_stored_as_notes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a: clips are stored as notes; expected flac or opus"):
        join_pairs([folder_of(tmp_path / "a", ["one"], codec="notes")], tmp_path / "all")


def test_what_is_no_folder_of_pairs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"render.json: cannot be read .*; expected a folder of rendered pairs"
    ):
        join_pairs([tmp_path], tmp_path / "all")
