from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusili_mir.arrays import Float32, Float64
from fusili_mir.audio.envelope_meter import EnvelopeMeter
from fusili_mir.audio.sound_envelope import FrameSound, SoundEnvelope
from fusili_mir.geometry import FrameGrid

RATE_HZ = 16_000
REACH_SEC = 0.07


def envelope_of(samples: Float64, rate_hz: int = RATE_HZ, cuts: Sequence[int] = ()) -> SoundEnvelope:
    """Measure samples, cut into blocks."""
    meter = EnvelopeMeter(rate_hz)
    blocks = np.split(samples.astype(np.float32), sorted(cuts))
    for block in blocks:
        meter.see(block)
    return meter.envelope()


def notes(
    onsets_sec: Sequence[float],
    duration_sec: float,
    end_sec: float,
    rate_hz: int = RATE_HZ,
    vibrato_cents: float = 0.0,
    pitch_hz: float = 440.0,
) -> Float64:
    """Tones of four partials that set in within 3 ms and, with a vibrato, waver six times a second."""
    seconds = np.arange(round(end_sec * rate_hz)) / rate_hz
    samples = np.zeros(len(seconds))
    for onset_sec in onsets_sec:
        sounds = (seconds >= onset_sec) & (seconds < onset_sec + duration_sec)
        since = seconds[sounds] - onset_sec
        phase = (
            2
            * np.pi
            * np.cumsum(pitch_hz * 2 ** (vibrato_cents / 1200 * np.sin(12 * np.pi * since)))
            / rate_hz
        )
        loudness = 0.3 * np.clip(np.minimum(since / 0.003, (duration_sec - since) / 0.02), 0, 1)
        samples[sounds] += loudness * sum(np.sin(partial * phase) / partial for partial in (1, 2, 3, 4))
    return samples


def noise(n_samples: int, level: float = 1.0) -> Float64:
    return level * np.random.default_rng(0).normal(size=n_samples)


def around(values: Float32, second: float, reach: int = 3) -> Float32:
    """The values within `reach` steps of a second."""
    step = round(second / 0.01)
    return values[max(0, step - reach) : step + reach + 1]


def drum(onset_sec: float, end_sec: float, rate_hz: int) -> Float64:
    """Noise that sets in at once and dies away."""
    since = np.arange(round(end_sec * rate_hz)) / rate_hz - onset_sec
    return noise(len(since)) * np.where(since >= 0, np.exp(-since / 0.1), 0.0)


@pytest.mark.parametrize("rate_hz", [16_000, 22_050, 48_000])
@pytest.mark.parametrize("is_drum", [True, False])
def test_a_sudden_sound_is_found_within_12_ms_and_always_equally_early(is_drum: bool, rate_hz: int) -> None:
    # A window of 60 ms sees it early; a slow attack, as on a piano, is seen later.
    moments_sec = np.array([-0.05, -0.03, 0.0, 0.03, 0.05])  # where the search starts
    errors_sec = []
    for onset_sec in (0.5, 0.503, 0.5061, 1.2345):
        samples = drum(onset_sec, 3.0, rate_hz) if is_drum else notes([onset_sec], 1.0, 3.0, rate_hz)
        found_sec = envelope_of(samples, rate_hz).nearest_onset(onset_sec + moments_sec, REACH_SEC)
        errors_sec.append(found_sec - onset_sec)
    assert np.abs(errors_sec).max() < 0.012
    assert np.ptp(errors_sec) < 0.003


def test_a_sound_that_swells_within_a_tenth_of_a_second_is_found_while_it_swells() -> None:
    seconds = np.arange(3 * RATE_HZ) / RATE_HZ
    tone = np.clip((seconds - 1) / 0.1, 0, 1) * np.sin(2 * np.pi * 440 * seconds)
    (found_sec,) = envelope_of(tone).nearest_onset(np.array([1.0]), REACH_SEC)
    assert 0.98 <= found_sec <= 1.1


def test_a_moment_without_an_onset_nearby_stays_where_it_is() -> None:
    envelope = envelope_of(notes([0.5, 1.0, 1.5, 2.0], 0.48, 3.0))
    moments_sec = np.array([0.2, 0.75, 1.2, 1.75, 2.3, 2.8, -1.0, 99.0])
    assert envelope.nearest_onset(moments_sec, REACH_SEC).tolist() == moments_sec.tolist()


