from __future__ import annotations

import errno
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest

from fusili_mir.arrays import Float32
from fusili_mir.audio import audio_samples, heard_recording
from fusili_mir.audio.heard_recording import HeardRecording
from fusili_mir.audio.recording import AudioSamples
from fusili_mir.errors import InputError

RATE_HZ = 16_000


def noise(n_samples: int, amplitude: float = 0.5) -> Float32:
    return np.random.default_rng(0).uniform(-amplitude, amplitude, n_samples).astype(np.float32)


@dataclass
class CountedRecording:
    """Counts how often it is read."""

    samples: Float32
    name: str = "counted"
    sample_rate_hz: int = RATE_HZ
    n_reads: int = field(default=0)

    def blocks(self, progress: bool = False) -> Iterator[Float32]:
        self.n_reads += 1
        yield self.samples[:, None]


def test_a_recording_is_read_once_and_heard_as_often_as_needed() -> None:
    recording = CountedRecording(noise(50_000))
    with HeardRecording(recording, RATE_HZ) as heard:
        for _ in range(2):
            np.testing.assert_array_equal(np.concatenate(list(heard.blocks())), recording.samples)
        assert (len(heard), heard.duration_sec, heard.gain) == (50_000, 3.125, 1.0)
    assert recording.n_reads == 1


@pytest.mark.parametrize("in_memory_bytes", [1, 2**26])
def test_long_recordings_are_kept_in_a_file_unchanged(monkeypatch, in_memory_bytes: int) -> None:
    monkeypatch.setattr(heard_recording, "_IN_MEMORY_BYTES", in_memory_bytes)
    monkeypatch.setattr(heard_recording, "_BLOCK_SAMPLES", 1000)
    samples = noise(12_345)
    with HeardRecording(AudioSamples(samples, RATE_HZ), RATE_HZ) as heard:
        np.testing.assert_array_equal(np.concatenate(list(heard.blocks())), samples)


@pytest.mark.parametrize("in_memory_bytes", [1, 40_000, 2**26])
def test_silence_is_a_hole_in_the_file_and_is_heard_as_silence(monkeypatch, in_memory_bytes: int) -> None:
    monkeypatch.setattr(heard_recording, "_IN_MEMORY_BYTES", in_memory_bytes)
    monkeypatch.setattr(audio_samples, "BLOCK_VALUES", 1000)
    samples = noise(30_000)
    samples[:5_000] = samples[9_000:21_000] = samples[26_000:] = 0.0
    with HeardRecording(AudioSamples(samples, RATE_HZ), RATE_HZ) as heard:
        np.testing.assert_array_equal(np.concatenate(list(heard.blocks())), samples)
        np.testing.assert_array_equal(heard.read(25_000, 30_000), samples[25_000:])


@pytest.mark.skipif(sys.platform != "linux", reason="other systems may fill holes")
def test_hours_of_silence_take_no_room_on_the_disk(monkeypatch) -> None:
    monkeypatch.setattr(heard_recording, "_IN_MEMORY_BYTES", 2**20)
    samples = np.zeros(4_000_000, np.float32)
    samples[:RATE_HZ] = noise(RATE_HZ)
    with HeardRecording(AudioSamples(samples, RATE_HZ), RATE_HZ) as heard:
        heard._file.flush()
        status = os.fstat(heard._file.fileno())
        assert status.st_size == 16_000_000
        assert 512 * status.st_blocks < 4_000_000


def test_a_quiet_recording_is_amplified_and_says_by_how_much() -> None:
    quiet = noise(RATE_HZ, amplitude=0.001)
    with HeardRecording(AudioSamples(quiet, RATE_HZ), RATE_HZ) as heard:
        loud = np.concatenate(list(heard.blocks()))
    assert heard.gain > 10
    np.testing.assert_allclose(loud, heard.gain * quiet, rtol=1e-5)
    assert 20 * np.log10(np.sqrt(np.mean(np.square(loud)))) == pytest.approx(-22, abs=0.2)


def test_an_unusable_recording_is_refused_before_anything_is_encoded() -> None:
    with pytest.raises(InputError, match="silent from start to end"):
        HeardRecording(AudioSamples(np.zeros(RATE_HZ, np.float32), RATE_HZ), RATE_HZ)


def test_a_full_disk_raises_one_line_that_says_where(monkeypatch) -> None:
    class FullDisk:
        def write(self, data: bytes) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        def close(self) -> None:
            pass

    monkeypatch.setattr(tempfile, "SpooledTemporaryFile", lambda max_size: FullDisk())
    with pytest.raises(InputError, match=r"counted: .*No space left on device.*set TMPDIR"):
        HeardRecording(CountedRecording(noise(10_000)), RATE_HZ)
