from dataclasses import replace

import numpy as np
import pytest

from fusili_mir.errors import InputError
from fusili_training.sound.notes import PERFORMED_DTYPE
from fusili_training.sound.played_clip import pack_clip, play_clip, to_16_bit
from fusili_training.sound.singing import Singer, draw_singer, read_singer
from fusili_training.sound.sung_line import FRAME_SEC, Traits, draw_traits, shape_line
from fusili_training.sound.synthesis import synthesise
from fusili_training.sound.vowels import REGISTERS

RATE_HZ = 16_000


def notes_of(*rows: tuple[float, float, int], velocity: int = 64) -> np.ndarray:
    """Rows of (onset_sec, duration_sec, pitch)."""
    notes = np.zeros(len(rows), PERFORMED_DTYPE)
    for row, (onset_sec, duration_sec, pitch) in enumerate(rows):
        notes[row]["onset_sec"], notes[row]["pitch"], notes[row]["velocity"] = onset_sec, pitch, velocity
        notes[row]["duration_sec"] = notes[row]["sounding_sec"] = duration_sec
    return notes


def measured_pitch(samples: np.ndarray, near: int) -> float:
    """MIDI pitch by autocorrelation, within half an octave of another."""
    spectrum = np.fft.rfft(samples * np.hanning(len(samples)), 4 * len(samples))
    likeness = np.fft.irfft(np.square(np.abs(spectrum)))[: len(samples) // 2]
    likeness /= np.fft.irfft(np.square(np.abs(np.fft.rfft(np.hanning(len(samples)), 4 * len(samples)))))[
        : len(samples) // 2
    ]
    shortest, longest = (round(RATE_HZ / (440 * 2 ** ((near - 69 + away) / 12))) for away in (6, -6))
    lag = shortest + int(np.argmax(likeness[shortest:longest]))
    left, middle, right = likeness[lag - 1 : lag + 2]
    exact = lag + 0.5 * (left - right) / (left - 2 * middle + right)
    return float(69 + 12 * np.log2(RATE_HZ / exact / 440))


def pitch_track(samples: np.ndarray, near: int, step: int = 320, length: int = 1024) -> np.ndarray:
    return np.array(
        [measured_pitch(samples[at : at + length], near) for at in range(0, len(samples) - length, step)]
    )


@pytest.mark.parametrize(("register", "pitch"), [("soprano", 76), ("alto", 65), ("tenor", 57), ("bass", 45)])
def test_a_sung_note_has_its_pitch(register: str, pitch: int) -> None:
    for seed in range(4):
        sound = Singer(register, RATE_HZ, seed).sing(notes_of((0.2, 2.0, pitch)), 2.5)  # type: ignore[arg-type]
        track = pitch_track(sound[round(0.5 * RATE_HZ) : round(2.1 * RATE_HZ)], pitch)
        assert abs(track.mean() - pitch) < 0.2  # semitones; vibrato goes as far up as down


def test_vibrato_has_the_rate_and_the_depth_of_the_singer() -> None:
    for seed in range(6):
        traits = draw_traits("tenor", seed, 0, 1)
        if traits.vibrato_cents < 20:
            continue
        sound = Singer("tenor", RATE_HZ, seed).sing(notes_of((0.0, 4.0, 60)), 4.0)
        track = pitch_track(sound[RATE_HZ : round(3.8 * RATE_HZ)], 60, step=160)
        waves = np.abs(np.fft.rfft((track - track.mean()) * np.hanning(len(track)), 4096))
        rate_hz = np.argmax(waves) * RATE_HZ / 160 / 4096
        assert rate_hz == pytest.approx(traits.vibrato_hz, rel=0.1)
        assert 0.6 < 100 * np.std(track) * np.sqrt(2) / traits.vibrato_cents < 1.5


def test_a_vowel_begins_at_the_onset_whatever_consonant_precedes_it() -> None:
    onset_sec = 0.6
    for register in REGISTERS:
        for seed in range(8):
            singer = Singer(register, RATE_HZ, seed)
            sound = singer.sing(notes_of((onset_sec, 1.0, 57)), 1.8)
            envelope = np.sqrt(np.convolve(np.square(sound), np.ones(160) / 160, "same"))  # of 10 ms
            steady = np.median(envelope[round(0.75 * RATE_HZ) : round(1.4 * RATE_HZ)])
            risen_sec = np.argmax(envelope > 0.7 * steady) / RATE_HZ
            assert onset_sec - 0.005 < risen_sec < onset_sec + 0.06, (register, seed)


def test_glides_end_at_the_onset_of_a_syllable_and_are_half_way_within_a_melisma() -> None:
    plain = replace(draw_traits("alto", 0, 0, 1), vibrato_cents=0.0, tuning_cents=0.0, glide_sec=0.12)

    def pitch_at(traits: Traits, second: float) -> float:
        frames = shape_line(notes_of((0.5, 1.0, 60), (1.5, 1.0, 67)), traits, 0.0, round(3 / FRAME_SEC))
        return float(69 + 12 * np.log2(frames.pitch_hz[round(second / FRAME_SEC)] / 440))

    syllables, melisma = replace(plain, melisma=0.0), replace(plain, melisma=1.0)
    assert pitch_at(syllables, 1.5) == pytest.approx(67, abs=0.3)
    assert pitch_at(melisma, 1.5) == pytest.approx(63.5, abs=0.7)
    for traits in (syllables, melisma):
        assert pitch_at(traits, 1.3) == pytest.approx(60, abs=0.3)
        assert pitch_at(traits, 1.7) == pytest.approx(67, abs=0.3)


def test_a_pitch_that_is_sung_twice_is_heard_twice() -> None:
    for seed in range(12):
        traits = replace(draw_traits("tenor", seed, 0, 1), melisma=1.0)
        frames = shape_line(notes_of((0.2, 0.5, 57), (0.7, 0.5, 57)), traits, 0.0, round(1.5 / FRAME_SEC))
        around = frames.level[round(0.55 / FRAME_SEC) : round(0.72 / FRAME_SEC)]
        assert around.min() < 0.45 * around.max()


def test_the_same_singer_sings_the_same_and_others_do_not() -> None:
    notes = notes_of((0.1, 0.5, 60), (0.6, 0.5, 64), (1.4, 0.4, 62))
    first, again, other = (Singer("alto", RATE_HZ, seed).sing(notes, 2.0) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.allclose(first, other, atol=1e-3)
    choir = Singer("soprano", 8000, 12345, 3)
    assert read_singer(choir.name) == choir


def test_a_note_without_a_duration_is_sung_as_a_finite_sound() -> None:
    assert np.isfinite(Singer("alto", 16_000, 7).sing(notes_of((0.5, 0.0, 67)), 1.0)).all()


def test_notes_that_sound_together_are_sung_by_several_voices() -> None:
    sound = Singer("tenor", RATE_HZ, 4).sing(notes_of((0.0, 2.0, 57), (0.0, 2.0, 61)), 2.0)
    spectrum = np.abs(np.fft.rfft(sound[RATE_HZ // 2 :] * np.hanning(len(sound) - RATE_HZ // 2)))
    hz = np.fft.rfftfreq(len(sound) - RATE_HZ // 2, 1 / RATE_HZ)
    between = spectrum[(hz > 235) & (hz < 255)].max()
    for fundamental_hz in (220.0, 277.2):
        assert spectrum[np.abs(hz - fundamental_hz) < 15].max() > 2 * between


def test_forte_is_louder_and_brighter_than_piano() -> None:
    soft, loud = (
        Singer("bass", RATE_HZ, 2).sing(notes_of((0.0, 1.5, 48), velocity=v), 1.5) for v in (40, 100)
    )
    assert np.sqrt(np.mean(loud**2)) == pytest.approx((100 / 40) ** 2 * np.sqrt(np.mean(soft**2)), rel=0.2)

    def high_share(sound: np.ndarray) -> float:
        power = np.square(np.abs(np.fft.rfft(sound)))
        return float(power[np.fft.rfftfreq(len(sound), 1 / RATE_HZ) > 2000].sum() / power.sum())

    assert high_share(loud) > 2 * high_share(soft)


def test_a_loud_choir_stays_within_full_scale() -> None:
    rows = [(0.3 * step, 0.5, pitch) for step in range(6) for pitch in (48, 55, 60, 64)]
    clip = synthesise(notes_of(*rows, velocity=127), {0: Singer("tenor", RATE_HZ, 1, 5)}, 2.5)
    assert 0.5 < np.abs(clip).max() <= 1.0


def test_a_clip_that_is_kept_as_notes_is_sung_again_as_it_was() -> None:
    notes, singer = notes_of((10.2, 0.6, 60), (10.8, 0.6, 65)), Singer("soprano", RATE_HZ, 7)
    sung = synthesise(notes, {0: singer}, 2.0, 10.0)
    again, rate_hz = play_clip(pack_clip(notes, {0: singer}, 2.0, 10.0), "no banks")
    assert rate_hz == RATE_HZ
    assert np.array_equal(again, to_16_bit(sung))


def test_singers_are_drawn_who_can_reach_the_notes() -> None:
    rng = np.random.default_rng(0)
    assert {draw_singer(np.arange(70, 85), RATE_HZ, rng).register for _ in range(20)} == {"soprano"}
    assert {draw_singer(np.arange(40, 60), RATE_HZ, rng).register for _ in range(20)} == {"bass"}
    assert len({draw_singer(np.arange(60, 67), RATE_HZ, rng).register for _ in range(60)}) == 4


@pytest.mark.parametrize("name", ["singer-baritone-1-16000-5", "singer-alto", "singer-alto-9-16000-5"])
def test_unknown_singers_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="singer"):
        read_singer(name)
