from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusili_mir.arrays import Float32, Float64
from fusili_mir.audio.attack_map import N_PITCHES, AttackMap, pitch_index
from fusili_mir.audio.attack_meter import AttackMeter
from fusili_mir.audio.envelope_meter import EnvelopeMeter

RATE_HZ = 16_000


def tone(
    pitch: float, onset_sec: float, end_sec: float, rate_hz: int = RATE_HZ, until_sec: float = np.inf
) -> Float64:
    """A struck tone: partials below 7 kHz, the higher the fainter, set in within 3 ms and die away."""
    since = np.arange(round(end_sec * rate_hz)) / rate_hz - onset_sec
    hertz = 440 * 2 ** ((pitch - 69) / 12)
    waves = [0.7**k * np.sin(2 * np.pi * (k + 1) * hertz * since) for k in range(8) if (k + 1) * hertz < 7000]
    loudness = 0.1 * np.clip(since / 0.003, 0, 1) * np.exp(-np.maximum(since, 0) / 0.5)
    return np.where(since < until_sec - onset_sec, loudness * np.sum(waves, axis=0), 0.0)


def noise(n_samples: int, level: float = 1e-4) -> Float64:
    return level * np.random.default_rng(0).normal(size=n_samples)


def attacks_of(
    samples: Float64,
    rate_hz: int = RATE_HZ,
    gain: float = 1.0,
    start_sec: float = 0.0,
    cents: float = 0.0,
    cuts: Sequence[int] = (),
    level: Float32 | None = None,
) -> AttackMap:
    """Measure samples, cut into blocks."""
    meter = AttackMeter(rate_hz, gain, start_sec, cents)
    blocks = np.split(samples.astype(np.float32), sorted(cuts))
    passed = np.concatenate([*meter.listen(blocks), np.zeros(0, np.float32)])
    assert passed.tolist() == samples.astype(np.float32).tolist()
    return meter.attacks(level)


def strongest(attacks: AttackMap) -> tuple[int, float]:
    """The MIDI pitch of the strongest attack, and its moment."""
    step, pitch = np.unravel_index(attacks.strength.argmax(), attacks.strength.shape)
    return int(pitch) + 21, attacks.start_sec + float(step) * attacks.step_sec


@pytest.mark.parametrize(("onset_sec", "rate_hz"), [(0.5, 16_000), (0.6137, 22_050)])
@pytest.mark.parametrize("pitch", [41, 48, 55, 60, 69, 74, 84, 91, 96])
def test_a_struck_tone_is_seen_within_20_ms_and_more_at_its_own_pitch_than_at_any_nearer_than_an_octave(
    pitch: int, onset_sec: float, rate_hz: int
) -> None:
    samples = tone(pitch, onset_sec, 1.2, rate_hz)
    attacks = attacks_of(samples + noise(len(samples)), rate_hz)
    key = int(pitch_index(pitch))
    step = int(attacks.strength[:, key].argmax())
    assert step * attacks.step_sec == pytest.approx(onset_sec, abs=0.02)
    # Octaves share its partials and may be as strong.
    assert attacks.strength[step, key - 11 : key + 12].argmax() == 11


@pytest.mark.parametrize("onset_sec", [0.5, 0.6137])
def test_a_low_tone_that_only_the_longest_window_tells_apart_is_seen_within_30_ms(onset_sec: float) -> None:
    samples = tone(36, onset_sec, 1.2)
    own = attacks_of(samples + noise(len(samples))).strength[:, pitch_index(36)]
    assert own.argmax() * 0.01 == pytest.approx(onset_sec, abs=0.03)
    assert own.max() > 1.0


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 8_000), max_size=6))
def test_the_map_does_not_depend_on_how_blocks_are_cut(cuts: list[int]) -> None:
    samples = tone(60, 0.1, 0.5) + tone(67, 0.3, 0.5) + noise(8_000)
    whole, cut = attacks_of(samples), attacks_of(samples, cuts=cuts)
    assert cut.strength.shape == whole.strength.shape == (51, N_PITCHES)
    np.testing.assert_allclose(cut.strength, whole.strength, rtol=2**-9, atol=1e-5)  # the last bit of float16


