"""Which sources are rendered with LilyPond, and what can be read of a run that goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusili_training.data.shard_folder import ShardFolder
from fusili_training.rendering.corpus import CorpusPiece
from fusili_training.rendering.render import save_manifest_so_far
from fusili_training.rendering.segment_pair import Sample
from fusili_training.rendering.shards import shard_name, sidecar_of, write_json, write_shard
from fusili_training.splits import Split
from lilypond_pairs import choose_pieces, piano_recipe


def source(
    folder: Path, work: str, n_bytes: int, split: Split, licence: str = "Public Domain"
) -> CorpusPiece:
    file = folder / "mutopia_msmd" / work / "score.ly"
    file.parent.mkdir(parents=True)
    file.write_text("c" * n_bytes)
    return CorpusPiece(work.replace("/", "-"), file, licence, split)


def test_the_shortest_free_sources_are_taken_without_the_works_that_judge_models(tmp_path: Path) -> None:
    corpus = [
        source(tmp_path, "BachJS/BWV856/a", 1, "train"),
        source(tmp_path, "BachJS/BWV850/a", 30, "train"),
        source(tmp_path, "SatieE/gymnopedie", 20, "train"),
        source(tmp_path, "ChopinFF/O69/a", 90, "train"),
        source(tmp_path, "SousaJP/march", 5, "train", licence="unknown"),
        source(tmp_path, "BachJS/BWV799/a", 99, "valid"),
        source(tmp_path, "MozartWA/KV331/a", 9, "test"),
    ]
    chosen = [piece.id for piece in choose_pieces(corpus, n_train=2)]
    assert chosen == ["SatieE-gymnopedie", "BachJS-BWV850-a", "BachJS-BWV799-a"]


def test_only_keyboards_play() -> None:
    audio = piano_recipe().audio
    assert set(audio.other_programs) == set(audio.keyboard_programs)
    assert audio.sampled_solo == audio.singing == 0.0


@pytest.mark.parametrize("split", ["train", "valid"])
def test_finished_shards_can_be_read_before_the_run_ends(tmp_path: Path, split: Split) -> None:
    write_json(tmp_path / "render.json", {"format": 1})
    shard = tmp_path / shard_name(split, 3)
    report = {"id": "a", "licence": "PD", "segments": 1, "mutants": 0, "dropped": {}, "error": None}
    written = write_shard(shard, [Sample("a.piano.0", None, {"png": b"", "json": b"{}"}, 9, 1.0)])
    write_json(sidecar_of(shard), {"shard": shard.name, "split": split, "pieces": [report], **written})
    (tmp_path / shard_name(split, 4)).write_bytes(b"half a shard, without its JSON file")
    assert save_manifest_so_far(tmp_path)["segments"] == 1
    assert [entry.key for entry in ShardFolder(tmp_path, split).entries] == ["a.piano.0"]
