from __future__ import annotations

import struct
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr
from example_bundles import write_pitch_bundle
from hypothesis import given, settings
from hypothesis import strategies as st

from fusili_mir.audio import audio_samples
from fusili_mir.audio.recording import AudioSamples, Recording, RecordingWarning, read_recording
from fusili_mir.errors import InputError


def read(recording: str | Path | Recording, sample_rate_hz: int = 16_000) -> np.ndarray:
    return np.concatenate(list(read_recording(recording, sample_rate_hz)))


def noise(n_samples: int, n_channels: int = 1, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-0.5, 0.5, (n_samples, n_channels)).astype(np.float32)


@settings(deadline=None, max_examples=40)
@given(
    st.integers(2_500, 40_000),
    st.integers(1, 3),
    st.sampled_from([8_000, 11_025, 16_000, 22_050, 44_100, 48_000]),
    st.sampled_from([16_000, 48_000]),
    st.integers(100, 50_000),
)
def test_blocks_of_any_size_add_up_to_the_recording_read_at_once(
    n_samples: int, n_channels: int, from_hz: int, to_hz: int, n_block: int
) -> None:
    samples = noise(max(n_samples, from_hz // 10), n_channels)
    whole = soxr.resample(samples.mean(axis=1), from_hz, to_hz)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audio_samples, "BLOCK_VALUES", n_block)
        assert np.array_equal(read(AudioSamples(samples, from_hz), to_hz), whole)


@pytest.mark.parametrize(
    ("name", "subtype", "tolerance"),
    [
        ("a.wav", "PCM_16", 1e-4),
        ("a.wav", "PCM_U8", 1e-2),
        ("a.wav", "FLOAT", 0),
        ("a.wav", "DOUBLE", 0),
        ("a.flac", "PCM_24", 1e-6),
        ("a.aiff", "PCM_16", 1e-4),
        ("a.ogg", "VORBIS", 0.1),
        ("a.mp3", "MPEG_LAYER_III", 0.1),
    ],
)
def test_files_of_many_kinds_are_read_in_blocks(
    tmp_path: Path, monkeypatch, name: str, subtype: str, tolerance: float
) -> None:
    tone = 0.5 * np.sin(2 * np.pi * 440 * np.arange(44_100) / 44_100)
    stereo = np.stack([tone, 0.5 * tone], axis=1).astype(np.float32)
    soundfile.write(tmp_path / name, stereo, 44_100, subtype)
    monkeypatch.setattr(audio_samples, "BLOCK_VALUES", 5_000)
    found = read(tmp_path / name, 44_100)
    assert len(found) == 44_100
    inner = slice(5_000, 40_000)
    assert found[inner] == pytest.approx(stereo.mean(axis=1)[inner], abs=tolerance)


@pytest.mark.parametrize("name", ["a.flac", "a.ogg", "a.mp3"])
def test_a_file_read_in_blocks_equals_the_file_read_at_once(tmp_path: Path, monkeypatch, name: str) -> None:
    soundfile.write(tmp_path / name, noise(50_000, 2), 44_100)
    whole = read(tmp_path / name)
    monkeypatch.setattr(audio_samples, "BLOCK_VALUES", 5_001)
    assert np.array_equal(read(tmp_path / name), whole)
    samples, _ = soundfile.read(tmp_path / name, dtype="float32")
    assert np.array_equal(whole, soxr.resample(samples.mean(axis=1), 44_100, 16_000))


@pytest.mark.parametrize("dtype", ["i2", "i4", "u1", "i8"])
def test_integers_have_the_full_scale_of_their_type(dtype: str) -> None:
    limits = np.iinfo(dtype)
    middle = 0 if limits.min < 0 else 128
    half = (middle + int(limits.max) + 1) // 2
    samples = np.array([limits.min, middle, half] * 1_000, dtype)
    assert read(AudioSamples(samples, 16_000))[:3] == pytest.approx([-1, 0, 0.5], abs=1e-6)


def test_a_sine_keeps_its_frequency_and_level_at_another_rate() -> None:
    sine = 0.5 * np.sin(2 * np.pi * 1_000 * np.arange(44_100) / 44_100)
    expected = 0.5 * np.sin(2 * np.pi * 1_000 * np.arange(16_000) / 16_000)
    assert read(AudioSamples(sine, 44_100))[500:-500] == pytest.approx(expected[500:-500], abs=1e-3)


def wav(samples: np.ndarray, rate_hz: int = 16_000):
    def write(path: Path) -> None:
        soundfile.write(path, samples, rate_hz, "FLOAT")

    return write


def content(data: bytes):
    return lambda path: path.write_bytes(data)


def cut_flac(path: Path) -> None:
    soundfile.write(path, noise(40_000), 16_000, format="FLAC")
    path.write_bytes(path.read_bytes()[:100])


WITH_NAN = noise(16_000)
WITH_NAN[4_000] = np.nan
WITH_INFINITIES = noise(16_000, 2)
WITH_INFINITIES[8_000] = [np.inf, -np.inf]


@pytest.mark.parametrize(
    ("name", "write", "message"),
    [
        ("silent.wav", wav(np.zeros(16_000)), "it is silent from start to end"),
        ("constant.wav", wav(np.full(16_000, 0.5)), "it is silent from start to end"),
        ("faint.wav", wav(1e-5 * noise(16_000)), "it is silent from start to end"),
        ("opposite.wav", wav(noise(16_000) * [1, -1]), "its channels cancel each other out"),
        ("nothing.wav", wav(np.zeros(0)), "it contains no sound (0 samples)"),
        ("short.wav", wav(noise(3)), "3 samples, 0.19 ms; expected at least 100 ms"),
        ("nan.wav", wav(WITH_NAN), "not a number at 0.250 s"),
        ("infinite.wav", wav(WITH_INFINITIES), "not a number at 0.500 s"),
        ("integers.wav", wav(30_000 * noise(16_000)), "samples reach 14999.9, expected -1 to 1"),
        ("slow.wav", wav(noise(16_000), 100), "a sampling rate of 100 Hz"),
        ("empty.wav", content(b""), "the file is empty"),
        ("text.wav", content(b"hello, this is text"), "not a sound file"),
        ("text.mp3", content(b"hello, this is text"), "not a sound file"),
        (
            "login.mp3",
            content(b"\xef\xbb\xbf\n<!DOCTYPE html><html>Log in</html>"),
            "a web page, not a sound file",
        ),
        ("noise.raw", content(bytes(1_000)), "not a sound file"),
        ("image.png", content(b"\x89PNG\r\n\x1a\n" + bytes(100)), "an image or a PDF, not a recording"),
        ("cut.flac", cut_flac, "cut.flac: "),
        ("folder", Path.mkdir, "a folder; expected a sound file"),
        ("none.wav", lambda path: None, "not found; expected a sound file"),
    ],
)
def test_an_unusable_recording_raises_a_one_line_error(
    tmp_path: Path, name: str, write, message: str
) -> None:
    write(tmp_path / name)
    with pytest.raises(InputError) as error:
        read(tmp_path / name)
    assert message in str(error.value)
    assert str(tmp_path / name) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_header_that_promises_more_than_the_file_holds_does_no_harm(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", noise(20_000), 16_000, "PCM_16")
    data = bytearray((tmp_path / "a.wav").read_bytes())
    place = data.index(b"data") + 4
    data[place : place + 4] = struct.pack("<I", 0x7FFFFFF0)
    (tmp_path / "a.wav").write_bytes(data)
    assert len(read(tmp_path / "a.wav")) == 20_000


def test_a_clipped_recording_warns_and_a_loud_one_does_not() -> None:
    sine = np.sin(2 * np.pi * 100 * np.arange(16_000) / 16_000)
    with pytest.warns(RecordingWarning, match=r"the recording: \d+ % of the samples are clipped"):
        read(AudioSamples(np.clip(3 * sine, -1, 1), 16_000))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(AudioSamples(np.float32(0.99) * sine, 16_000))


def test_a_recording_that_never_ends_is_refused(monkeypatch) -> None:
    monkeypatch.setenv("FUSILI_LIMITS", "hours=1")

    class Endless:
        name = "endless"
        sample_rate_hz = 2_000

        def blocks(self, progress: bool = False):
            while True:
                yield noise(1_000_000)

    with pytest.raises(InputError, match=r"endless: \S+ hours of a recording, expected at most 1; cut it"):
        for _ in read_recording(Endless(), 2_000):
            pass


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.zeros((2, 16_000)), "transpose the array"),
        (np.zeros((4, 4, 4)), r"samples of shape \(4, 4, 4\), expected"),
        (np.zeros((16_000, 0)), "expected"),
        (np.zeros(16_000, complex), "samples of type complex128"),
        (np.array(["a"]), "samples of type <U1"),
    ],
)
def test_arrays_that_are_not_sound_are_refused(samples: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        AudioSamples(samples, 16_000)


PEAK_MEMORY = """
import sys
from fusili_mir.model.bundle import load_bundle
from fusili_mir.model.encoder import Encoder
encoded = Encoder(load_bundle(sys.argv[1]), "cpu", 1).encode_recording(sys.argv[2])
status = open("/proc/self/status").read()
print(len(encoded.frames), status.split("VmHWM:")[1].split()[0])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_half_an_hour_needs_hardly_more_memory_than_five_minutes(tmp_path: Path) -> None:
    write_pitch_bundle(tmp_path / "bundle")
    minute = noise(60 * 8_000)
    peaks_mb = {}
    for n_minutes in (5, 30):
        with soundfile.SoundFile(tmp_path / "a.wav", "w", 8_000, 1, "PCM_16") as file:
            for _ in range(n_minutes):
                file.write(minute)
        command = [sys.executable, "-c", PEAK_MEMORY, str(tmp_path / "bundle"), str(tmp_path / "a.wav")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        n_frames, peak_kb = map(int, done.stdout.split())
        assert n_frames == n_minutes * 60 * 25
        peaks_mb[n_minutes] = peak_kb / 1000
    # Half an hour of samples would be 115 MB at the bundle's rate, of which 64 MB may be in memory; 25 more
    # minutes of onsets are 26 MB, twice that while they are put together, and of embeddings 3 MB.
    assert peaks_mb[30] - peaks_mb[5] < 130
