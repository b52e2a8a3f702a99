from __future__ import annotations

from pathlib import Path

import pytest

from fusili_mir.audio import soundfonts
from fusili_mir.audio.soundfonts import Soundfont, debian_package, find_soundfonts
from fusili_mir.errors import MissingExtraError


def test_own_folders_are_searched_in_place_of_the_usual_ones_and_links_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, own = tmp_path / "usual", tmp_path / "own"
    for folder in (usual, own):
        folder.mkdir()
    (usual / "Usual.sf2").write_bytes(b"RIFF")
    (own / "Mine.sf2").write_bytes(b"RIFF")
    (own / "default.sf2").symlink_to("Mine.sf2")
    (own / "broken.sf3").symlink_to("nowhere.sf3")
    monkeypatch.setattr(soundfonts, "_FOLDERS", (str(usual),))
    monkeypatch.setenv("FUSILI_SOUNDFONTS", "")
    assert [font.name for font in find_soundfonts()] == ["Usual"]
    monkeypatch.setenv("FUSILI_SOUNDFONTS", str(own))
    assert find_soundfonts() == [Soundfont("Mine", own / "Mine.sf2", "unknown")]


def test_known_soundfonts_come_first_whatever_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("Accordion", "TimGM6mb", "FluidR3_GM"):
        (tmp_path / f"{name}.sf2").write_bytes(b"RIFF")
    monkeypatch.setenv("FUSILI_SOUNDFONTS", str(tmp_path))
    assert [font.name for font in find_soundfonts()] == ["FluidR3_GM", "TimGM6mb", "Accordion"]


def test_without_soundfonts_the_message_brings_the_install_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FUSILI_SOUNDFONTS", raising=False)
    monkeypatch.setattr(soundfonts, "_FOLDERS", (str(tmp_path),))
    with pytest.raises(
        MissingExtraError, match="apt-get install --no-install-recommends fluidsynth timgm6mb"
    ):
        find_soundfonts()


def test_a_soundfont_that_debian_does_not_have_has_no_package() -> None:
    assert debian_package("MuseScore_General_Lite") == "musescore-general-soundfont-small"
    assert debian_package("salamander") is None
    assert debian_package("Mine") is None
