from __future__ import annotations

import hashlib
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest
import soundfile
from example_bundles import write_pitch_bundle
from example_performances import perform, record, tune
from PIL import Image

import fusili_mir
from fusili_mir.alignment.aligning import align_recording
from fusili_mir.alignment.played import play_pages
from fusili_mir.alignment.provenance import FileOrigin, find_provenance
from fusili_mir.audio.recording import open_recording
from fusili_mir.model.bundle import Bundle
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import load_pages, render_pages


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("provenance")
    (folder / "tune.musicxml").write_text(tune())
    pages = render_pages(folder / "tune.musicxml")
    Image.fromarray(pages.images[0]).save(folder / "page.png")
    soundfile.write(folder / "tune.wav", record(perform(play_pages(pages))).samples, 16_000)
    return folder


@pytest.fixture(scope="module")
def bundle(folder: Path) -> Bundle:
    return write_pitch_bundle(folder / "bundle")


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_a_result_names_its_files_by_content_and_without_folders(folder: Path, bundle: Bundle) -> None:
    pages = render_pages(folder / "tune.musicxml")
    made_with = align_recording(
        pages, folder / "tune.wav", model=Encoder(bundle), repeats="as_written"
    ).made_with
    assert made_with is not None
    assert made_with.score == (FileOrigin("tune.musicxml", sha256(folder / "tune.musicxml")),)
    assert made_with.recording == FileOrigin("tune.wav", sha256(folder / "tune.wav"))
    assert made_with.sample_rate_hz == 16_000
    assert made_with.options["repeats"] == "as_written"
    assert made_with.options["cuts"] is False
    assert (made_with.model.name, made_with.model.image_sha256) == ("pitch", bundle.image.sha256)
    assert made_with.versions["fusili-mir"] == fusili_mir.__version__
    assert made_with.versions["verovio"] == metadata.version("verovio")


def test_an_excerpt_names_its_file_and_its_stretch(folder: Path, bundle: Bundle) -> None:
    pages = load_pages(folder / "page.png")
    excerpt = open_recording(folder / "tune.wav", 1.0, 4.0)
    made_with = find_provenance(pages, excerpt, bundle)
    assert made_with.score == (FileOrigin("page.png", sha256(folder / "page.png")),)
    assert made_with.recording.sha256 == sha256(folder / "tune.wav")
    assert made_with.options == {"start_sec": 1.0, "end_sec": 4.0}


def test_what_is_in_memory_or_gone_has_no_checksum(folder: Path, bundle: Bundle) -> None:
    pages = replace(render_pages(folder / "tune.musicxml"), filename="gone.musicxml")
    sound = open_recording(soundfile.read(folder / "tune.wav"))
    made_with = find_provenance(pages, sound, bundle)
    assert made_with.score == (FileOrigin("gone.musicxml", None),)
    assert made_with.recording.sha256 is None
