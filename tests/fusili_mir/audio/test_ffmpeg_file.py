from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from example_media import write_media

from fusili_mir.audio import audio_samples
from fusili_mir.audio.audio_file import AudioFile
from fusili_mir.audio.ffmpeg_file import FfmpegFile, pyav_version
from fusili_mir.audio.opening import open_recording
from fusili_mir.audio.recording import read_recording
from fusili_mir.errors import InputError, MissingExtraError

RATE_HZ = 22_050


def tone(hertz: float = 440.0, from_sec: float = 0.5, end_sec: float = 2.0) -> np.ndarray:
    """A tone that begins after a silence."""
    seconds = np.arange(round(end_sec * RATE_HZ)) / RATE_HZ
    return (0.5 * np.sin(2 * np.pi * hertz * seconds) * (seconds >= from_sec)).astype(np.float32)


def read(filename: Path) -> np.ndarray:
    return np.concatenate(list(read_recording(filename, 16_000)))


def begin_sec(samples: np.ndarray) -> float:
    return float(np.argmax(np.abs(samples) > 0.1)) / 16_000


def hertz_of(samples: np.ndarray) -> float:
    return float(np.abs(np.fft.rfft(samples)).argmax()) * 16_000 / len(samples)


@pytest.mark.parametrize(
    ("name", "codec", "video"),
    [
        ("a.m4a", "aac", False),
        ("a.mp4", "aac", True),
        ("a.webm", "libopus", False),
        ("a.mkv", "aac", True),
        ("a.mka", "flac", False),
        ("a.wma", "wmav2", False),
        ("a.avi", "mp3", True),
    ],
)
def test_a_tone_comes_back_at_its_second_and_its_pitch(
    tmp_path: Path, name: str, codec: str, video: bool
) -> None:
    write_media(tmp_path / name, tone(), RATE_HZ, codec, video)
    assert isinstance(open_recording(tmp_path / name), FfmpegFile)
    samples = read(tmp_path / name)
    # Some encoders add a lead of their own; MP4 and WebM say how long it is, others do not.
    exact = name.endswith(("m4a", "mp4", "webm", "mka"))
    assert begin_sec(samples) == pytest.approx(0.5, abs=0.002 if exact else 0.05)
    assert len(samples) / 16_000 == pytest.approx(2.0, abs=0.08)
    assert hertz_of(samples[12_000:28_000]) == pytest.approx(440, abs=2)


def test_libsndfile_is_asked_first(tmp_path: Path) -> None:
    write_media(tmp_path / "a.opus", tone(), RATE_HZ, "libopus")
    assert isinstance(open_recording(tmp_path / "a.opus"), AudioFile)
    assert begin_sec(read(tmp_path / "a.opus")) == pytest.approx(0.5, abs=0.002)


def test_of_several_audio_streams_the_first_is_read(tmp_path: Path) -> None:
    write_media(tmp_path / "a.mkv", tone(440), RATE_HZ, video=True, others=(tone(1_000),))
    assert hertz_of(read(tmp_path / "a.mkv")[12_000:28_000]) == pytest.approx(440, abs=2)


def test_sound_that_begins_later_than_the_picture_keeps_its_time(tmp_path: Path) -> None:
    write_media(tmp_path / "a.mkv", tone(), RATE_HZ, video=True, starts_at_sec=0.7)
    assert begin_sec(read(tmp_path / "a.mkv")) == pytest.approx(1.2, abs=0.005)


def test_blocks_of_any_size_add_up_to_the_same_samples(tmp_path: Path, monkeypatch) -> None:
    write_media(tmp_path / "a.m4a", tone(), RATE_HZ)
    whole = read(tmp_path / "a.m4a")
    monkeypatch.setattr(audio_samples, "BLOCK_VALUES", 1_000)
    assert len(list(FfmpegFile(tmp_path / "a.m4a").blocks())) > 20
    assert np.array_equal(read(tmp_path / "a.m4a"), whole)


def test_a_torn_file_gives_what_is_there_or_one_line(tmp_path: Path) -> None:
    write_media(tmp_path / "a.webm", tone(), RATE_HZ, "libopus")
    data = (tmp_path / "a.webm").read_bytes()
    (tmp_path / "a.webm").write_bytes(data[: len(data) // 2])
    assert 0.5 < len(read(tmp_path / "a.webm")) / 16_000 < 1.5
    write_media(tmp_path / "a.m4a", tone(), RATE_HZ)  # its index is at the end
    data = (tmp_path / "a.m4a").read_bytes()
    (tmp_path / "a.m4a").write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match=r"a\.m4a: not a sound file that can be read") as error:
        open_recording(tmp_path / "a.m4a")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.ffconcat", "ffconcat version 1.0\nfile {}\n"),
        ("a.m3u8", "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nfile://{}\n#EXT-X-ENDLIST\n"),
        ("a.sdp", "v=0\nc=IN IP4 127.0.0.1\nm=audio 5004 RTP/AVP 0\n"),
    ],
)
def test_a_playlist_opens_no_other_file_and_no_address(tmp_path: Path, name: str, content: str) -> None:
    write_media(tmp_path / "secret.m4a", tone(), RATE_HZ)
    (tmp_path / name).write_text(content.format(tmp_path / "secret.m4a"))
    with pytest.raises(InputError, match="not a sound file that can be read"):
        open_recording(tmp_path / name)


def test_without_the_extra_the_message_names_it(tmp_path: Path, monkeypatch) -> None:
    write_media(tmp_path / "a.m4a", tone(), RATE_HZ)
    monkeypatch.setitem(sys.modules, "av", None)
    assert pyav_version() is None
    with pytest.raises(MissingExtraError, match=r"a\.m4a: .* pip install 'fusili-mir\[audio\]'") as error:
        open_recording(tmp_path / "a.m4a")
    assert "\n" not in str(error.value)


def test_sound_files_are_read_without_importing_pyav() -> None:
    code = "import sys, fusili_mir.audio.recording; print('av' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
