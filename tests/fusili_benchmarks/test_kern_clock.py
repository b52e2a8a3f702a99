from __future__ import annotations

from fractions import Fraction

from fusili_benchmarks.kern_clock import kern_onsets


def test_tokens_begin_when_their_spines_are_free() -> None:
    text = "**kern\t**dynam\t**kern\n2C\tf\t4c\n.\t.\t4.d\n=2\t=2\t=2\n4.D\t.\t8e\n"
    onsets = kern_onsets(text)
    assert onsets == {(2, 1): 0, (2, 3): 0, (3, 3): 1, (5, 1): Fraction(5, 2), (5, 3): Fraction(5, 2)}


def test_spines_that_split_keep_time_apart_until_they_join() -> None:
    text = "**kern\n*^\n4c\t2e\n4d\t.\n*v\t*v\n4f\n"
    assert kern_onsets(text) == {(3, 1): 0, (3, 2): 0, (4, 1): 1, (6, 1): 2}


def test_grace_notes_take_no_time_and_breves_take_eight_quarters() -> None:
    assert kern_onsets("**kern\n8qc\n0d\n4e\n") == {(2, 1): 0, (3, 1): 0, (4, 1): 8}


def test_a_rest_without_a_length_lasts_for_a_measure() -> None:
    assert kern_onsets("**kern\n*M3/4\nr\n4c\n") == {(3, 1): 0, (4, 1): 3}
