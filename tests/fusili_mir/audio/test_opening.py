from __future__ import annotations

import gc
import io
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from fusili_mir.audio.audio_samples import AudioSamples
from fusili_mir.audio.excerpt import Excerpt, start_of
from fusili_mir.audio.heard_recording import HeardRecording
from fusili_mir.audio.opening import open_recording
from fusili_mir.audio.recording import read_recording
from fusili_mir.errors import InputError

RATE_HZ = 16_000


def noise(n_samples: int, n_channels: int = 1) -> np.ndarray:
    return np.random.default_rng(0).uniform(-0.5, 0.5, (n_samples, n_channels)).astype(np.float32)


def read(recording: Any) -> np.ndarray:
    return np.concatenate(list(read_recording(recording, RATE_HZ)))


MONO, STEREO = noise(8_000)[:, 0], noise(8_000, 2)


class Tensor:
    """Something that is not an array, but can become one, as a tensor of torch can."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.values, dtype)


@pytest.mark.parametrize(
    ("brought", "expected"),
    [
        ((MONO, RATE_HZ), MONO),
        ((RATE_HZ, MONO), MONO),  # as SciPy returns it
        ([MONO, float(RATE_HZ)], MONO),
        ((MONO.tolist(), np.int64(RATE_HZ)), MONO),
        ((Tensor(MONO[None]), RATE_HZ), MONO),
        ((STEREO, RATE_HZ), STEREO.mean(axis=1)),  # as soundfile has it
        ((STEREO.T, RATE_HZ), STEREO.mean(axis=1)),  # as librosa and torchaudio have it
        ((np.asfortranarray(STEREO.astype(np.float64)), np.array(RATE_HZ)), STEREO.mean(axis=1)),
    ],
    ids=["mono", "rate first", "list", "lists", "tensor", "(n, 2)", "(2, n)", "fortran"],
)
def test_samples_with_their_rate_are_a_recording(brought: Any, expected: np.ndarray) -> None:
    assert read(brought) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("brought", "message"),
    [
        (None, "the recording is None; expected a file"),
        (5, "the recording is 5; expected a file"),
        (True, "the recording is True; expected a file"),
        (b"RIFF", "bytes; give a file name, or wrap"),
        ({"y": MONO}, "the recording is a dict; expected a file"),
        (MONO, r"an array of shape \(8000,\) without its sampling rate; give \(samples, rate\)"),
        (Tensor(MONO), "without its sampling rate"),
        (["a.wav"], "a list of 1, expected two"),
        ([], "a list of 0, expected two"),
        (("a.wav", "b.wav"), r"\('a.wav', 'b.wav'\); expected \(samples, rate\)"),
        ((MONO, None), r"\(an array of shape \(8000,\), None\); expected \(samples, rate\)"),
        ((MONO, "16000"), "expected"),
        ((1, 2), r"\(1, 2\); expected"),
        ((MONO, 0), "a sampling rate of 0 Hz, expected a whole number above 0"),
        ((MONO, 22_050.5), "a sampling rate of 22050.5 Hz"),
        ((MONO, float("nan")), "a sampling rate of nan Hz"),
        ((MONO.astype(complex), RATE_HZ), "samples of type complex128"),
        ((np.zeros((4, 4, 4)), RATE_HZ), r"samples of shape \(4, 4, 4\)"),
        ((np.zeros((500, 600)), RATE_HZ), "at most 64 channels"),
        (([[1.0], [1.0, 2.0]], RATE_HZ), "samples that are not an array"),
        (io.StringIO("text"), "opened as text; open it in binary mode"),
        (io.BytesIO(), "it is empty"),
        (io.BytesIO(b"This is not sound."), "the recording: not a sound file"),
        ("", "expected a sound file"),
        ("null\0character.wav", "expected a sound file"),
    ],
)
def test_what_is_not_a_recording_is_one_line(brought: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        open_recording(brought)
    assert "\n" not in str(error.value)


def wav_bytes(samples: np.ndarray) -> bytes:
    stream = io.BytesIO()
    soundfile.write(stream, samples, RATE_HZ, "FLOAT", format="WAV")
    return stream.getvalue()


class Pipe(io.RawIOBase):
    """A stream that can only be read, and only once."""

    def __init__(self, data: bytes) -> None:
        self._stream = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._stream.readinto(buffer)


def test_an_open_file_is_read_from_its_beginning(tmp_path: Path) -> None:
    stream = io.BytesIO()
    soundfile.write(stream, MONO, RATE_HZ, "FLOAT", format="WAV")  # leaves the position at the end
    assert np.array_equal(read(stream), MONO)
    (tmp_path / "a.wav").write_bytes(wav_bytes(MONO))
    with (tmp_path / "a.wav").open("rb") as file:
        recording = open_recording(file)
        assert recording.name == str(tmp_path / "a.wav")
    assert np.array_equal(read(recording), MONO)  # also when the file is closed


def test_a_stream_that_cannot_be_searched_is_read_once_and_its_copy_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    recording = open_recording(Pipe(wav_bytes(MONO)))  # type: ignore[arg-type]
    assert len(list(tmp_path.iterdir())) == 1
    assert np.array_equal(read(recording), MONO)
    assert np.array_equal(read(recording), MONO)
    del recording
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Pipe(wav_bytes(MONO))))  # type: ignore[type-var]
    recording = open_recording("-")
    assert recording.name == "standard input"
    assert np.array_equal(read(recording), MONO)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Pipe(b"")))  # type: ignore[type-var]
    with pytest.raises(InputError, match="standard input: it is empty"):
        open_recording("-")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    with pytest.raises(InputError, match="standard input is a terminal"):
        open_recording("-")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_is_read_as_a_stream(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(wav_bytes(MONO),))
    writer.start()
    recording = open_recording(tmp_path / "pipe")
    writer.join()
    assert np.array_equal(read(recording), MONO)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 7_000), st.integers(2_000, 12_000), st.integers(1_000, 9_000))
def test_an_excerpt_is_a_stretch_of_the_samples(first: int, last: int, n_block: int) -> None:
    if last - first < 2_000:  # a tenth of a second is the least
        last = first + 2_000
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fusili_mir.audio.audio_samples.BLOCK_VALUES", n_block)
        samples = noise(10_000)[:, 0]
        recording = open_recording((samples, RATE_HZ), first / RATE_HZ, last / RATE_HZ)
        assert np.array_equal(read(recording), samples[first:last])


def test_an_excerpt_knows_where_it_starts() -> None:
    recording = open_recording((noise(48_000), RATE_HZ), start_sec=1.5)
    assert start_of(recording) == 1.5
    assert start_of(open_recording((noise(48_000), RATE_HZ))) == 0.0
    with HeardRecording(recording, 8_000) as heard:
        assert (heard.start_sec, heard.duration_sec) == (1.5, 1.5)


@pytest.mark.parametrize(
    ("start_sec", "end_sec", "message"),
    [
        (-1.0, None, "a start of -1 s, expected 0 or more"),
        (float("inf"), None, "a start of inf s"),
        (2.0, 2.0, "an end of 2 s and a start of 2 s, expected the end after the start"),
        (None, 0.0, "an end of 0 s and a start of 0 s"),
        ("1:00", None, "start_sec is '1:00'; expected a number of seconds"),
        (None, float("nan"), "end_sec is nan"),
    ],
)
def test_a_stretch_that_makes_no_sense_is_refused_at_once(start_sec: Any, end_sec: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_recording((MONO, RATE_HZ), start_sec, end_sec)


def test_a_start_after_the_end_of_the_recording_says_how_long_it_is() -> None:
    with pytest.raises(InputError, match=r"the recording: 0\.50 s long, expected it to last longer"):
        read(open_recording((MONO, RATE_HZ), start_sec=0.5))


def test_a_recording_is_returned_as_it_is() -> None:
    recording = AudioSamples(MONO, RATE_HZ)
    assert open_recording(recording) is recording
    assert open_recording(Excerpt(recording, 0.1)) == Excerpt(recording, 0.1)
    assert repr(recording) == "AudioSamples(8000 samples, 16000 Hz, 'the recording')"
