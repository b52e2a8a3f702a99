from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import soundfile
from example_media import write_media

from fusili_mir.audio.audio_file import AudioFile
from fusili_mir.audio.opening import open_recording
from fusili_mir.audio.opus_positions import corrected_pages
from fusili_mir.audio.recording import read_recording
from fusili_mir.errors import InputError

RATE_HZ = 16_000


def clicks(rate_hz: int = RATE_HZ) -> np.ndarray:
    """A quiet tone of 4.5 s with a burst at the start of each second."""
    seconds = np.arange(round(4.5 * rate_hz)) / rate_hz
    return (np.sin(2 * np.pi * 440 * seconds) * np.where(seconds % 1 < 0.1, 0.5, 0.01)).astype(np.float32)


def read(filename: Path | io.BytesIO) -> np.ndarray:
    return np.concatenate(list(read_recording(filename, RATE_HZ)))


def delay_sec(sound: np.ndarray, original: np.ndarray) -> float:
    """Return by how much the bursts of one sound come after those of another."""
    n = min(len(sound), len(original))
    alike = np.fft.irfft(np.fft.rfft(abs(sound[:n]), 2 * n) * np.fft.rfft(abs(original[:n]), 2 * n).conj())
    return float((int(alike.argmax()) + n) % (2 * n) - n) / RATE_HZ


@pytest.mark.parametrize("stream_rate_hz", [8_000, 12_000, 16_000, 24_000, 48_000])
@pytest.mark.parametrize("n_channels", [1, 2])
def test_opus_of_any_rate_has_the_length_and_the_times_of_the_original(
    tmp_path: Path, stream_rate_hz: int, n_channels: int
) -> None:
    sound = clicks() if n_channels == 1 else np.stack([clicks(), 0.5 * clicks()])
    write_media(tmp_path / "a.opus", sound, RATE_HZ, "libopus", stream_rate_hz=stream_rate_hz)
    assert not list(corrected_pages(tmp_path / "a.opus"))
    found = read(tmp_path / "a.opus")
    assert len(found) == pytest.approx(4.5 * RATE_HZ, abs=2)
    assert abs(delay_sec(found, clicks())) <= 0.001


@pytest.mark.parametrize("rate_hz", [16_000, 24_000, 44_100, 48_000])
@pytest.mark.parametrize("n_channels", [1, 2])
def test_vorbis_of_any_rate_has_the_length_and_the_times_of_the_original(
    tmp_path: Path, rate_hz: int, n_channels: int
) -> None:
    soundfile.write(tmp_path / "a.ogg", np.stack([clicks(rate_hz)] * n_channels, axis=1), rate_hz)
    found = read(tmp_path / "a.ogg")
    assert len(found) == pytest.approx(4.5 * RATE_HZ, abs=1)
    assert abs(delay_sec(found, clicks())) <= 0.001


@pytest.fixture(params=[0.0, 1.5], ids=["from the start", "in the middle"])
def jittery(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An Opus file in which the time stamps of a second are 5 ms late, and those after it are not."""
    begin = request.param
    write_media(
        tmp_path / "a.opus",
        clicks(),
        RATE_HZ,
        "libopus",
        stream_rate_hz=24_000,
        late_sec=lambda sec: 0.005 if begin <= sec < begin + 1 else 0.0,
    )
    return tmp_path / "a.opus"


def test_opus_with_time_stamps_that_jitter_is_read_to_its_end(jittery: Path) -> None:
    with pytest.raises(InputError, match="damaged after"):
        list(AudioFile(jittery).blocks())
    found = read(jittery)
    assert len(found) == pytest.approx(4.5 * RATE_HZ, abs=0.006 * RATE_HZ)
    assert abs(delay_sec(found, clicks())) <= 0.001
    assert np.array_equal(read(io.BytesIO(jittery.read_bytes())), found)
    assert open_recording(jittery).name == str(jittery)


def test_only_positions_and_checksums_of_pages_change(jittery: Path) -> None:
    content = jittery.read_bytes()
    pages = list(corrected_pages(jittery))
    assert pages
    for offset, page in pages:
        before = content[offset : offset + len(page)]
        assert {i for i in range(len(page)) if page[i] != before[i]} <= {*range(6, 14), *range(22, 26)}


def test_a_damaged_page_is_left_as_it_is(jittery: Path) -> None:
    content = bytearray(jittery.read_bytes())
    first, _ = next(corrected_pages(jittery))
    content[first + 100] ^= 1
    jittery.write_bytes(content)
    assert not list(corrected_pages(jittery))


def test_other_files_have_no_such_pages(tmp_path: Path) -> None:
    for name in ("a.wav", "a.ogg"):
        soundfile.write(tmp_path / name, clicks(), RATE_HZ)
    (tmp_path / "a.opus").write_bytes(b"OggS")
    (tmp_path / "b.opus").write_bytes(b"OggS\0" + bytes(90))
    for filename in tmp_path.iterdir():
        assert not list(corrected_pages(filename))


def checksum(page: bytes) -> int:
    """Return the checksum of a page bit by bit, as the Ogg format defines it."""
    remainder = 0
    for byte in page[:22] + bytes(4) + page[26:]:
        remainder ^= byte << 24
        for _ in range(8):
            remainder = (remainder << 1) ^ (0x104C11DB7 if remainder >> 31 else 0)
    return remainder


def test_a_last_page_that_ends_before_it_begins_is_cut_to_nothing(tmp_path: Path) -> None:
    write_media(tmp_path / "a.opus", clicks(), RATE_HZ, "libopus")
    content = (tmp_path / "a.opus").read_bytes()
    last = content.rindex(b"OggS")
    page = bytearray(content[last:])
    page[6:14] = bytes(8)
    page[22:26] = checksum(bytes(page)).to_bytes(4, "little")
    (tmp_path / "a.opus").write_bytes(content[:last] + page)
    ((_, corrected),) = corrected_pages(tmp_path / "a.opus")
    assert int.from_bytes(corrected[22:26], "little") == checksum(corrected)
    assert len(read(tmp_path / "a.opus")) == pytest.approx(4 * RATE_HZ, abs=0.02 * RATE_HZ)
