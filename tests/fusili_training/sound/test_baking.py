from pathlib import Path

import numpy as np
import pytest
import soundfile

from fusili_mir.errors import InputError
from fusili_training.sound.baking import bake_sample_folder, cached_soundbank
from fusili_training.sound.soundbank import SoundBank
from fusili_training.sound.soundfonts import Soundfont

RATE_HZ = 8000
NAMES = {24: "C1", 36: "C2", 47: "B2", 58: "Bb3", 69: "A4", 80: "G#5", 91: "G6", 102: "F#7"}


def tone(pitch: int, sec: float, decay_per_sec: float) -> np.ndarray:
    """A decaying sine, after 50 ms of silence."""
    time = np.arange(int(sec * RATE_HZ)) / RATE_HZ
    hz = 440 * 2 ** ((pitch - 69) / 12)
    sound = 0.5 * np.sin(2 * np.pi * hz * time) * np.exp(-decay_per_sec * time)
    return np.concatenate([np.zeros(RATE_HZ // 20), sound])


def write_samples(folder: Path, sec: float = 1.0, decay_per_sec: float = 8.0, suffix: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for pitch, name in NAMES.items():
        soundfile.write(folder / f"{name}{suffix}.wav", tone(pitch, sec, decay_per_sec), RATE_HZ)


def frequency_hz(sound: np.ndarray) -> float:
    spectrum = np.abs(np.fft.rfft(sound * np.hanning(len(sound)), 16 * RATE_HZ))
    return float(np.argmax(spectrum)) / 16


def test_keys_without_a_recording_borrow_the_nearest_one_in_tune(tmp_path: Path) -> None:
    write_samples(tmp_path)
    bank = bake_sample_folder(tmp_path, RATE_HZ, licence="CC0")
    assert (bank.velocities, bank.sustained, bank.licence) == ((64,), False, "CC0")
    for pitch in (47, 60, 69, 73, 86):
        expected_hz = 440 * 2 ** ((pitch - 69) / 12)
        assert frequency_hz(bank.sample(0, pitch)) == pytest.approx(expected_hz, rel=0.01)


def test_silence_before_the_attack_is_cut(tmp_path: Path) -> None:
    write_samples(tmp_path)
    first = bake_sample_folder(tmp_path, RATE_HZ).sample(0, 69)[: RATE_HZ // 100]
    assert np.abs(first).max() > 8000  # the first 10 ms include the attack


def test_layers_in_the_names_become_velocities(tmp_path: Path) -> None:
    write_samples(tmp_path / "soft", suffix="v4")
    write_samples(tmp_path / "loud", suffix="v16")
    assert bake_sample_folder(tmp_path, RATE_HZ).velocities == (32, 127)


def test_octaves_that_a_library_counts_otherwise_are_heard(tmp_path: Path) -> None:
    for pitch, name in NAMES.items():
        soundfile.write(tmp_path / f"Violins_{name}_v1_rr1.wav", tone(pitch + 12, 1.0, 8.0), RATE_HZ)
    bank = bake_sample_folder(tmp_path, RATE_HZ)
    assert frequency_hz(bank.sample(0, 69)) == pytest.approx(440.0, rel=0.01)


def test_keys_beyond_the_range_of_an_instrument_borrow_its_last_note(tmp_path: Path) -> None:
    for pitch in (55, 60, 65, 70, 75):
        name = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"][pitch % 12]
        soundfile.write(tmp_path / f"{name}{pitch // 12 - 1}.wav", tone(pitch, 1.0, 8.0), RATE_HZ)
    bank = bake_sample_folder(tmp_path, RATE_HZ)
    assert frequency_hz(bank.sample(0, 90)) == pytest.approx(440 * 2 ** (21 / 12), rel=0.01)


def test_a_gap_within_the_range_is_refused(tmp_path: Path) -> None:
    for name, pitch in (("A2", 45), ("A4", 69)):
        soundfile.write(tmp_path / f"{name}.wav", tone(pitch, 1.0, 8.0), RATE_HZ)
    with pytest.raises(InputError, match="no recording within 6 semitones of MIDI pitch 52"):
        bake_sample_folder(tmp_path, RATE_HZ)


def test_a_sustained_note_loops_without_a_seam(tmp_path: Path) -> None:
    write_samples(tmp_path, sec=4.0, decay_per_sec=0.0)
    bank = bake_sample_folder(tmp_path, RATE_HZ)
    assert bank.loop_length == 2 * RATE_HZ
    sample = bank.sample(0, 36).astype(float)  # 65 Hz: a step of one sample is small
    seam = abs(sample[-bank.loop_length] - sample[-1])
    assert seam <= 1.5 * np.abs(np.diff(sample)).max()


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda folder: (folder / "readme.txt").write_text("x"), "no note recordings"),
        (lambda folder: (folder / "A4.wav").write_text("x"), r"A4\.wav: "),
        (lambda folder: soundfile.write(folder / "A4.wav", np.zeros(800), RATE_HZ), "silent"),
        (
            lambda folder: soundfile.write(folder / "A4.wav", tone(69, 1, 8), RATE_HZ),
            "pitch 69 to 69; expected an octave",
        ),
    ],
)
def test_an_unusable_folder_is_refused(tmp_path: Path, prepare: object, message: str) -> None:
    prepare(tmp_path)  # type: ignore[operator]
    with pytest.raises(InputError, match=message):
        bake_sample_folder(tmp_path, RATE_HZ)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("banks")


@pytest.fixture(scope="module")
def piano(soundfont: Soundfont, cache: Path) -> SoundBank:
    return cached_soundbank(soundfont, 0, RATE_HZ, cache, velocities=(72,))


def test_a_baked_piano_dies_away_and_is_in_tune(piano: SoundBank) -> None:
    assert not piano.sustained
    for pitch in (57, 69, 81):
        sample = piano.sample(0, pitch)[:RATE_HZ].astype(float)
        spectrum = np.abs(np.fft.rfft(sample, 16 * RATE_HZ))
        hz = 440 * 2 ** ((pitch - 69) / 12)
        near = slice(int(16 * hz * 0.97), int(16 * hz * 1.03))
        peak_hz = (near.start + np.argmax(spectrum[near])) / 16
        assert peak_hz == pytest.approx(hz, rel=0.006)  # a tenth of a semitone


def test_a_baked_piano_is_read_from_the_cache_the_second_time(
    piano: SoundBank, soundfont: Soundfont, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")  # fluidsynth cannot be found
    again = cached_soundbank(soundfont, 0, RATE_HZ, cache, velocities=(72,))
    assert again.samples.tobytes() == piano.samples.tobytes()


def test_the_release_of_a_baked_piano_is_quick_but_for_undamped_keys(piano: SoundBank) -> None:
    assert (piano.release_db_per_sec[:60] > 40).all()


def test_a_baked_organ_is_sustained(soundfont: Soundfont, cache: Path) -> None:
    assert cached_soundbank(soundfont, 19, RATE_HZ, cache, velocities=(72,)).sustained
