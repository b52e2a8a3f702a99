from pathlib import Path

import numpy as np
import pytest

from fusili_mir.errors import InputError, MissingExtraError
from fusili_training.sound.soundfonts import (
    FLUIDSYNTH_HZ,
    NoteRequest,
    Soundfont,
    SoundfontWarning,
    choose_soundfont,
    find_soundfont,
    play_notes,
)


def test_a_played_note_has_its_pitch_and_ends_after_its_release(soundfont: Soundfont) -> None:
    low, high = play_notes(soundfont, 0, [NoteRequest(57, 80, 0.5, 1.0), NoteRequest(69, 80, 0.5, 1.0)])
    assert len(low) == len(high) == 1.5 * FLUIDSYNTH_HZ
    for sound, hz in ((low, 220.0), (high, 440.0)):
        spectrum = np.abs(np.fft.rfft(sound[: FLUIDSYNTH_HZ // 2]))
        harmonics = spectrum[np.rint(hz / 2 * np.arange(1, 9)).astype(int)]  # bins of 2 Hz
        octave_below = spectrum[np.rint(hz / 4 * np.arange(1, 16, 2)).astype(int)]
        assert harmonics.sum() > 10 * octave_below.sum()
        assert np.abs(sound[-4800:]).max() < 0.01 * np.abs(sound).max()


def test_playing_again_gives_the_same_samples(soundfont: Soundfont) -> None:
    first, again = (play_notes(soundfont, 0, [NoteRequest(60, 80, 0.2, 0.2)])[0] for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_a_file_that_is_no_soundfont_gives_one_line(soundfont: Soundfont, tmp_path: Path) -> None:
    fake = tmp_path / "fake.sf2"
    fake.write_text("not a soundfont")
    with pytest.raises(InputError, match="is not a soundfont") as caught:
        play_notes(Soundfont("fake", fake, "unknown"), 0, [NoteRequest(60, 80, 0.2, 0.2)])
    assert "\n" not in str(caught.value)


def test_a_broken_soundfont_gives_one_line(soundfont: Soundfont, tmp_path: Path) -> None:
    broken = tmp_path / "broken.sf2"
    broken.write_bytes(soundfont.path.read_bytes()[:1000])
    with pytest.raises(InputError, match="fluidsynth cannot play") as caught:
        play_notes(Soundfont("broken", broken, "unknown"), 0, [NoteRequest(60, 80, 0.2, 0.2)])
    assert "\n" not in str(caught.value)


def test_an_unknown_name_lists_what_there_is(soundfont: Soundfont) -> None:
    assert find_soundfont(soundfont.name) == soundfont
    with pytest.raises(InputError, match=soundfont.name):
        find_soundfont("Stradivari")


def test_a_program_outside_general_midi_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="128"):
        play_notes(Soundfont("x", tmp_path / "x.sf2", "unknown"), 128, [NoteRequest(60, 80, 0.2, 0.2)])


def test_without_fluidsynth_the_message_brings_the_install_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtraError, match="apt-get install"):
        play_notes(Soundfont("x", tmp_path / "x.sf2", "unknown"), 0, [NoteRequest(60, 80, 0.2, 0.2)])


def test_a_folder_of_samples_is_found_by_its_name_where_there_is_no_soundfont(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "salamander").mkdir()
    monkeypatch.setenv("FUSILI_SOUNDFONTS", str(tmp_path))
    found = find_soundfont("salamander")
    assert found == Soundfont("salamander", tmp_path / "salamander", "CC-BY-3.0")
    assert found.is_sample_folder


def test_a_soundfont_that_is_not_installed_is_replaced_and_its_package_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Mine.sf2").write_bytes(b"RIFF")
    (tmp_path / "TimGM6mb.sf2").write_bytes(b"RIFF")
    monkeypatch.setenv("FUSILI_SOUNDFONTS", str(tmp_path))
    line = r"FluidR3_GM is not installed \(`apt-get install fluid-soundfont-gm` brings it\); TimGM6mb is used"
    with pytest.warns(SoundfontWarning, match=line):
        assert choose_soundfont("FluidR3_GM").name == "TimGM6mb"
    assert choose_soundfont("Mine").name == "Mine"
    with pytest.raises(InputError, match="`apt-get install fluid-soundfont-gm` brings it"):
        choose_soundfont("FluidR3_GM", strict=True)
