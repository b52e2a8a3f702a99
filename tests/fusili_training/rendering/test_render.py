from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fusili_mir.errors import InputError, OutputError
from fusili_training.rendering.corpus import CorpusPiece, list_corpus
from fusili_training.rendering.render import render_corpus
from fusili_training.rendering.render_recipe import RenderRecipe

SCRIPT = """
import sys
from pathlib import Path
import test_render
test_render.render_again(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
"""


def _recipe(soundfont: str) -> RenderRecipe:
    audio = replace(
        RenderRecipe().audio,
        soundfonts=(soundfont,),
        keyboard_programs=(0,),
        other_programs=(0,),
        velocities=(72,),
    )
    return RenderRecipe(pieces_per_shard=1, audio=audio)


def render_again(corpus: Path, out: Path, soundfont: str, jobs: int) -> None:
    """Render a corpus with one piece per shard; also called in a separate process."""
    render_corpus(list_corpus(corpus), out, _recipe(soundfont), jobs)


def _contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def undisturbed(
    corpus: Path, small_recipe: RenderRecipe, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("undisturbed") / "shards"
    render_again(corpus, out, small_recipe.audio.soundfonts[0], 1)
    return _contents(out)


def test_the_manifest_counts_what_is_there(undisturbed: dict[str, bytes]) -> None:
    manifest = json.loads(undisturbed["manifest.json"])
    assert manifest["pieces"] == 5
    assert manifest["broken"] == []
    sidecars = [
        json.loads(undisturbed[name]) for name in undisturbed if name.startswith("shard") and "json" in name
    ]
    assert manifest["segments"] == sum(len(sidecar["samples"]) for sidecar in sidecars) > 5
    assert manifest["licences"] == {"CC0-1.0": manifest["segments"]}
    assert [s["name"] for s in manifest["splits"]["train"]["shards"]] == [
        f"shard-train-00000{number}.tar" for number in range(5)
    ]
    assert manifest["libraries"]["verovio"]


def test_a_killed_run_that_goes_on_gives_the_same_bytes(
    corpus: Path, small_recipe: RenderRecipe, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "shards"
    paths = [str(Path(__file__).parent), *sys.path]
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(corpus), str(out), small_recipe.audio.soundfonts[0], "2"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 120
        while not list(out.glob("shard-*.json")) and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.01)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    finished = {name for name in _contents(out) if name.endswith(".tar")}
    assert 1 <= len(finished) < 5  # killed half-way
    assert not (out / "manifest.json").exists()
    (out / ".shard-train-000004.tar.1.part").write_bytes(b"half of a shard")
    render_again(corpus, out, small_recipe.audio.soundfonts[0], 1)
    assert _contents(out) == undisturbed


def test_a_shard_without_its_list_is_made_again(
    corpus: Path, small_recipe: RenderRecipe, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    for name, data in undisturbed.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "shard-train-000001.json").unlink()
    (tmp_path / "shard-train-000001.tar").write_bytes(b"from a run that died")
    (tmp_path / "manifest.json").unlink()
    render_again(corpus, tmp_path, small_recipe.audio.soundfonts[0], 1)
    assert _contents(tmp_path) == undisturbed


def test_a_dask_cluster_gives_the_same_bytes(
    corpus: Path, small_recipe: RenderRecipe, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    import distributed

    out = tmp_path / "shards"
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=None
    )
    with cluster, distributed.Client(cluster) as client:
        recipe = _recipe(small_recipe.audio.soundfonts[0])
        render_corpus(list_corpus(corpus), out, recipe, backend="dask", backend_options={"client": client})
        shares = [len(log) for log in client.run(lambda dask_worker: dask_worker.state.log).values()]
    assert len(shares) == 2
    assert min(shares) > 0  # both processes took part
    assert _contents(out) == undisturbed


def test_a_broken_score_is_reported_and_skipped(
    corpus: Path, small_recipe: RenderRecipe, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.musicxml"
    broken.write_text("<score-partwise><part")
    melody = next(piece for piece in list_corpus(corpus) if piece.id == "melody")
    pieces = [melody, CorpusPiece("broken", broken, "CC0-1.0", "train")]
    manifest = render_corpus(pieces, tmp_path / "out", small_recipe, jobs=1)
    assert [row["piece"] for row in manifest["broken"]] == ["broken"]
    assert "damaged XML" in manifest["broken"][0]["error"]
    assert manifest["segments"] > 0


def test_a_folder_from_before_a_setting_existed_can_be_gone_on_with(
    corpus: Path, small_recipe: RenderRecipe, tmp_path: Path
) -> None:
    pieces = [piece for piece in list_corpus(corpus) if piece.id == "melody"]
    made = render_corpus(pieces, tmp_path / "out", small_recipe, jobs=1)
    settings = json.loads((tmp_path / "out" / "render.json").read_text())
    del settings["recipe"]["audio"]["singing"], settings["recipe"]["page"]["printed"]
    (tmp_path / "out" / "render.json").write_text(json.dumps(settings))
    assert render_corpus(pieces, tmp_path / "out", small_recipe, jobs=1)["splits"] == made["splits"]


def test_another_recipe_does_not_mix_with_what_is_there(
    corpus: Path, small_recipe: RenderRecipe, rendered: Path
) -> None:
    before = _contents(rendered)
    with pytest.raises(OutputError, match=r"other settings \(recipe\..* was .*, now it is"):
        render_corpus(list_corpus(corpus), rendered, small_recipe, jobs=1)
    assert _contents(rendered) == before


def test_a_folder_with_other_files_or_a_file_in_its_place_is_left_alone(
    corpus: Path, small_recipe: RenderRecipe, tmp_path: Path
) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(OutputError, match="other files"):
        render_corpus(list_corpus(corpus), tmp_path, small_recipe, jobs=1)
    with pytest.raises(OutputError, match="is a file; expected a folder"):
        render_corpus(list_corpus(corpus), tmp_path / "thesis.txt", small_recipe, jobs=1)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


def test_an_unknown_backend_is_one_line(corpus: Path, small_recipe: RenderRecipe, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="abacus"):
        render_corpus(list_corpus(corpus), tmp_path / "out", small_recipe, backend="abacus")
    assert not (tmp_path / "out").exists()
