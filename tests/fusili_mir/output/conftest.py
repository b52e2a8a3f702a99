"""Alignments that the tests of all writers share, each made once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from example_bundles import write_pitch_bundle
from example_performances import PITCHES, perform, record, tune
from example_scores import VOLTAS, measure, note, score
from PIL import Image

from fusili_mir.alignment.aligning import align_recording
from fusili_mir.alignment.played import play_pages
from fusili_mir.alignment.results import Alignment
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import Pages, load_pages, render_pages

TILT_DEG = 1.3
BACK = "<backup><duration>4</duration></backup>"


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    return Encoder(write_pitch_bundle(tmp_path_factory.mktemp("bundle") / "pitch"))


def engraved(folder: Path, name: str, content: str) -> Pages:
    (folder / f"{name}.musicxml").write_text(content, encoding="utf-8")
    return render_pages(folder / f"{name}.musicxml")


@pytest.fixture(scope="session")
def repeated(tmp_path_factory: pytest.TempPathFactory, encoder: Encoder) -> Alignment:
    """A pick-up, a repeat with two endings, grace notes and a tie; the recording is a file."""
    folder = tmp_path_factory.mktemp("score")
    pages = engraved(folder, "voltas", VOLTAS)
    performed = perform(play_pages(pages, "maximal"))
    soundfile.write(folder / "voltas.wav", record(performed).samples, 16_000)
    return align_recording(pages, folder / "voltas.wav", model=encoder)


@pytest.fixture(scope="session")
def cut_short(tmp_path_factory: pytest.TempPathFactory, encoder: Encoder) -> Alignment:
    """A recording that ends before the last six notes of the score."""
    pages = engraved(tmp_path_factory.mktemp("score"), "tune", tune())
    performed = perform(play_pages(pages))
    return align_recording(pages, record(performed, end_sec=float(performed["onset_sec"][10])), model=encoder)


def duet_score() -> str:
    """A voice, and a piano whose two voices and the singer all strike the same keys; sixteen notes each."""
    sung, played = [], []
    for i in range(0, len(PITCHES), 2):
        bar = "".join(note(pitch) for pitch in PITCHES[i : i + 2])
        second = bar.replace("<voice>1</voice>", "<voice>2</voice>")
        sung.append(measure(bar, i // 2 + 1, first=i == 0))
        played.append(measure(bar + BACK + second, i // 2 + 1, first=i == 0))
    content = score(sung, played)
    for number, name in enumerate(("Singstimme", "Klavier"), start=1):
        content = content.replace(f"<part-name>P{number}<", f"<part-name>{name}<")
    return content


@pytest.fixture(scope="session")
def duet(tmp_path_factory: pytest.TempPathFactory, encoder: Encoder) -> Alignment:
    pages = engraved(tmp_path_factory.mktemp("score"), "duet", duet_score())
    performed = perform(play_pages(pages), start_sec=2.4, slower=0.002)
    return align_recording(pages, record(performed), model=encoder)


def without_measures(pages: Pages) -> Pages:
    """Return pages as if no bar line had been found on them."""
    return replace(pages, measures=pages.measures[:0], bar_lines=pages.bar_lines[:0], repeats=None)


@pytest.fixture(scope="session")
def of_images(tmp_path_factory: pytest.TempPathFactory, encoder: Encoder) -> Alignment:
    folder = tmp_path_factory.mktemp("score")
    pages = engraved(folder, "tune", tune())
    Image.fromarray(pages.images[0]).save(folder / "page.png")
    scan = without_measures(load_pages(folder / "page.png"))
    return align_recording(scan, record(perform(play_pages(pages))), model=encoder)


@pytest.fixture(scope="session")
def of_read_images(tmp_path_factory: pytest.TempPathFactory, encoder: Encoder) -> Alignment:
    """The same, with the measures that were read from the page."""
    pages = engraved(tmp_path_factory.mktemp("score"), "tune", tune())
    return align_recording(load_pages([pages.images[0]]), record(perform(play_pages(pages))), model=encoder)


@pytest.fixture(scope="session")
def of_tilted_images(tmp_path_factory: pytest.TempPathFactory, encoder: Encoder) -> Alignment:
    """A page on yellow paper, turned counter-clockwise."""
    folder = tmp_path_factory.mktemp("score")
    pages = engraved(folder, "tune", tune(PITCHES * 3))
    grey = np.asarray(pages.images[0])
    paper = Image.fromarray(np.stack([grey, grey, grey // 2], axis=-1))
    paper.rotate(TILT_DEG, Image.Resampling.BICUBIC, fillcolor=(255, 255, 127)).save(folder / "scan.png")
    scan = without_measures(load_pages(folder / "scan.png"))
    return align_recording(scan, record(perform(play_pages(pages))), model=encoder)
