from __future__ import annotations

import partitura as pt
from example_scores import VOLTAS

from fusili_mir.scores.loading import load_score
from fusili_mir.scores.playing_graph import playing_graph
from fusili_mir.scores.repeat_structure import Ending, Jump, RepeatStructure
from fusili_mir.scores.written_repeats import written_repeats

DIRECTIONS = {
    pt.score.Segno: 4,
    pt.score.DalSegno: 12,
    pt.score.ToCoda: 8,
    pt.score.Coda: 12,
    pt.score.DaCapo: 16,
    pt.score.Fine: 4,
}


def test_repeats_and_endings_are_those_of_the_file(tmp_path) -> None:
    file = tmp_path / "voltas.musicxml"
    file.write_text(VOLTAS)
    structure = written_repeats(load_score(file).score)
    assert structure == RepeatStructure(
        4, begins=(1,), ends=(2,), endings=(Ending(2, 3, (1,)), Ending(3, 4, (2,)))
    )
    graph = playing_graph(structure)
    assert graph.measures(graph.maximal_way()) == (0, 1, 2, 1, 3)


def test_jumps_stand_at_the_ends_of_measures_and_their_targets_at_beginnings() -> None:
    part = pt.score.Part("P1", quarter_duration=1)
    part.add(pt.score.TimeSignature(4, 4), 0)
    for number in range(4):
        part.add(pt.score.Measure(number=number + 1, name=str(number + 1)), 4 * number, 4 * number + 4)
    for kind, time in DIRECTIONS.items():
        part.add(kind(), time)
    assert written_repeats(pt.score.Score([part])) == RepeatStructure(
        4, jumps=(Jump(2, to=1), Jump(3, to=0)), fine=(0,), to_coda=(1,), coda=(3,)
    )
