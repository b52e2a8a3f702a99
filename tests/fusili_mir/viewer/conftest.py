"""Alignments that the tests of the viewer share, and a browser to see them in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import soundfile
from example_browser import Window, open_browser
from example_bundles import write_pitch_bundle
from example_performances import PITCHES, perform, record, tune
from example_scores import VOLTAS
from PIL import Image

from fusili_mir.alignment.aligning import align_recording
from fusili_mir.alignment.played import play_pages
from fusili_mir.alignment.results import Alignment
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import Pages, load_pages, render_pages

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TILT_DEG = 1.3


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
def song(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    """Twenty-four measures of two notes, in several systems."""
    return engraved(tmp_path_factory.mktemp("score"), "song", tune(PITCHES * 3))


@pytest.fixture(scope="session")
def played(song: Pages, encoder: Encoder) -> Alignment:
    return align_recording(song, record(perform(play_pages(song))), model=encoder)


@pytest.fixture(scope="session")
def slower(song: Pages, encoder: Encoder) -> Alignment:
    """The same song, played more slowly towards its end, after a longer silence."""
    return align_recording(
        song, record(perform(play_pages(song), start_sec=1.2, slower=0.004)), model=encoder
    )


@pytest.fixture(scope="session")
def of_tilted_images(tmp_path_factory: pytest.TempPathFactory, song: Pages, encoder: Encoder) -> Alignment:
    """A page on yellow paper, turned counter-clockwise."""
    folder = tmp_path_factory.mktemp("score")
    grey = np.asarray(song.images[0])
    paper = Image.fromarray(np.stack([grey, grey, grey // 2], axis=-1))
    paper.rotate(TILT_DEG, Image.Resampling.BICUBIC, fillcolor=(255, 255, 127)).save(folder / "scan.png")
    return align_recording(load_pages(folder / "scan.png"), record(perform(play_pages(song))), model=encoder)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture
def window(browser: Browser) -> Iterator[Window]:
    """A new window; the test fails if the page complains or asks for anything outside."""
    context = browser.new_context(viewport={"width": 1100, "height": 800}, accept_downloads=True)
    opened = Window(context.new_page())
    yield opened
    context.close()
    assert opened.complaints == []
    outside = [url for url in opened.requests if not url.startswith(("file:", "blob:", "http://127.0.0.1:"))]
    assert outside == []
