from __future__ import annotations

import gc
import io
import json
from pathlib import Path

import fsspec
import numpy as np
import pytest
import soundfile
import webdataset

from fusili_mir.errors import InputError
from fusili_training.data.shard_folder import ShardFolder


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_webdataset_reads_the_same_pairs(rendered: Path) -> None:
    folder = ShardFolder(rendered)
    shards = sorted(str(path) for path in rendered.glob("*.tar"))
    samples = list(webdataset.WebDataset(shards, shardshuffle=False).decode("l8"))
    gc.collect()  # webdataset leaves closing its files to the garbage collector
    assert [sample["__key__"].replace("/", ".") for sample in samples] == [e.key for e in folder.entries]
    for sample, entry in list(zip(samples, folder.entries, strict=True))[:4]:
        pair = folder.read(entry)
        assert np.array_equal(sample["png"], pair.image)
        assert len(sample["json"]["notes"]) == len(pair.truth)
        waveform, _ = soundfile.read(io.BytesIO(sample["flac"]), dtype="float32")
        assert np.array_equal(waveform, pair.waveform)


def test_a_url_is_read_like_a_folder(rendered: Path) -> None:
    memory = fsspec.filesystem("memory")
    for file in rendered.iterdir():
        memory.pipe(f"/shards/{file.name}", file.read_bytes())
    local, remote = ShardFolder(rendered), ShardFolder("memory://shards")
    assert remote.entries == local.entries
    for entry in local.entries[:3]:
        ours, theirs = local.read(entry), remote.read(entry)
        assert np.array_equal(ours.waveform, theirs.waveform)
        assert np.array_equal(ours.truth, theirs.truth)


def test_strips_stand_under_each_other(rendered: Path) -> None:
    folder = ShardFolder(rendered)
    for entry in folder.entries:
        pair = folder.read(entry)
        assert pair.strip_height_px == 128
        assert pair.image.shape[0] % 128 == 0
        assert pair.truth["y1"].max() <= pair.image.shape[0]
        assert pair.sample_rate_hz == folder.sample_rate_hz == 16_000


def test_an_older_folder_that_calls_its_segments_strips_is_read(rendered: Path, tmp_path: Path) -> None:
    for file in rendered.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["recipe"]["segment"]["shape"] == "staff_strips"
    manifest["recipe"]["segment"]["shape"] = "strip"
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert ShardFolder(tmp_path).segment == ShardFolder(rendered).segment


@pytest.mark.parametrize(("split", "message"), [("test", "no pairs for 'test'"), ("training", "no pairs")])
def test_a_split_without_pairs_is_said_so(rendered: Path, split: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ShardFolder(rendered, split)


def test_a_folder_that_was_not_rendered_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="written by fusili-mir render"):
        ShardFolder(tmp_path)


def test_a_damaged_shard_names_the_pair(rendered: Path, tmp_path: Path) -> None:
    for file in rendered.iterdir():
        data = file.read_bytes()
        (tmp_path / file.name).write_bytes(b"\0" * len(data) if file.suffix == ".tar" else data)
    folder = ShardFolder(tmp_path)
    with pytest.raises(InputError, match=folder.entries[0].key):
        folder.read(folder.entries[0])


def test_the_index_says_how_much_there_is_to_see_and_to_hear(rendered: Path) -> None:
    folder = ShardFolder(rendered)
    for entry in folder.entries[:4]:
        pair = folder.read(entry)
        assert entry.width_px == pair.image.shape[1]
        assert entry.duration_sec == pytest.approx(len(pair.waveform) / pair.sample_rate_hz, abs=0.01)


def test_a_part_of_the_pairs_is_chosen_by_layout_and_duration(rendered: Path) -> None:
    everything = ShardFolder(rendered).entries
    layout, longest = everything[0].layout, float(np.median([entry.duration_sec for entry in everything]))
    chosen = ShardFolder(rendered, layout=layout, max_duration_sec=longest).entries
    assert chosen == [e for e in everything if e.layout == layout and e.duration_sec <= longest]
    assert 0 < len(chosen) < len(everything)
    with pytest.raises(InputError, match="of the layout 'organ' and at most 3 s long"):
        ShardFolder(rendered, layout="organ", max_duration_sec=3)
