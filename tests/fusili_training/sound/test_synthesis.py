from dataclasses import replace

import numpy as np
import pytest

from fusili_mir.errors import InputError
from fusili_training.sound.baking import cached_soundbank
from fusili_training.sound.notes import PERFORMED_DTYPE
from fusili_training.sound.soundbank import SoundBank
from fusili_training.sound.soundfonts import Soundfont
from fusili_training.sound.synthesis import synthesise

RATE_HZ = 1000


def flat_bank(samples_each: int = 2000, loop_length: int = 0) -> SoundBank:
    """Every key is a constant, so the output is the envelope."""
    return SoundBank(
        name="flat",
        licence="CC0",
        sample_rate_hz=RATE_HZ,
        velocities=(50, 100),
        samples=np.concatenate([np.full(samples_each, 1000), np.full(samples_each, 4000)]).astype(np.int16),
        start=np.repeat([[0], [samples_each]], 88, axis=1),
        length=np.full((2, 88), samples_each),
        release_db_per_sec=np.full(88, 200.0),
        loop_length=loop_length,
        gain=1e-4,
    )


def played(*rows: tuple[float, float, float, int], pitch: int = 60, part: int = 0) -> np.ndarray:
    """Rows of (onset_sec, duration_sec, sounding_sec, velocity)."""
    notes = np.zeros(len(rows), dtype=PERFORMED_DTYPE)
    for name, column in zip(
        ("onset_sec", "duration_sec", "sounding_sec", "velocity"), zip(*rows, strict=True), strict=True
    ):
        notes[name] = column
    notes["pitch"], notes["part"] = pitch, part
    return notes


def test_a_note_sounds_from_its_onset_and_fades_after_its_release() -> None:
    clip = synthesise(played((0.5, 0.2, 0.2, 50)), {0: flat_bank()}, 2.0)
    assert clip.shape == (2000,)
    assert clip.dtype == np.float32
    assert not clip[:500].any()
    np.testing.assert_allclose(clip[500:700], 0.1, rtol=1e-5)
    # 200 dB/s: -20 dB after 0.1 s, ends at -60 dB after 0.3 s
    np.testing.assert_allclose(clip[800], 0.01, rtol=1e-3)
    assert not clip[1001:].any()


def test_loudness_goes_with_the_square_of_the_velocity_within_a_layer() -> None:
    soft, loud = (synthesise(played((0, 1, 1, v)), {0: flat_bank()}, 0.5)[0] for v in (25, 50))
    assert loud == pytest.approx(4 * soft)
    assert synthesise(played((0, 1, 1, 100)), {0: flat_bank()}, 0.5)[0] == pytest.approx(0.4)


def test_notes_add_up() -> None:
    clip = synthesise(played((0.0, 1, 1, 50), (0.5, 1, 1, 50)), {0: flat_bank()}, 1.0)
    np.testing.assert_allclose(clip, np.repeat([0.1, 0.2], 500), rtol=1e-5)


def test_a_later_start_gives_the_rest_of_the_performance() -> None:
    notes = played((0.1, 0.6, 0.6, 50), (0.9, 0.5, 0.5, 50), (-0.2, 0.5, 0.5, 50))
    whole = synthesise(notes, {0: flat_bank()}, 2.0)
    np.testing.assert_array_equal(synthesise(notes, {0: flat_bank()}, 1.0, start_sec=0.5), whole[500:1500])


def test_the_pedal_is_for_instruments_that_die_away() -> None:
    notes = played((0.0, 0.2, 1.0, 50))
    piano = synthesise(notes, {0: flat_bank()}, 1.0)
    organ = synthesise(notes, {0: flat_bank(loop_length=100)}, 1.0)
    assert piano[900] == pytest.approx(0.1)
    assert organ[900] == 0


def test_a_sustained_note_outlasts_its_recording() -> None:
    notes = played((0.0, 5.0, 5.0, 50))
    assert not synthesise(notes, {0: flat_bank()}, 6.0)[2000:].any()
    np.testing.assert_allclose(synthesise(notes, {0: flat_bank(loop_length=300)}, 6.0)[:5000], 0.1, rtol=1e-5)


def test_a_sum_beyond_full_scale_is_turned_down() -> None:
    clip = synthesise(played(*[(0.0, 1, 1, 100)] * 5), {0: flat_bank()}, 1.0)
    assert np.abs(clip).max() == pytest.approx(0.98)


@pytest.mark.parametrize(
    ("notes", "banks", "message"),
    [
        (played((0, 1, 1, 50), pitch=12), {0: flat_bank()}, "MIDI pitch 12"),
        (played((0, 1, 1, 50), part=3), {0: flat_bank()}, r"parts \[3\]"),
        (
            played((0, 1, 1, 50)),
            {0: flat_bank(), 1: replace(flat_bank(), sample_rate_hz=8000)},
            "one sample rate",
        ),
        (played((0, 1, 1, 50)), {}, "no bank"),
    ],
)
def test_notes_that_no_bank_can_play_are_refused(
    notes: np.ndarray, banks: dict[int, SoundBank], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        synthesise(notes, banks, 1.0)


@pytest.fixture(scope="module")
def piano(soundfont: Soundfont, tmp_path_factory: pytest.TempPathFactory) -> SoundBank:
    return cached_soundbank(soundfont, 0, 8000, tmp_path_factory.mktemp("banks"), velocities=(72,))


def test_a_piano_has_energy_onsets_where_the_notes_say(piano: SoundBank) -> None:
    rng = np.random.default_rng(5)
    notes = played(*[(onset, 0.3, 0.4, 70) for onset in np.cumsum(rng.uniform(0.15, 0.5, size=40))])
    notes["pitch"] = rng.integers(40, 90, size=len(notes))
    clip = synthesise(notes, {0: piano}, notes["onset_sec"].max() + 1.0)
    hop = piano.sample_rate_hz // 500  # 2 ms
    flux = spectral_flux(clip, hop)
    for onset_sec in notes["onset_sec"]:
        around = round(onset_sec * 500) + np.arange(-30, 31)  # 60 ms on both sides
        around = around[around >= 0]
        strongest_sec = around[np.argmax(flux[around])] / 500
        assert abs(strongest_sec - onset_sec) < 0.015


def spectral_flux(clip: np.ndarray, hop: int, window: int = 256) -> np.ndarray:
    """Rise of the log spectrum from the window before each hop to the window after it; (hops,)."""
    padded = np.concatenate([np.zeros(window), clip, np.zeros(window)])
    starts = np.arange(0, len(clip), hop)
    frames = np.lib.stride_tricks.sliding_window_view(padded, window) * np.hanning(window)
    spectra = np.log1p(100 * np.abs(np.fft.rfft(frames[np.concatenate([starts, starts + window])], axis=1)))
    rise = spectra[len(starts) :] - spectra[: len(starts)]
    return np.maximum(rise, 0).sum(axis=1)


def test_all_parts_are_heard() -> None:
    notes = np.concatenate([played((0, 1, 1, 50)), played((0.5, 1, 1, 50), part=1)])
    clip = synthesise(notes, {0: flat_bank(), 1: flat_bank()}, 1.0)
    np.testing.assert_allclose(clip, np.repeat([0.1, 0.2], 500), rtol=1e-5)
