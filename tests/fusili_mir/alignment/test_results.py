from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from example_bundles import write_pitch_bundle
from example_performances import PITCHES, perform, record, tune
from PIL import Image

from fusili_mir.alignment.encoded_alignment import align_encoded
from fusili_mir.alignment.played import play_pages
from fusili_mir.alignment.results import Alignment
from fusili_mir.alignment.retrieval import point_at_spot
from fusili_mir.model.encoder import Encoder
from fusili_mir.output.label_files import save_audacity_labels
from fusili_mir.pages.pages import load_pages, render_pages

END_SEC = 0.48 + 15 * 0.48 + 0.111  # soon after the last note of sixteen has begun, within a frame


@pytest.fixture(scope="module", params=["score", "image"])
def leading(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> list[Alignment]:
    """Alignments of a recording that breaks off, with frames that are dated earlier, right and later."""
    folder: Path = tmp_path_factory.mktemp("aligned")
    (folder / "tune.musicxml").write_text(tune(PITCHES))
    engraved = render_pages(folder / "tune.musicxml")
    performed = perform(play_pages(engraved))
    pages = engraved
    if request.param == "image":
        Image.fromarray(engraved.images[0]).save(folder / "page.png")
        pages = load_pages([folder / "page.png"])
    encoder = Encoder(write_pitch_bundle(folder / "bundle"))
    score, audio = encoder.encode_pages(pages), encoder.encode_recording(record(performed, END_SEC))
    return [
        align_encoded(pages, score, replace(audio, grid=replace(audio.grid, start_sec=shift_sec)), 20.0)
        for shift_sec in (-0.5, 0.0, 0.5)
    ]


def test_the_length_of_the_recording_is_exact_to_the_sample(leading: list[Alignment]) -> None:
    assert leading[0].grid.end_sec == pytest.approx(END_SEC, abs=1 / 16_000)


def test_no_time_lies_outside_the_recording(leading: list[Alignment]) -> None:
    for alignment in leading:
        heard = alignment.notes[np.isfinite(alignment.notes["onset_sec"])]
        timed = alignment.measures[np.isfinite(alignment.measures["start_sec"])]
        assert alignment.played is None or len(heard) > 13
        moments = [] if alignment.moments is None else [alignment.moments.seconds]
        seconds = [heard["onset_sec"], heard["offset_sec"], timed["start_sec"], timed["end_sec"], *moments]
        seconds.append(alignment.frames["onset_sec"])
        assert min(each.min(initial=0.0) for each in seconds) >= 0
        assert max(each.max(initial=0.0) for each in seconds) <= alignment.grid.end_sec
        assert np.all(heard["offset_sec"] - heard["onset_sec"] > 0.0199)
        assert np.all(np.diff(alignment.frames["onset_sec"]) >= 0)


def test_labels_end_with_the_recording(leading: list[Alignment], tmp_path: Path) -> None:
    for alignment in leading:
        save_audacity_labels(alignment, tmp_path / "labels.txt")
        lines = (tmp_path / "labels.txt").read_text().splitlines()
        spans = np.array([[float(cell) for cell in line.split("\t")[:2]] for line in lines])
        assert spans.min() >= 0
        assert spans.max() <= round(alignment.grid.end_sec, 6)


def test_places_sound_within_the_recording(leading: list[Alignment]) -> None:
    for alignment in leading:
        height_px, width_px = alignment.pages.images[0].shape
        for x in np.linspace(0, width_px, 7):
            for moment in point_at_spot(alignment, 0, float(x), height_px / 2):
                assert 0 <= moment.seconds <= alignment.grid.end_sec
