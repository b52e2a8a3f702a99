"""Settings for all tests: one thread per process, and small rendered corpora that are made once."""

from __future__ import annotations

import os

for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR"):  # pytest already runs on every core
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# ruff: noqa: E402 (numpy reads the variables above when it is imported)
from dataclasses import replace
from pathlib import Path

import example_scores
import pytest

from fusili_mir.audio.soundfonts import Soundfont, find_fluidsynth, find_soundfonts
from fusili_mir.errors import MissingExtraError
from fusili_training.rendering.corpus import list_corpus
from fusili_training.rendering.render_recipe import AudioOptions, MutationOptions, PageOptions, RenderRecipe

SCORES = {
    "melody": example_scores.melody(12),
    "piano": example_scores.piano(16),
    "song": example_scores.song(14),
    "tune": example_scores.melody(20),
    "voltas": example_scores.VOLTAS,
}


def write_scores(folder: Path) -> None:
    """Write the example scores as a corpus of training pieces only."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = ["id,file,licence,split"]
    for name, content in SCORES.items():
        (folder / f"{name}.musicxml").write_text(content)
        rows.append(f"{name},{name}.musicxml,CC0-1.0,train")
    (folder / "manifest.csv").write_text("\n".join(rows) + "\n")


@pytest.fixture(scope="session")
def soundfont() -> Soundfont:
    """The smallest soundfont, which fluidsynth can play; `make test` installs both, but not on macOS."""
    try:
        find_fluidsynth()
        return min(find_soundfonts(), key=lambda font: font.path.stat().st_size)
    except MissingExtraError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def small_recipe(soundfont: Soundfont) -> RenderRecipe:
    """Strips of one piano, two pieces per shard."""
    audio = AudioOptions(
        soundfonts=(soundfont.name,), keyboard_programs=(0,), other_programs=(0,), velocities=(72,)
    )
    return RenderRecipe(pieces_per_shard=2, audio=audio)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five small scores."""
    folder = tmp_path_factory.mktemp("corpus")
    write_scores(folder)
    return folder


@pytest.fixture(scope="session")
def rendered(corpus: Path, small_recipe: RenderRecipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small corpus as strips with mutants, some of them degraded."""
    from fusili_training.rendering.render import render_corpus

    out = tmp_path_factory.mktemp("rendered") / "shards"
    recipe = replace(
        small_recipe, mutation=MutationOptions(mutants=True, probability=0.5), page=PageOptions(degraded=0.5)
    )
    render_corpus(list_corpus(corpus), out, recipe, jobs=1)
    return out
