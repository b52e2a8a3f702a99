"""What is said about the pitch of a recording."""

import numpy as np
import pytest

from fusili_mir.alignment.recording_pitch import RecordingPitch
from fusili_mir.audio.pitch_curve import PitchCurve


def found(cents: float, written_cents: float = 0.0) -> RecordingPitch:
    return RecordingPitch(PitchCurve.constant(cents), "found", written_cents)


@pytest.mark.parametrize(
    ("cents", "text"),
    [
        (0.0, "sounds at the pitch of the score (A = 440.0 Hz)"),
        (4.0, "sounds at the pitch of the score (A = 441.0 Hz)"),
        (-212.0, "sounds 2 semitones and 12 cents below the score (A = 389.3 Hz)"),
        (101.0, "sounds 1 semitone and 1 cent above the score (A = 466.4 Hz)"),
        (300.0, "sounds 3 semitones above the score (A = 523.3 Hz)"),
        (-20.0, "sounds 20 cents below the score (A = 434.9 Hz)"),
        (68.0, "sounds 68 cents above the score (A = 457.6 Hz)"),
        (-98.0, "sounds 1 semitone less 2 cents below the score (A = 415.8 Hz)"),
        (-1200.0, "sounds 1 octave below the score (A = 220.0 Hz)"),
        (-1388.0, "sounds 1 octave, 2 semitones less 12 cents below the score (A = 197.4 Hz)"),
        (180.0, "sounds 2 semitones less 20 cents above the score (A = 488.2 Hz)"),
    ],
)
def test_pitch_is_told_in_semitones_and_cents(cents: float, text: str) -> None:
    assert found(cents).text == text


def test_a4_is_where_the_a_of_the_score_sounds() -> None:
    assert found(1200 * np.log2(415 / 440)).a4_hz == pytest.approx(415.0)


def test_small_shifts_are_told_but_not_applied_unless_they_were_asked_for() -> None:
    assert found(7.0).above_pages is None
    applied = found(-12.0).above_pages
    assert applied is not None
    assert applied.cents.tolist() == [-12.0]
    given = RecordingPitch(PitchCurve.constant(7.0), "given").above_pages
    assert given is not None
    assert given.cents.tolist() == [7.0]


def test_a_transposing_score_sounds_away_from_its_pages() -> None:
    clarinet = found(1.0, written_cents=-200.0)
    assert clarinet.above_pages is not None
    assert clarinet.above_pages.cents.tolist() == [-199.0]
    assert clarinet.text.startswith(
        "sounds at the pitch of the score, which sounds 2 semitones below what is written"
    )


def test_a_drift_is_told_with_its_curve() -> None:
    curve = PitchCurve(np.array([0.0, 60.0, 120.0]), np.array([0.0, 20.0, 40.0]))
    pitch = RecordingPitch(curve, "found")
    assert pitch.text == "sounds 20 cents above the score, rising by 40 cents (A = 445.1 Hz)"
    assert pitch.to_json()["curve"] == {"seconds": [0.0, 60.0, 120.0], "cents": [0.0, 20.0, 40.0]}
    assert found(5.0).to_json()["curve"] is None