def test_the_nearer_of_two_equally_strong_onsets_counts() -> None:
    rise = np.zeros(100, np.float32)
    rise[[40, 46]] = 1.0
    envelope = SoundEnvelope(rise, rise)
    assert envelope.nearest_onset(np.array([0.41, 0.45]), REACH_SEC) == pytest.approx([0.40, 0.46])
    rise[46] = 10.0
    assert SoundEnvelope(rise, rise).nearest_onset(np.array([0.41]), REACH_SEC) == pytest.approx([0.46])


def test_an_onset_lies_at_the_top_of_the_parabola_through_three_steps() -> None:
    steps = np.arange(100)
    rise = np.maximum(0.0, 4 - (steps - 50.3) ** 2).astype(np.float32)
    found_sec = SoundEnvelope(rise, rise).nearest_onset(np.array([0.48]), REACH_SEC)
    assert found_sec == pytest.approx([0.503], abs=1e-6)


def test_moving_a_recording_by_whole_steps_moves_its_onsets() -> None:
    tune = notes([0.5, 1.1, 1.7], 0.5, 3.0)
    later = np.concatenate((np.zeros(8 * RATE_HZ // 100), tune))
    onsets_sec = np.array([0.52, 1.12, 1.72])
    assert envelope_of(later).nearest_onset(onsets_sec + 0.08, REACH_SEC) == pytest.approx(
        envelope_of(tune).nearest_onset(onsets_sec, REACH_SEC) + 0.08, abs=1e-4
    )


def test_every_repetition_of_a_note_is_an_onset() -> None:
    onsets_sec = 0.5 + 0.4 * np.arange(10.0)
    envelope = envelope_of(notes(onsets_sec.tolist(), 0.38, 5.0) + noise(5 * RATE_HZ, 1e-4))
    found_sec = envelope.nearest_onset(onsets_sec + 0.03, REACH_SEC)
    assert found_sec == pytest.approx(onsets_sec, abs=0.012)
    assert all(around(envelope.nats, onset_sec).max() == 2.0 for onset_sec in onsets_sec)


@pytest.mark.parametrize("pitch_hz", [220.0, 440.0, 880.0])
def test_a_vibrato_rises_less_than_a_tenth_as_much_as_the_onset_of_its_note(pitch_hz: float) -> None:
    onset_sec = 3.0
    tones = notes([0.5, onset_sec], 2.4, 6.0, vibrato_cents=30, pitch_hz=pitch_hz)
    envelope = envelope_of(tones + noise(len(tones), 1e-4))
    inside = envelope.rise[round((onset_sec + 0.2) * 100) : round((onset_sec + 2.3) * 100)]
    assert inside.max() < 0.1 * around(envelope.rise, onset_sec).max()


@pytest.mark.parametrize("level", [1e-3, 30.0])
def test_the_level_of_a_recording_does_not_matter(level: float) -> None:
    samples = notes([0.5, 1.0, 1.6], 0.4, 3.0) + noise(3 * RATE_HZ, 1e-3)
    plain, scaled = envelope_of(samples), envelope_of(level * samples)
    assert scaled.nats == pytest.approx(plain.nats, abs=1e-3)
    assert scaled.level == pytest.approx(level * plain.level, rel=1e-4)
    grid = FrameGrid(75, 0.04)
    assert scaled.of_frames(grid).is_silent.tolist() == plain.of_frames(grid).is_silent.tolist()


def test_in_steady_noise_an_onset_is_about_as_likely_as_not_everywhere() -> None:
    nats = envelope_of(noise(20 * RATE_HZ)).nats[5:-5]
    assert abs(float(np.median(nats))) < 0.5
    assert np.quantile(nats, 0.99) < 0.5


def test_onsets_of_a_quiet_passage_count_as_much_as_those_of_a_loud_one() -> None:
    onsets_sec = 0.5 + 0.5 * np.arange(58)  # half a minute
    loudness = np.where(np.arange(30 * RATE_HZ) < 15 * RATE_HZ, 1.0, 0.01)
    samples = loudness * (notes(onsets_sec.tolist(), 0.45, 30.0) + noise(30 * RATE_HZ, 1e-4))
    nats = envelope_of(samples).nats
    assert min(around(nats, onset_sec).max() for onset_sec in onsets_sec if abs(onset_sec - 15) > 1) > 1.5


@pytest.mark.parametrize("background", [0.0, 1e-9])
def test_a_single_note_in_silence_is_the_only_onset(background: float) -> None:
    nats = envelope_of(notes([2.0], 0.5, 20.0) + noise(20 * RATE_HZ, background)).nats
    assert around(nats, 2.0).max() == 2.0
    assert nats[210:240].max() < 1  # while it sounds
    assert max(nats[:190].max(), nats[260:].max()) < 0


def test_silence_has_no_onsets_and_all_its_frames_are_silent() -> None:
    envelope = envelope_of(np.zeros(RATE_HZ))
    assert not envelope.nats.any()
    assert envelope.of_frames(FrameGrid(25, 0.04)).is_silent.all()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 8000), max_size=12), st.integers(0, 8000))
