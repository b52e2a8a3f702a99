from __future__ import annotations

import errno
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fusili_mir.errors import InputError, OutputError
from fusili_training.rendering.pair_segments import Sample
from fusili_training.rendering.shards import shard_name, sidecar_of, write_json, write_shard

SAMPLES = [
    Sample("a.whole.0", None, {"png": b"image", "flac": b"x" * 1000, "json": b"{}"}),
    Sample("a.whole.0.mutant", "a.whole.0", {"png": b"other", "flac": b"", "json": b"[]"}),
]


def test_names_of_shards_sort_in_order() -> None:
    assert shard_name("train", 123) == "shard-train-000123.tar"
    assert sidecar_of(Path("x/shard-train-000123.tar")) == Path("x/shard-train-000123.json")


def test_a_shard_is_plain_tar_with_fixed_owner_and_time(tmp_path: Path) -> None:
    shard = tmp_path / "s.tar"
    write_shard(shard, SAMPLES)
    with tarfile.open(shard) as archive:
        members = archive.getmembers()
        assert [m.name for m in members][:3] == ["a/whole/0.png", "a/whole/0.flac", "a/whole/0.json"]
        assert {(m.mtime, m.uid, m.gid, m.mode, m.uname) for m in members} == {(0, 0, 0, 0o644, "")}
        file = archive.extractfile("a/whole/0.png")
        assert file is not None
        assert file.read() == b"image"


def test_the_listing_says_where_each_pair_lies(tmp_path: Path) -> None:
    shard = tmp_path / "s.tar"
    listed = write_shard(shard, SAMPLES)
    assert listed["bytes"] == shard.stat().st_size
    for sample, row in zip(SAMPLES, listed["samples"], strict=True):
        assert (row["key"], row["mutant_of"]) == (sample.key, sample.mutant_of)
        part = shard.read_bytes()[row["offset"] : row["offset"] + row["size"]]
        with tarfile.open(fileobj=io.BytesIO(part)) as archive:
            assert [m.name for m in archive] == [
                f"{sample.key.replace('.', '/')}.{ending}" for ending in sample.members
            ]


def test_the_same_pairs_give_the_same_bytes(tmp_path: Path) -> None:
    first = write_shard(tmp_path / "a.tar", SAMPLES)
    second = write_shard(tmp_path / "b.tar", iter(SAMPLES))
    assert first == second
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()


def _full_disk() -> Iterator[Sample]:
    yield SAMPLES[0]
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_one_line_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"s\.tar: cannot be written \(No space left on device\)"):
        write_shard(tmp_path / "s.tar", _full_disk())
    assert list(tmp_path.iterdir()) == []


def test_an_error_half_way_leaves_an_older_file_as_it_was(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"a": 1})
    with pytest.raises(TypeError):
        write_json(tmp_path / "x.json", {"a": object()})
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": 1}
    assert len(list(tmp_path.iterdir())) == 1


def test_a_name_that_is_too_long_for_tar_is_refused(tmp_path: Path) -> None:
    with pytest.raises((ValueError, InputError)):
        write_shard(tmp_path / "s.tar", [Sample("x" * 200, None, {"png": b""})])
    assert list(tmp_path.iterdir()) == []
