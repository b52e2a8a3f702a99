import numpy as np
import partitura.score as ps
import pytest

from fusili_mir.errors import InputError
from fusili_training.sound.tempo import WrittenTempo, read_written_tempo


def part(*marks: tuple[int, ps.TimedObject]) -> ps.Part:
    """A part of two 4/4 measures, 10 divisions per quarter, with marks at the given quarters."""
    made = ps.Part("P1", quarter_duration=10)
    made.add(ps.TimeSignature(4, 4), 0)
    made.add(ps.Note(step="C", octave=4, id="a", voice=1), 0, 80)
    for quarter, mark in marks:
        made.add(mark, 10 * quarter)
    return made


def test_time_runs_at_the_tempo_in_force() -> None:
    tempo = WrittenTempo((0.0, 4.0), (60.0, 120.0))
    # 4 quarters of 1 s, then half-second quarters; before the start, the first tempo applies
    np.testing.assert_allclose(tempo.seconds([-1.0, 0.0, 2.5, 4.0, 6.0]), [-1.0, 0.0, 2.5, 4.0, 5.0])


def test_metronome_marks_count_in_quarters() -> None:
    tempo = read_written_tempo(part((0, ps.Tempo(50, "h")), (4, ps.Tempo(80, "q."))))
    assert tempo == WrittenTempo((0.0, 4.0), (100.0, 120.0))


def test_a_score_without_marks_runs_at_120() -> None:
    assert read_written_tempo(part()) == WrittenTempo((0.0,), (120.0,))


def test_an_opening_word_stands_in_for_a_number() -> None:
    assert read_written_tempo(part((0, ps.Words("Ziemlich langsam, innig")))).qpm == (56.0,)


def test_a_later_first_mark_holds_from_the_start() -> None:
    assert read_written_tempo(part((4, ps.Tempo(90)))) == WrittenTempo((0.0, 4.0), (90.0, 90.0))


def test_an_absurd_tempo_is_passed_over() -> None:
    assert read_written_tempo(part((0, ps.Tempo(0)), (4, ps.Tempo(5000)))) == WrittenTempo((0.0,), (120.0,))


def test_the_upper_part_decides() -> None:
    assert read_written_tempo([part((0, ps.Tempo(70))), part((0, ps.Tempo(90)))]).qpm == (70.0,)


@pytest.mark.parametrize(
    ("quarters", "qpm"), [((), ()), ((0.0,), (60.0, 70.0)), ((1.0, 1.0), (60.0, 60.0)), ((0.0,), (0.0,))]
)
def test_an_impossible_map_is_refused(quarters: tuple[float, ...], qpm: tuple[float, ...]) -> None:
    with pytest.raises(InputError):
        WrittenTempo(quarters, qpm)
