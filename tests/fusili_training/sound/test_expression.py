from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusili_mir.errors import InputError
from fusili_training.sound.expression import Expression, draw_expression, perform
from fusili_training.sound.notes import SCORE_NOTE_DTYPE
from fusili_training.sound.tempo import WrittenTempo

TEMPO = WrittenTempo((0.0, 5.0), (90.0, 130.0))
LIVELY = Expression(
    rubato=0.2, jitter_sec=0.03, chord_spread_sec=0.05, marks=1.0, dynamics=15.0, articulation=0.3, pedal=0.5
)

KEPT = {"rubato_quarter", "pedal_quarter", "grace_sec"}


def score(rows: list[tuple[int, float, float, int, int]]) -> np.ndarray:
    """Rows of (pitch, onset_quarter, duration_quarter, grace, voice)."""
    notes = np.zeros(len(rows), dtype=SCORE_NOTE_DTYPE)
    notes["id"] = [f"n{i}" for i in range(len(rows))]
    for name, column in zip(
        ("pitch", "onset_quarter", "duration_quarter", "grace", "voice"), zip(*rows, strict=True), strict=True
    ):
        notes[name] = column
    notes["velocity"], notes["held"] = 64, 1.0
    return notes


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


sixteenths = st.integers(0, 48).map(lambda n: n / 4)
scores = st.lists(
    st.tuples(
        st.integers(21, 108),
        sixteenths,
        st.sampled_from([0.25, 0.5, 1.0, 3.0]),
        st.just(0),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=30,
).map(score)
styles = st.builds(
    Expression,
    tempo_factor=st.floats(0.5, 2.0),
    rubato=st.floats(0, 0.3),
    jitter_sec=st.floats(0, 0.1),
    chord_spread_sec=st.floats(0, 0.1),
    marks=st.floats(0, 1),
    dynamics=st.floats(0, 40),
    articulation=st.floats(0, 0.5),
    pedal=st.floats(0, 1),
)
hands = st.builds(
    Expression,
    lead_sec=st.floats(0, 0.1),
    hands_sec=st.floats(0, 0.2),
    voicing=st.floats(0, 40),
    pedal=st.floats(0, 1),
    half_pedal=st.floats(0, 1),
)
seeds = st.integers(0, 2**32 - 1)


@given(scores, seeds)
def test_without_amounts_the_performance_is_the_score(notes: np.ndarray, seed: int) -> None:
    played = perform(notes, TEMPO, Expression(), rng(seed))
    onset = TEMPO.seconds(notes["onset_quarter"])
    np.testing.assert_array_equal(played["onset_sec"], onset)
    np.testing.assert_array_equal(
        played["duration_sec"], TEMPO.seconds(notes["onset_quarter"] + notes["duration_quarter"]) - onset
    )
    assert set(played["velocity"]) == {64}
    assert played["id"].tolist() == notes["id"].tolist()


@given(scores, st.one_of(styles, hands), seeds)
def test_order_within_a_voice_is_kept_and_every_note_is_heard(
    notes: np.ndarray, style: Expression, seed: int
) -> None:
    played = perform(notes, TEMPO, style, rng(seed))
    for voice in set(notes["voice"]):
        mine = notes["voice"] == voice
        before = notes["onset_quarter"][mine][:, None] < notes["onset_quarter"][mine][None, :]
        assert (played["onset_sec"][mine][:, None] < played["onset_sec"][mine][None, :])[before].all()
    assert (played["duration_sec"] > 0).all()
    assert (played["sounding_sec"] > 0).all()
    assert ((played["velocity"] >= 1) & (played["velocity"] <= 127)).all()


@given(scores, st.floats(0.25, 4.0), seeds)
def test_the_tempo_factor_divides_all_times(notes: np.ndarray, factor: float, seed: int) -> None:
    plain = perform(notes, TEMPO, Expression(rubato=0.2), rng(seed))
    fast = perform(notes, TEMPO, Expression(rubato=0.2, tempo_factor=factor), rng(seed))
    for field in ("onset_sec", "duration_sec"):
        np.testing.assert_allclose(fast[field] * factor, plain[field], rtol=1e-9, atol=1e-9)


@given(scores, styles, seeds)
def test_notes_written_together_stay_within_the_spread(
    notes: np.ndarray, style: Expression, seed: int
) -> None:
    played = perform(notes, TEMPO, style, rng(seed))
    for quarter in set(notes["onset_quarter"]):
        onsets = played["onset_sec"][notes["onset_quarter"] == quarter]
        assert np.ptp(onsets) <= style.chord_spread_sec + 4 * style.jitter_sec + 1e-9


def test_the_same_seed_plays_the_same_and_another_differs() -> None:
    notes = score([(60 + i, i / 2, 0.5, 0, 1) for i in range(20)])
    first, again, other = (perform(notes, TEMPO, LIVELY, rng(seed)) for seed in (1, 1, 2))
    assert first.tobytes() == again.tobytes()
    assert (first["onset_sec"] != other["onset_sec"]).any()


def test_one_amount_leaves_the_draws_of_the_others() -> None:
    notes = score([(60 + i, i / 2, 0.5, 0, 1) for i in range(20)])
    soft, loud = (perform(notes, TEMPO, replace(LIVELY, dynamics=d), rng(3)) for d in (0.0, 20.0))
    np.testing.assert_array_equal(soft["onset_sec"], loud["onset_sec"])
    assert (soft["velocity"] != loud["velocity"]).any()


def test_hands_leave_the_draws_of_the_others() -> None:
    notes = score([(60 + i, i / 2, 0.5, 0, 1) for i in range(20)])
    plain, voiced = (perform(notes, TEMPO, replace(LIVELY, hands_sec=h), rng(3)) for h in (0.0, 0.1))
    assert plain.tobytes() == voiced.tobytes()  # on one staff there is one hand
    # Hands draw from a stream of their own: this is what was played before there were any.
    before_sec = [0.022790232101852426, 0.19838778818934683, 0.5299465946468576]
    np.testing.assert_allclose(plain["onset_sec"][:3], before_sec, rtol=1e-9)
    assert plain["velocity"][:3].tolist() == [37, 47, 39]


def test_rubato_bends_the_tempo_by_about_its_amount() -> None:
    notes = score([(60, float(i), 1.0, 0, 1) for i in range(4000)])
    played = perform(notes, WrittenTempo((0.0,), (60.0,)), Expression(rubato=0.1, rubato_quarter=1.0), rng())
    log_tempo = -np.log(np.diff(played["onset_sec"]))
    # the mean of a linear interpolation between two N(0, 0.1) turning points over one quarter
    assert 0.06 < log_tempo.std() < 0.1
    assert abs(log_tempo.mean()) < 0.01


def test_grace_notes_are_played_before_the_beat() -> None:
    # at 60, a quarter is a second: the grace notes share 2 x 0.08 s before second 1, the main note stays
    notes = score([(60, 0, 1, 0, 1), (62, 1, 0, 2, 1), (64, 1, 0, 1, 1), (65, 1, 1, 0, 1)])
    played = perform(notes, WrittenTempo((0.0,), (60.0,)), Expression(), rng())
    np.testing.assert_allclose(played["onset_sec"], [0.0, 0.84, 0.92, 1.0])
    np.testing.assert_allclose(played["duration_sec"][1:3], 0.08)


def test_crowded_grace_notes_take_half_the_time_since_the_previous_onset() -> None:
    notes = score([(60, 0, 0.125, 0, 1), (62, 0.125, 0, 2, 1), (64, 0.125, 0, 1, 1), (65, 0.125, 1, 0, 1)])
    played = perform(notes, WrittenTempo((0.0,), (60.0,)), Expression(), rng())
    np.testing.assert_allclose(played["onset_sec"], [0.0, 0.0625, 0.09375, 0.125])


def test_a_pedal_span_prolongs_what_is_released_in_it() -> None:
    notes = score([(60, 0, 1, 0, 1), (64, 0, 2, 0, 1)])
    played = perform(notes, WrittenTempo((0.0,), (60.0,)), Expression(pedal=1.0, pedal_quarter=1.5), rng())
    # released at 1 s in the span 0..1.5, and at 2 s in the span 1.5..3
    np.testing.assert_allclose(played["duration_sec"], [1.0, 2.0])
    np.testing.assert_allclose(played["sounding_sec"], [1.5, 3.0])


def test_a_half_pedal_lets_notes_ring_for_a_part_of_the_time_until_it_comes_up() -> None:
    notes = score([(60, float(i), 0.5, 0, 1) for i in range(200)])
    tempo = WrittenTempo((0.0,), (60.0,))
    dry, half, full = (
        perform(notes, tempo, Expression(pedal=pedal, pedal_quarter=1.0, half_pedal=share), rng())
        for pedal, share in ((0.0, 0.0), (1.0, 1.0), (1.0, 0.0))
    )
    np.testing.assert_allclose(dry["sounding_sec"], 0.5)
    np.testing.assert_allclose(
        full["sounding_sec"], 1.0
    )  # pressed until 0.5, and the pedal until the next beat
    rung = (half["sounding_sec"] - 0.5) / 0.5
    assert rung.min() >= 0.1
    assert rung.max() <= 0.6
    assert 0.3 < rung.mean() < 0.4


def test_the_highest_note_is_louder_and_comes_before_the_others_of_its_hand() -> None:
    notes = score([(pitch, float(i), 1.0, 0, 1) for i in range(100) for pitch in (48, 55, 60, 72)])
    notes["staff"] = [staff for _ in range(100) for staff in (2, 2, 1, 1)]
    played = perform(notes, WrittenTempo((0.0,), (60.0,)), Expression(lead_sec=0.02, voicing=10.0), rng())
    late = played["onset_sec"].reshape(100, 4) - np.arange(100)[:, None]
    assert (late[:, :3] == 0).all()
    assert (late[:, 3] <= 0).all()
    assert -0.025 < late[:, 3].mean() < -0.015
    assert played["velocity"].reshape(100, 4).tolist() == [[64, 64, 64, 74]] * 100


def test_a_melody_of_single_notes_is_louder_than_the_chords_below_it() -> None:
    notes = score([(48, 0, 1, 0, 1), (55, 0, 1, 0, 1), (76, 0, 1, 0, 2)])
    notes["staff"] = [2, 2, 1]
    played = perform(notes, WrittenTempo((0.0,), (60.0,)), Expression(lead_sec=0.02, voicing=10.0), rng())
    assert played["velocity"].tolist() == [64, 64, 74]
    assert played["onset_sec"].tolist() == [0, 0, 0]


@pytest.mark.parametrize("pitch", [70, 74])
def test_grace_notes_make_no_chord(pitch: int) -> None:
    notes = score([(60, 0, 1, 0, 1), (pitch, 1, 0, 1, 1), (72, 1, 1, 0, 1)])
    played = perform(notes, WrittenTempo((0.0,), (60.0,)), Expression(lead_sec=0.02, voicing=10.0), rng())
    assert played["velocity"].tolist() == [64, 64, 64]
    np.testing.assert_allclose(played["onset_sec"], [0, 0.92, 1])


def test_hands_are_apart_by_about_their_amount_and_each_stays_together() -> None:
    notes = score([(pitch, float(i), 1.0, 0, 1) for i in range(2000) for pitch in (48, 55, 60, 72)])
    notes["staff"] = [staff for _ in range(2000) for staff in (2, 2, 1, 1)]
    played = perform(notes, WrittenTempo((0.0,), (60.0,)), Expression(hands_sec=0.05), rng())
    late = played["onset_sec"].reshape(2000, 4) - np.arange(2000)[:, None]
    assert (late[:, 2:] == 0).all()
    assert (late[:, 0] == late[:, 1]).all()
    # a normal distribution that is clipped at two standard deviations has 0.96 of its spread
    assert 0.044 < late[:, 0].std() < 0.052
    assert 0.1 < np.corrcoef(late[:-1, 0], late[1:, 0])[0, 1] < 0.3


def test_the_only_note_of_an_onset_and_voices_on_one_staff_are_left_alone() -> None:
    notes = score([(60 + i, float(i), 1.0, 0, 1) for i in range(20)])
    style = Expression(lead_sec=0.02, hands_sec=0.05, voicing=10.0)
    played = perform(notes, WrittenTempo((0.0,), (60.0,)), style, rng())
    np.testing.assert_array_equal(played["onset_sec"], np.arange(20.0))
    assert set(played["velocity"]) == {64}


def test_striking_a_key_again_ends_its_sound() -> None:
    notes = score([(60, 0, 4, 0, 1), (60, 1, 1, 0, 2)])
    played = perform(notes, WrittenTempo((0.0,), (60.0,)), Expression(), rng())
    np.testing.assert_allclose(played["sounding_sec"], [1.0, 1.0])


def test_marks_are_followed_as_far_as_asked() -> None:
    notes = score([(60, 0, 1, 0, 1)])
    notes["velocity"], notes["held"] = 104, 0.25
    half = perform(notes, WrittenTempo((0.0,), (60.0,)), Expression(marks=0.5), rng())
    assert half["velocity"].tolist() == [84]
    np.testing.assert_allclose(half["duration_sec"], [0.5])


def test_no_notes_give_no_performance() -> None:
    assert len(perform(np.zeros(0, dtype=SCORE_NOTE_DTYPE), TEMPO, LIVELY, rng())) == 0


@given(seeds)
@settings(max_examples=30)
def test_drawn_expressions_stay_within_their_limits(seed: int) -> None:
    limits = replace(LIVELY, tempo_factor=1.5, lead_sec=0.03, hands_sec=0.1, voicing=20.0, half_pedal=0.5)
    drawn = draw_expression(limits, rng(seed))
    assert 1 / 1.5 <= drawn.tempo_factor <= 1.5
    assert all(getattr(drawn, name) == getattr(limits, name) for name in KEPT)
    chosen = {field.name for field in fields(Expression)} - KEPT - {"tempo_factor"}
    for name in chosen:
        assert 0 <= getattr(drawn, name) <= getattr(limits, name)


@pytest.mark.parametrize(
    "bad", [{"rubato": -0.1}, {"tempo_factor": 0.0}, {"pedal": 1.5}, {"jitter_sec": float("nan")}]
)
def test_impossible_amounts_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(bad))):
        Expression(**bad)
