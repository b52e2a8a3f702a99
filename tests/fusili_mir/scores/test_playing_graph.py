"""Ways to play, each worked out by hand from what a musician would do; measures are written from 1 here."""

from __future__ import annotations

import itertools

import pytest

from fusili_mir.errors import InputError
from fusili_mir.scores.playing_graph import graph_of_order, playing_graph
from fusili_mir.scores.repeat_structure import Ending, Jump, RepeatStructure


def ways(structure: RepeatStructure) -> set[str]:
    graph = playing_graph(structure)
    return {_text(graph.measures(way)) for way in graph.ways()}


def maximal(structure: RepeatStructure) -> str:
    graph = playing_graph(structure)
    return _text(graph.measures(graph.maximal_way()))


def minimal(structure: RepeatStructure) -> str:
    graph = playing_graph(structure)
    return _text(graph.measures(graph.minimal_way()))


def _text(measures) -> str:
    return " ".join(str(measure + 1) for measure in measures)


TWO_ENDINGS = RepeatStructure(5, begins=(1,), ends=(2,), endings=(Ending(2, 3, (1,)), Ending(3, 4, (2,))))
DA_CAPO = RepeatStructure(4, ends=(1,), jumps=(Jump(after=3),), fine=(1,))
TO_CODA = RepeatStructure(6, jumps=(Jump(after=3, to=1),), to_coda=(2,), coda=(4,))


def test_a_score_without_signs_has_one_way() -> None:
    assert ways(RepeatStructure(3)) == {"1 2 3"}


def test_a_repeat_is_taken_or_not() -> None:
    assert ways(RepeatStructure(4, begins=(1,), ends=(2,))) == {"1 2 3 4", "1 2 3 2 3 4"}


def test_without_a_sign_that_begins_it_a_repeat_goes_back_to_the_repeat_before() -> None:
    both = "1 2 1 2 3 4 3 4"
    assert ways(RepeatStructure(4, ends=(1, 3))) == {"1 2 3 4", "1 2 1 2 3 4", "1 2 3 4 3 4", both}
    assert maximal(RepeatStructure(4, ends=(1, 3))) == both


def test_the_first_ending_is_played_only_if_a_repeat_follows() -> None:
    assert ways(TWO_ENDINGS) == {"1 2 3 2 4 5", "1 2 4 5"}


def test_a_first_ending_without_a_second_is_left_out_on_the_second_pass() -> None:
    assert ways(RepeatStructure(4, ends=(2,), endings=(Ending(2, 3, (1,)),))) == {"1 2 3 1 2 4", "1 2 4"}


def test_an_ending_for_two_passes_is_played_twice() -> None:
    endings = (Ending(1, 2, (1, 2)), Ending(2, 3, (3,)))
    structure = RepeatStructure(3, ends=(1,), endings=endings)
    assert ways(structure) == {"1 2 1 2 1 3", "1 2 1 3", "1 3"}


def test_a_passage_may_be_played_three_times() -> None:
    assert ways(RepeatStructure(2, ends=(0,), times=(3,))) == {"1 1 1 2", "1 1 2", "1 2"}


def test_a_sign_inside_a_passage_that_no_sign_ends_repeats_nothing() -> None:
    assert ways(RepeatStructure(3, begins=(1,))) == {"1 2 3"}


def test_da_capo_al_fine_ends_at_the_fine() -> None:
    assert maximal(DA_CAPO) == "1 2 1 2 3 4 1 2"
    assert minimal(DA_CAPO) == "1 2 3 4 1 2"
    assert "1 2 3 4" in ways(DA_CAPO)  # a da capo may be left out


def test_dal_segno_al_coda_leaves_for_the_coda_on_the_second_pass_only() -> None:
    assert ways(TO_CODA) == {"1 2 3 4 2 3 5 6", "1 2 3 4 5 6"}
    assert maximal(TO_CODA) == "1 2 3 4 2 3 5 6"


def test_da_capo_without_a_fine_goes_on_after_it() -> None:
    assert ways(RepeatStructure(3, jumps=(Jump(after=1),))) == {"1 2 1 2 3", "1 2 3"}


def test_after_a_da_capo_the_last_ending_is_likely_and_the_repeat_is_not() -> None:
    endings = (Ending(1, 2, (1,)), Ending(2, 3, (2,)))
    structure = RepeatStructure(4, ends=(1,), endings=endings, jumps=(Jump(after=3),), fine=(2,))
    assert maximal(structure) == "1 2 1 3 4 1 3"
    assert "1 3 4 1 2 1 3" in ways(structure)


@pytest.mark.parametrize("structure", [RepeatStructure(9, ends=(1, 3)), TWO_ENDINGS, DA_CAPO, TO_CODA])
def test_what_may_follow_a_section_adds_up_to_certainty_and_lies_ahead(structure) -> None:
    graph = playing_graph(structure)
    for source in range(len(graph.sections)):
        following = graph.following(source)
        assert sum(edge.probability for edge in following) + graph.ends[source] == pytest.approx(1.0)
        assert all(edge.target > source for edge in following)


def test_thirty_repeats_are_counted_without_listing_a_thousand_million_ways() -> None:
    graph = playing_graph(RepeatStructure(30, begins=tuple(range(30)), ends=tuple(range(30))))
    assert graph.n_ways == 2**30
    assert len(graph.sections) == 60


def test_the_number_of_ways_is_that_of_those_listed() -> None:
    for structure in (TWO_ENDINGS, DA_CAPO, TO_CODA, RepeatStructure(6, ends=(1, 3, 5))):
        graph = playing_graph(structure)
        listed = [graph.measures(way) for way in graph.ways()]
        assert len(listed) == len(set(listed)) == graph.n_ways


def test_an_order_of_measures_is_a_graph_of_one_way() -> None:
    order = (0, 1, 2, 0, 1, 5, 6)
    graph = graph_of_order(order)
    assert [graph.measures(way) for way in graph.ways()] == [order]
    assert len(graph.sections) == 3
    assert all(edge.target == edge.source + 1 for edge in graph.edges)


def test_signs_outside_the_score_are_refused() -> None:
    with pytest.raises(
        InputError, match="a repeat sign at measure 7, counted from 0; the score has 3 measures"
    ):
        RepeatStructure(3, ends=(7,))
    with pytest.raises(InputError, match="without measures"):
        playing_graph(RepeatStructure(0))


def test_every_small_structure_is_played_from_its_first_measure_to_an_end() -> None:
    for begins, ends in itertools.product(_subsets(4), _subsets(4)):
        for way in ways(RepeatStructure(4, begins=begins, ends=ends)):
            assert (way[0], way[-1]) == ("1", "4")


def _subsets(n: int) -> list[tuple[int, ...]]:
    return [each for size in range(n + 1) for each in itertools.combinations(range(n), size)]


def test_two_endings_may_alternate_over_four_passes() -> None:
    endings = (Ending(1, 2, (1, 3)), Ending(2, 3, (2, 4)))
    graph = playing_graph(RepeatStructure(3, ends=(1, 2), endings=endings))
    assert graph.measures(graph.maximal_way()) == (0, 1, 0, 2, 0, 1, 0, 2)


def test_a_pass_that_no_bracket_names_has_the_ending_of_the_pass_before() -> None:
    endings = (Ending(1, 2, (1,)), Ending(2, 3, (3,)))
    graph = playing_graph(RepeatStructure(3, ends=(1,), endings=endings))
    assert graph.measures(graph.maximal_way()) == (0, 1, 0, 1, 0, 2)
