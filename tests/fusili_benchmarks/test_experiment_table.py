from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from example_datasets import write_melodies

from fusili_benchmarks.experiment_table import (
    ExperimentRow,
    format_experiment,
    local_ranking,
    measure_run,
    training_of,
)
from fusili_benchmarks.kept_pairs import KeptPairs
from fusili_mir.errors import InputError
from fusili_mir.model.bundle import Bundle
from fusili_mir.model.encoder import Encoder
from fusili_training.evaluation.bootstrap import Interval
from fusili_training.evaluation.report import Measurement, Report


def recipe(alpha: float, local_similarity: str = "fusili") -> dict[str, Any]:
    return {
        "loss": {"alpha": alpha, "local_similarity": local_similarity},
        "data": {"layout": "piano", "max_duration_sec": 6.0},
        "training": {"max_steps": 700},
        "steps": 700,
    }


def with_recipe(bundle: Bundle, content: dict[str, Any]) -> Bundle:
    return replace(bundle, manifest=replace(bundle.manifest, recipe=content))


def titles(table: str) -> list[str]:
    return [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()]


def cells(table: str, line: int) -> dict[str, str]:
    header, chosen = (table.splitlines()[row].strip("|").split("|") for row in (0, line))
    return {name.strip(): cell.strip() for name, cell in zip(header, chosen, strict=True)}


# --- which ranking


@pytest.mark.parametrize(
    ("alpha", "local_similarity", "ranking"),
    [
        (0.0, "fusili", None),
        (0.5, "fusili", "reranked"),
        (1.0, "fusili", "sinkhorn"),
        (0.5, "cosine", "summed"),
        (1.0, "cosine", "summed"),
    ],
)
def test_the_local_similarity_ranks_as_it_was_trained(
    alpha: float, local_similarity: str, ranking: str | None
) -> None:
    assert local_ranking(recipe(alpha, local_similarity)) == ranking


def test_a_local_similarity_without_a_ranking_is_refused() -> None:
    with pytest.raises(InputError, match="no ranking by the local similarity 'softmax'"):
        local_ranking(recipe(0.5, "softmax"))


# --- a table of given numbers


def run(title: str, top1: float, chance: float = 0.25, n_steps: int = 700) -> ExperimentRow:
    def measured(
        task: str, variant: str, direction: str, metric: str, value: float, **baselines: float
    ) -> Any:
        named = {name.replace("_", " "): number for name, number in baselines.items()}
        return Measurement(task, variant, direction, metric, Interval(value, 0.0, 1.0), 10, named)

    measurements = (
        measured("local", "own grid", "A2I", "top-1", 0.125, chance=0.01, straight_line=0.0625),
        measured("local", "paper's grid", "A2I", "top-1", top1, chance=chance, straight_line=0.75),
        measured("point", "paper's grid", "A2I", "top-1", 0.3, chance=0.02, straight_line=0.1),
        measured("point", "paper's grid", "I2A", "top-1", 0.4, chance=0.03, straight_line=0.2),
        measured("retrieval", "summed", "I2A", "R@1", 0.5, chance=0.0025),
        measured("retrieval", "summed", "A2I", "R@1", 0.6, chance=0.0025),
        measured("retrieval", "sinkhorn", "I2A", "R@1", 0.7, chance=0.0025),
        measured("retrieval", "sinkhorn", "A2I", "R@1", 0.8, chance=0.0025),
        measured("onsets", "segments", "", "median ms", 123.4, straight_line=200.0),
    )
    report = Report(title, "held out", 2, 10, {}, measurements)
    rankings: Any = {"as in the paper": "summed", "by the local similarity": "sinkhorn"}
    return ExperimentRow(title, n_steps, 700, rankings, report)


def test_each_number_is_in_its_column() -> None:
    found = cells(format_experiment([run("first", 0.5)]), 2)
    assert found["run"] == "first"
    assert found["steps"] == "700"
    assert found["local top-1, 7 cells"] == "0.500"
    assert found["local top-1, own columns"] == "0.125"
    assert found["point-and-retrieve I2A / A2I"] == "0.400 / 0.300"
    assert found["R@1 I2A / A2I"] == "0.500 / 0.600"
    assert found["R@1 by local similarity"] == "0.700 / 0.800"
    assert found["onset error, median ms"] == "123"
    assert found["MRR I2A / A2I"] == found["within 250 ms"] == "-"


def test_baselines_are_below_the_runs() -> None:
    table = format_experiment([run("first", 0.5), run("second", 0.6)])
    assert titles(table) == ["run", "---", "first", "second", "chance", "straight line"]
    chance, straight = cells(table, 4), cells(table, 5)
    assert chance["local top-1, 7 cells"] == "0.250"
    assert chance["R@1 by local similarity"] == "0.003 / 0.003"
    assert chance["onset error, median ms"] == straight["R@1 I2A / A2I"] == "-"
    assert straight["point-and-retrieve I2A / A2I"] == "0.200 / 0.100"
    assert straight["onset error, median ms"] == "200"


def test_an_unfinished_run_is_marked() -> None:
    assert cells(format_experiment([run("first", 0.5, n_steps=200)]), 2)["steps"] == "200 of 700"


def test_runs_that_were_judged_on_different_grids_do_not_share_a_table() -> None:
    with pytest.raises(InputError, match=r"7 cells: chance is 0\.2 for one run and 0\.25 for another"):
        format_experiment([run("first", 0.5), run("second", 0.5, chance=0.2)])


# --- measuring a bundle


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A bundle that reads melodies, with shards of two melodies beside it."""
    return write_melodies(tmp_path_factory.mktemp("experiment"), layout="piano")


@pytest.fixture(scope="module")
def melodies(bundle: Bundle) -> KeptPairs:
    return KeptPairs(bundle.folder.parent / "shards", "test", "piano", 6.0)


Measure = Callable[[dict[str, Any]], ExperimentRow]


@pytest.fixture
def measure(bundle: Bundle, melodies: KeptPairs) -> Measure:
    return lambda content: measure_run(
        "row", Encoder(with_recipe(bundle, content), n_threads=1), melodies, 400
    )


def test_a_right_bundle_finds_every_line_and_all_notes(measure: Measure, melodies: KeptPairs) -> None:
    row = measure(recipe(0.5))
    found = cells(format_experiment([row]), 2)
    assert float(found["local top-1, 7 cells"]) > 0.8
    for column in ("R@1 I2A / A2I", "MRR I2A / A2I", "R@1 by local similarity", "MRR by local similarity"):
        assert found[column].endswith(" / 1.000")
    assert found["within 250 ms"] == "1.000"
    assert "-" not in found.values()
    chance = cells(format_experiment([row]), 3)
    assert chance["R@1 I2A / A2I"].split(" / ")[0] == f"{1 / len(melodies):.3f}"


def test_a_model_without_a_local_loss_is_not_ranked_by_its_similarity(measure: Measure) -> None:
    row = measure(recipe(0.0))
    assert row.rankings == {"as in the paper": "pooled"}
    assert cells(format_experiment([row]), 2)["R@1 by local similarity"] == "-"


def test_a_bundle_without_its_training_recipe_is_refused(bundle: Bundle) -> None:
    with pytest.raises(InputError, match=r"'pitch' has no loss\.alpha in its recipe"):
        training_of(bundle.manifest)
    without_steps = {name: part for name, part in recipe(0.5).items() if name != "steps"}
    with pytest.raises(InputError, match="has no steps in its recipe"):
        training_of(with_recipe(bundle, without_steps).manifest)
