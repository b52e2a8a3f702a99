"""The tuning of a recording, and how it drifts."""

import numpy as np
import pytest

from fusili_mir.arrays import Float32, Float64
from fusili_mir.audio.pitch_curve import PitchCurve, Retuning
from fusili_mir.audio.spectral_peaks import find_peaks
from fusili_mir.audio.tuning import Tuning, estimate_tuning, follow_tuning

RATE_HZ = 16_000
SCALE = (0, 2, 4, 5, 7, 9, 11, 12)


def melody(
    a4_hz: float = 440.0,
    n_notes: int = 40,
    vibrato_cents: float = 0.0,
    partials: int = 6,
    note_sec: float = 0.5,
    seed: int = 0,
) -> Float32:
    """Play notes of a scale at random, with partials that become weaker."""
    rng = np.random.default_rng(seed)
    time_sec = np.arange(round(note_sec * RATE_HZ)) / RATE_HZ
    notes = []
    for _ in range(n_notes):
        vibrato = vibrato_cents * np.sin(2 * np.pi * (5.5 * time_sec + rng.uniform()))
        cents = 100.0 * (rng.choice(SCALE) - 9) + vibrato
        phase = 2 * np.pi * np.cumsum(a4_hz * 2 ** (cents / 1200)) / RATE_HZ
        notes.append(sum(np.sin(n * phase) / n for n in range(1, partials + 1)) * np.exp(-time_sec))
    return np.asarray(np.concatenate(notes), dtype=np.float32)


def tuning_of(sound: Float32) -> Tuning:
    return estimate_tuning(find_peaks([sound], RATE_HZ))


# 1200 * log2(hz / 440), to the nearest semitone: 392 Hz is -199.98, 415 is -101.27, 430 is -39.80, 466 is +99.42
@pytest.mark.parametrize(
    ("a4_hz", "cents"),
    [
        (440.0, 0.0),
        (442.0, 7.85),
        (432.0, -31.77),
        (430.0, -39.80),
        (415.0, -1.27),
        (392.0, 0.02),
        (466.0, -0.58),
    ],
)
def test_the_tuning_is_what_instruments_are_tuned_to(a4_hz: float, cents: float) -> None:
    found = tuning_of(melody(a4_hz))
    assert found.cents == pytest.approx(cents, abs=2.0)
    assert found.is_clear


def test_a_quarter_tone_may_be_above_or_below() -> None:
    found = tuning_of(melody(440 * 2 ** (50 / 1200)))
    assert abs(found.cents) == pytest.approx(50.0, abs=2.0)


@pytest.mark.parametrize("vibrato_cents", [20.0, 50.0, 70.0])
def test_vibrato_does_not_move_it(vibrato_cents: float) -> None:
    found = tuning_of(melody(440 * 2 ** (17 / 1200), vibrato_cents=vibrato_cents))
    assert found.cents == pytest.approx(17.0, abs=5.0)
    assert found.is_clear


def test_partials_between_the_semitones_hardly_count() -> None:
    # The third partial is 2 cents above a semitone, the fifth 14 and the seventh 31 cents below.
    assert tuning_of(melody(440.0, partials=1)).cents == pytest.approx(0.0, abs=0.5)
    assert tuning_of(melody(440.0, partials=10)).cents == pytest.approx(0.0, abs=2.0)


@pytest.mark.parametrize("seconds", [5.0, 60.0])
def test_noise_has_no_tuning(seconds: float) -> None:
    noise = np.random.default_rng(1).standard_normal(round(seconds * RATE_HZ)).astype(np.float32)
    assert not tuning_of(noise).is_clear


def test_silence_and_clicks_have_no_tuning() -> None:
    assert estimate_tuning(find_peaks([np.zeros(50_000, np.float32)], RATE_HZ)) == Tuning(0.0, 1.0)
    assert estimate_tuning(find_peaks([np.zeros(100, np.float32)], RATE_HZ)) == Tuning(0.0, 1.0)


def drifting(sound: Float32, cents: tuple[float, float]) -> tuple[Float32, PitchCurve]:
    """Raise the pitch of a sound from one value to another; also returns how it then runs."""
    length_sec = len(sound) / RATE_HZ
    slower = PitchCurve(np.array([0.0, length_sec]), -np.array(cents))
    retuning = Retuning(slower, len(sound), RATE_HZ)
    read = np.concatenate(list(retuning.read([sound])))
    edges_sec = np.linspace(0.0, length_sec, 200)
    return read, PitchCurve(retuning.to_read_sec(edges_sec), -slower.at(edges_sec))


@pytest.mark.parametrize("cents", [(0.0, 40.0), (30.0, -30.0), (20.0, 90.0)])
def test_a_drift_is_followed_to_within_a_few_cents(cents: tuple[float, float]) -> None:
    sound, truth = drifting(melody(n_notes=480), cents)  # 4 minutes
    found = follow_tuning(find_peaks([sound], RATE_HZ))
    assert found is not None
    seconds: Float64 = np.linspace(5.0, len(sound) / RATE_HZ - 5.0, 50)
    error = found.at(seconds) - truth.at(seconds)
    error -= 100 * np.round(error.mean() / 100)
    assert np.abs(error).max() < 4.0


def test_what_does_not_drift_is_not_said_to() -> None:
    assert follow_tuning(find_peaks([melody(432.0, n_notes=240)], RATE_HZ)) is None
    assert follow_tuning(find_peaks([melody(n_notes=240, vibrato_cents=60.0)], RATE_HZ)) is None


def test_neither_noise_nor_a_short_recording_drifts() -> None:
    noise = np.random.default_rng(0).standard_normal(120 * RATE_HZ).astype(np.float32)
    assert follow_tuning(find_peaks([noise], RATE_HZ)) is None
    short, _ = drifting(melody(n_notes=100), (0.0, 40.0))
    assert follow_tuning(find_peaks([short], RATE_HZ)) is None
    assert follow_tuning(find_peaks([np.zeros(0, np.float32)], RATE_HZ)) is None
