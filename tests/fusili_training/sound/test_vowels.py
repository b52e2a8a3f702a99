import numpy as np
import pytest

from fusili_training.sound.vowels import PITCH_RANGES, REGISTERS, draw_vowel, formant_gain, tuned_to_pitch


@pytest.mark.parametrize("register", REGISTERS)
def test_a_vocal_tract_resonates_at_its_formants(register: str) -> None:
    hz = np.linspace(100, 6000, 1181)  # 5 Hz apart
    for seed in range(5):
        vowel = draw_vowel(register, np.random.default_rng(seed))  # type: ignore[arg-type]
        gain = formant_gain(hz, vowel.hz, vowel.db, vowel.width_hz)
        first = np.argmin(np.abs(hz - vowel.hz[0]))
        assert abs(hz[np.argmax(gain)] - vowel.hz[0]) < 40
        assert gain[first] == pytest.approx(1.0, abs=0.3)
        assert gain[hz > 5500].max() < 0.1


def test_the_first_formant_follows_pitches_above_it() -> None:
    assert tuned_to_pitch(np.array([400.0, 400.0]), np.array([300.0, 800.0])).tolist() == [400.0, 824.0]


def test_every_note_of_a_song_can_be_sung_by_somebody() -> None:
    reached = {pitch for low, high in PITCH_RANGES.values() for pitch in range(low, high + 1)}
    assert reached == set(range(38, 87))