def test_blocks_cut_anywhere_give_the_same_envelope(cuts: list[int], n_samples: int) -> None:
    samples = noise(n_samples)
    whole = envelope_of(samples)
    in_blocks = envelope_of(samples, cuts=[min(cut, n_samples) for cut in cuts])
    np.testing.assert_allclose(in_blocks.rise, whole.rise, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(in_blocks.level, whole.level, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("rate_hz", [16_000, 22_050, 48_000])
@pytest.mark.parametrize("n_samples", [0, 1, 100, 219, 220, 480, 959, 960, 961, 3000])
def test_the_shortest_recordings_have_one_step_per_hundredth_of_a_second(
    n_samples: int, rate_hz: int
) -> None:
    envelope = envelope_of(np.full(n_samples, 0.1), rate_hz)
    step = {16_000: 160, 22_050: 220, 48_000: 480}[rate_hz]
    assert len(envelope.rise) == len(envelope.level) == n_samples // step + 1
    assert envelope.step_sec == step / rate_hz
    assert np.isfinite(envelope.nats).all()
    assert np.isfinite(envelope.nearest_onset(np.array([-1.0, 0.0, 0.01, 5.0]), REACH_SEC)).all()
    assert envelope.of_frames(FrameGrid(3, 0.04)).is_silent.shape == (3,)


def test_the_level_is_the_root_mean_square_of_a_step() -> None:
    samples = np.where(np.arange(RATE_HZ) < RATE_HZ // 2, 0.5, -0.25)
    level = envelope_of(samples).level
    assert level[[10, 30, 70, 90]] == pytest.approx([0.5, 0.5, 0.25, 0.25])
    assert level[50] == pytest.approx(np.sqrt((0.5**2 + 0.25**2) / 2))  # half of either


def test_frames_40_db_below_the_loud_parts_and_those_after_the_end_are_silent() -> None:
    level = np.repeat(np.array([1.0, 0.02, 0.009, 0.0, 1.0], np.float32), 10)
    envelope = SoundEnvelope(np.ones(50, np.float32), level)
    sound = envelope.of_frames(FrameGrid(7, 0.1, start_sec=0.045))  # middles just before borders
    assert sound.is_silent.tolist() == [False, False, True, True, False, True, True]


def test_sounding_frames_are_all_but_the_silent_ones_or_all_if_every_one_is_silent() -> None:
    assert FrameSound(np.array([True, False, False])).sounding.tolist() == [1, 2]
    assert FrameSound(np.array([True, True, True])).sounding.tolist() == [0, 1, 2]


def test_nothing_begins_where_a_note_is_cut_off() -> None:
    onsets_sec = 0.5 + 1.0 * np.arange(5)
    samples = notes(onsets_sec.tolist(), 0.5, 6.0) + noise(6 * RATE_HZ, 1e-4)
    rise = envelope_of(samples).rise
    begins, ends = (
        np.array([around(rise, second, 5).max() for second in onsets_sec + since]) for since in (0.0, 0.5)
    )
    assert ends.max() < 0.1 * begins.min()
