from __future__ import annotations

import warnings

import pytest
from partitura import score as ps

from fusili_mir.scores.measure_lengths import share_measure_lengths
from fusili_mir.scores.part_times import quarters_of, times_of
from fusili_mir.scores.score_warning import ScoreWarning


def part(name: str, lengths: list[int], divisions: int = 2) -> ps.Part:
    """One note for each measure; lengths in quarters."""
    made = ps.Part(name, name, quarter_duration=divisions)
    time = 0
    for number, length in enumerate(lengths, start=1):
        end = time + length * divisions
        made.add(ps.Measure(number, str(number)), time, end)
        made.add(ps.Note("C", 4, id=f"{name}{number}", voice=1, staff=1), time, end)
        time = end
    return made


def onsets(own: ps.Part) -> list[float]:
    return [float(each) for each in quarters_of(own)([note.start.t for note in own.notes])]


def test_a_part_with_a_short_measure_stays_with_the_others() -> None:
    score = ps.Score([part("a", [2, 2, 2]), part("b", [2, 1, 2], divisions=6)])
    with pytest.warns(ScoreWarning, match=r"1 measures are longer in one part .* \(first: 2\)"):
        share_measure_lengths(score, "score")
    assert [onsets(own) for own in score.parts] == [[0, 2, 4], [0, 2, 4]]
    assert [note.id for note in score.parts[1].notes] == ["b1", "b2", "b3"]
    assert score.parts[1].notes[1].duration == 6  # the note itself is as long as before


def test_parts_in_step_are_left_as_they_are() -> None:
    parts = [part("a", [2, 2]), part("b", [2, 2], divisions=5)]
    score = ps.Score(parts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        share_measure_lengths(score, "score")
    assert score.parts[0] is parts[0]
    assert score.parts[1] is parts[1]


def test_parts_with_other_numbers_of_measures_are_left_as_they_are() -> None:
    score = ps.Score([part("a", [2, 2, 2]), part("b", [3, 3])])
    share_measure_lengths(score, "score")
    assert onsets(score.parts[1]) == [0, 3]


def test_times_and_quarters_are_inverse_also_beyond_the_end() -> None:
    own = part("a", [2, 3], divisions=4)
    own.set_quarter_duration(8, 6)
    quarters, time = quarters_of(own), times_of(own)
    assert [time(float(quarters(t))) for t in (0, 3, 8, 14, 20)] == [0, 3, 8, 14, 20]
    last = own.last_point.t
    assert time(float(quarters(last)) + 2) == last + 12
