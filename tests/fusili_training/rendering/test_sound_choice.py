from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import example_scores
import numpy as np
import pytest
import soundfile

from fusili_mir.errors import InputError
from fusili_mir.scores.score_file import read_score_file
from fusili_training.rendering import sound_choice
from fusili_training.rendering.render_recipe import AudioOptions
from fusili_training.sound.singing import Singer
from fusili_training.sound.soundbank import SoundBank
from fusili_training.sound.sounding_score import read_sounding_score


@dataclass(frozen=True)
class _NamedBank:
    name: str


@dataclass(frozen=True)
class _SoundfontFile:
    name: str
    is_sample_folder: bool = False


@pytest.fixture
def baked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Banks that are names only, and the names in the order in which they were asked for."""
    asked: list[str] = []

    def bake(soundfont: _SoundfontFile, program: int, *_: Any) -> _NamedBank:
        asked.append(f"{soundfont.name} {program}")
        return _NamedBank(asked[-1])

    monkeypatch.setattr(sound_choice, "cached_soundbank", bake)
    monkeypatch.setattr(sound_choice, "find_soundfont", lambda name: _SoundfontFile(name))
    monkeypatch.setenv("FUSILI_SOUNDBANKS", str(tmp_path))
    return asked


def test_parts_of_several_staves_are_played_by_keyboards(baked: list[str], tmp_path: Path) -> None:
    path = tmp_path / "song.musicxml"
    path.write_text(example_scores.song(2))
    score = read_sounding_score(read_score_file(path))
    options = AudioOptions(soundfonts=("a", "b"), keyboard_programs=(0, 1), other_programs=(40, 73))
    voices, keyboards, fonts = set(), set(), set()
    for seed in range(40):
        banks = sound_choice.draw_banks(score, options, np.random.default_rng(seed))
        (voice_font, voice), (keyboard_font, keyboard) = (banks[part].name.split() for part in (0, 1))
        assert voice_font == keyboard_font
        voices.add(voice)
        keyboards.add(keyboard)
        fonts.add(voice_font)
    assert (voices, keyboards, fonts) == ({"40", "73"}, {"0", "1"}, {"a", "b"})


def test_parts_with_words_are_sung_in_the_share_of_scores_that_the_recipe_says(
    baked: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "song.musicxml"
    words = "<lyric><syllabic>single</syllabic><text>La</text></lyric></note>"
    path.write_text(example_scores.song(2).replace("</note>", words, 1))  # the first note of the voice
    score = read_sounding_score(read_score_file(path))
    assert score.sung_parts == {0}
    played, sung = AudioOptions(soundfonts=("a",)), AudioOptions(soundfonts=("a",), singing=0.5)
    n_sung = 0
    for seed in range(60):
        banks = sound_choice.draw_banks(score, sung, np.random.default_rng(seed))
        as_before = sound_choice.draw_banks(score, played, np.random.default_rng(seed))
        assert banks[1] == as_before[1]
        if isinstance(banks[0], Singer):
            n_sung += 1
            assert banks[0].sample_rate_hz == sung.sample_rate_hz
        else:
            assert banks[0] == as_before[0]
    assert 18 < n_sung < 42


def test_single_lines_are_played_by_sampled_instruments_that_reach_their_notes(
    baked: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "song.musicxml"
    path.write_text(example_scores.song(2))
    score = read_sounding_score(read_score_file(path))
    voice = score.notes["pitch"][score.notes["part"] == 0]
    lowest, highest = int(voice.min()), int(voice.max())
    solo = (("flute", lowest, highest), ("viol", 0, 127), ("tuba", 0, lowest), ("bell", lowest + 1, 127))
    options = AudioOptions(soundfonts=("a",), sampled_solo=0.5, solo_samples=solo)
    names = []
    for seed in range(60):
        banks = sound_choice.draw_banks(score, options, np.random.default_rng(seed))
        assert banks[1].name.startswith("a ")  # the keyboard
        names.append(banks[0].name)
    assert {name for name in names if not name.startswith("a ")} == {"flute 0", "viol 0"}
    assert 18 < sum(name.startswith("a ") for name in names) < 42
    with pytest.raises(InputError, match=r"range of tuba is 60\.\.40; expected two MIDI pitches"):
        AudioOptions(solo_samples=(("tuba", 60, 40),))
    with pytest.raises(InputError, match=r"sampled_solo is 0\.5; expected 0 without solo_samples"):
        AudioOptions(sampled_solo=0.5)


def test_a_score_without_words_is_not_sung(baked: list[str], tmp_path: Path) -> None:
    path = tmp_path / "song.musicxml"
    path.write_text(example_scores.song(2))
    score = read_sounding_score(read_score_file(path))
    assert not score.sung_parts
    banks = sound_choice.draw_banks(score, AudioOptions(singing=1.0), np.random.default_rng(0))
    assert not any(isinstance(bank, Singer) for bank in banks.values())


def test_all_banks_of_a_recipe_are_baked_once(baked: list[str]) -> None:
    options = AudioOptions(soundfonts=("a", "b"), keyboard_programs=(0,), other_programs=(0, 40))
    assert [bank.name for bank in sound_choice.bake_banks(options)] == ["a 0", "a 40", "b 0", "b 40"]
    list(sound_choice.bake_banks(options))
    assert len(baked) == 4


def test_a_folder_of_samples_plays_all_parts_and_is_baked_again_when_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = tmp_path / "fonts" / "sines"
    samples.mkdir(parents=True)
    monkeypatch.setenv("FUSILI_SOUNDFONTS", str(samples.parent))
    monkeypatch.setenv("FUSILI_SOUNDBANKS", str(tmp_path / "banks"))
    rate_hz = 8000
    seconds = np.arange(rate_hz // 2) / rate_hz
    for octave in range(1, 9):
        tone = np.sin(2 * np.pi * 32.7 * 2 ** (octave - 1) * seconds) * np.exp(-8 * seconds)
        soundfile.write(samples / f"C{octave}.wav", tone, rate_hz)
    path = tmp_path / "song.musicxml"
    path.write_text(example_scores.song(2))
    score = read_sounding_score(read_score_file(path))
    options = AudioOptions(sample_rate_hz=rate_hz, soundfonts=("sines",))
    banks = sound_choice.draw_banks(score, options, np.random.default_rng(0))
    assert {bank.name for bank in banks.values()} == {"sines"}
    assert isinstance(banks[0], SoundBank)
    assert banks[0].velocities == (64,)
    baked_once = {place.name for place in (tmp_path / "banks").iterdir()}
    assert len(baked_once) == 1
    soundfile.write(samples / "A4.wav", tone[:3000], rate_hz)
    sound_choice._opened_bank.cache_clear()
    sound_choice.draw_banks(score, options, np.random.default_rng(0))
    assert len(list((tmp_path / "banks").iterdir())) == 2