def test_a_click_raises_all_pitches_alike_and_is_not_an_attack() -> None:
    struck, click = tone(60, 0.3, 1.0), np.zeros(RATE_HZ)
    click[RATE_HZ // 2] = np.abs(struck).max()
    assert attacks_of(click).strength.max() < 0.3 * attacks_of(struck).strength.max()
    pitch, second = strongest(attacks_of(struck + click))
    assert pitch == 60
    assert second == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize("pitch", [43, 60, 84])
def test_the_second_of_two_notes_of_the_same_pitch_is_seen_again(pitch: int) -> None:
    samples = tone(pitch, 0.3, 1.4) + tone(pitch, 0.8, 1.4)
    own = attacks_of(samples + noise(len(samples))).strength[:, pitch_index(pitch)].astype(float)
    assert 70 + own[70:90].argmax() == pytest.approx(80, abs=2)
    assert own[70:90].max() > 0.3  # what is rather an onset than not
    assert own[45:70].max() < 0.1  # between the notes


def test_a_recording_that_sounds_higher_is_read_a_key_lower() -> None:
    samples = tone(61, 0.5, 1.0)
    read = [strongest(attacks_of(samples, cents=cents))[0] for cents in (-100, 0, 100, 200)]
    assert read == [62, 61, 60, 59]
    sharp = tone(60.4, 0.5, 1.0)
    assert strongest(attacks_of(sharp, cents=40))[0] == 60
    in_tune, out_of_tune = (attacks_of(sharp, cents=cents).strength[:, 39].max() for cents in (40, 0))
    assert in_tune > out_of_tune


def test_the_moment_of_the_first_sample_only_dates() -> None:
    samples = tone(60, 0.5, 1.0)
    early, late = attacks_of(samples), attacks_of(samples, start_sec=7.25)
    assert late.strength.tolist() == early.strength.tolist()
    assert (early.start_sec, late.start_sec) == (0.0, 7.25)
    assert strongest(late)[1] == pytest.approx(strongest(early)[1] + 7.25)


def test_a_sound_that_stops_abruptly_is_not_an_attack_where_the_level_is_known() -> None:
    samples = tone(60, 0.2, 1.2, until_sec=0.6037) + noise(round(1.2 * RATE_HZ))
    meter = EnvelopeMeter(RATE_HZ)
    list(meter.listen([samples.astype(np.float32)]))
    level = meter.envelope().level
    before, after = attacks_of(samples).strength, attacks_of(samples, level=level).strength
    assert before[58:65].max() > 0.3  # its end clicks
    assert after[58:65].max() < 0.01
    assert after[50:65, pitch_index(60)].max() < 0.01
    assert after[15:25].max() == before[15:25].max()  # its beginning is an attack


def test_a_quiet_recording_with_the_right_gain_has_the_same_attacks() -> None:
    samples = tone(60, 0.3, 1.0) + tone(64, 0.6, 1.0)
    loud, quiet = attacks_of(samples), attacks_of(samples / 64, gain=64.0)
    assert quiet.strength.tolist() == loud.strength.tolist()
    assert attacks_of(samples / 64).strength.max() < 0.8 * loud.strength.max()


@pytest.mark.parametrize(("n_samples", "n_steps"), [(0, 1), (1, 1), (159, 1), (160, 2), (1600, 11)])
def test_a_recording_shorter_than_a_window_has_a_map(n_samples: int, n_steps: int) -> None:
    attacks = attacks_of(noise(n_samples, 0.1), level=np.ones(n_steps, np.float32))
    assert attacks.strength.shape == (n_steps, N_PITCHES)
    assert np.isfinite(attacks.strength).all()


def test_silence_has_no_attacks() -> None:
    assert not attacks_of(np.zeros(RATE_HZ)).strength.any()
