from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest
from example_scores import melody

from fusili_mir.errors import InputError
from fusili_mir.pages.pages import render_pages
from fusili_mir.scores.musescore import convert_with_musescore, find_musescore
from fusili_mir.scores.score_warning import ScoreWarning

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="the stand-in for MuseScore is a shell script"
)


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a program with the name and the arguments of MuseScore on the path."""
    programs = folder / "bin"
    programs.mkdir()
    (programs / "mscore").write_text(f"#!/bin/sh\n{script}\n")
    (programs / "mscore").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")


def musescore_file(folder: Path, name: str = "piece.mscz") -> Path:
    with zipfile.ZipFile(folder / name, "w") as archive:
        archive.writestr("piece.mscx", "<museScore version='4.20'/>")
    return folder / name


def test_without_musescore_its_files_are_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if find_musescore() is not None:
        pytest.skip("MuseScore is installed outside of the path")
    with pytest.raises(InputError, match="install it, or export MusicXML from MuseScore"):
        render_pages(musescore_file(tmp_path))


@pytest.mark.parametrize("name", ["piece.mscz", "renamed.zip"])
def test_an_installed_musescore_converts_its_files_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "converted.musicxml").write_text(melody(2))
    install(tmp_path, monkeypatch, f'cp "{tmp_path}/converted.musicxml" "$3"')
    with pytest.warns(ScoreWarning, match="converted to MusicXML by MuseScore"):
        pages = render_pages(musescore_file(tmp_path, name))
    assert pages.notes["id"].tolist() == ["p0n0", "p0n1", "p0n2", "p0n3"]


def test_uncompressed_files_of_musescore_are_recognised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "echo no such license >&2; exit 3")
    file = tmp_path / "piece.xml"
    file.write_text("<?xml version='1.0'?><museScore version='4.20'></museScore>")
    with pytest.raises(InputError, match=r"cannot convert it \(exit code 3: no such license\)"):
        render_pages(file)


def test_a_program_that_writes_nothing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "exit 0")
    with pytest.raises(InputError, match="can MuseScore open it"):
        convert_with_musescore(musescore_file(tmp_path))
