"""What is said about an order of measures that a recording does not follow: eight measures of 0.96 s."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from example_bundles import write_pitch_bundle
from example_performances import PITCHES, perform, record, tune
from PIL import Image

from fusili_mir.alignment.aligning import align_recording
from fusili_mir.alignment.encoded_alignment import AlignmentWarning
from fusili_mir.alignment.played import play_pages
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import Pages, load_pages, render_pages

LONG = tuple(PITCHES[step * number % 16] for step in (1, 5, 7) for number in range(16))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    return Encoder(write_pitch_bundle(tmp_path_factory.mktemp("bundle") / "pitch"))


@pytest.fixture(scope="module")
def engraved(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    file = tmp_path_factory.mktemp("score") / "tune.musicxml"
    file.write_text(tune(LONG))
    return render_pages(file)


@pytest.fixture(params=["score", "images"])
def pages(request: pytest.FixtureRequest, engraved: Pages, tmp_path: Path) -> Pages:
    if request.param == "score":
        return engraved
    Image.fromarray(engraved.images[0]).save(tmp_path / "tune.png")
    return load_pages(tmp_path / "tune.png")


def test_measures_that_leave_most_of_a_recording_unexplained_are_doubted(
    engraved: Pages, pages: Pages, encoder: Encoder
) -> None:
    recording = record(perform(play_pages(engraved)))
    with pytest.warns(AlignmentWarning) as warned:
        align_recording(pages, recording, model=encoder, transpose=0, repeats="1-6")
    messages = [str(each.message) for each in warned]
    assert any("s of the recording are unlike the measures" in text or "hardly" in text for text in messages)
    assert all("\n" not in text for text in messages)


def test_measures_that_are_not_heard_are_doubted(engraved: Pages, pages: Pages, encoder: Encoder) -> None:
    recording = record(perform(play_pages(engraved)))
    with pytest.warns(AlignmentWarning, match="of the 48 measures that repeats name are heard"):
        align_recording(pages, recording, model=encoder, transpose=0, repeats="1-24 1-24")


def test_measures_as_they_are_played_are_not_doubted(engraved: Pages, pages: Pages, encoder: Encoder) -> None:
    recording = record(perform(play_pages(engraved, ((0, 8), (0, 24)))))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = align_recording(pages, recording, model=encoder, transpose=0, repeats="1-8 1-24")
    assert found.repeats == "1-8 1-24"
