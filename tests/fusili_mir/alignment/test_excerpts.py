"""Excerpts: a recording that begins or ends within a score, and a score in the middle of a recording."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from example_bundles import write_pitch_bundle
from example_performances import FRAME_SEC, PITCHES, perform, record, tune

from fusili_mir.alignment.aligning import align_recording
from fusili_mir.alignment.played import play_pages
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import Pages, render_pages

LONG = tuple(
    PITCHES[step * number % 16] for step in (1, 5, 7) for number in range(16)
)  # no stretch comes back
NEAR_SEC = FRAME_SEC + 0.03  # a cut is seen with windows of up to 128 ms


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    return Encoder(write_pitch_bundle(tmp_path_factory.mktemp("bundle") / "pitch"))


def engraved(folder: Path, pitches: tuple[str, ...]) -> Pages:
    (folder / f"{len(pitches)}.musicxml").write_text(tune(pitches))
    return render_pages(folder / f"{len(pitches)}.musicxml")


@pytest.mark.parametrize(("start_sec", "end_sec"), [(5.1, 17.2), (2.2, 12.75), (9.95, 19.55)])
def test_only_notes_that_begin_in_an_excerpt_have_seconds_in_it(
    tmp_path: Path, encoder: Encoder, start_sec: float, end_sec: float
) -> None:
    pages = engraved(tmp_path, LONG)
    performed = perform(play_pages(pages))
    notes = align_recording(
        pages, record(performed), model=encoder, transpose=0, start_sec=start_sec, end_sec=end_sec
    ).notes
    true_sec = performed["onset_sec"]
    inside = (true_sec >= start_sec) & (true_sec < end_sec)
    np.testing.assert_array_equal(np.isfinite(notes["onset_sec"]), inside)
    assert np.abs(notes["onset_sec"] - true_sec)[inside].max() < NEAR_SEC


def test_a_score_in_the_middle_of_a_recording_is_found_from_its_first_note_to_its_last(
    tmp_path: Path, encoder: Encoder
) -> None:
    others = ("C4", "C4", "E5", "E5")
    whole = engraved(tmp_path, (*others, *PITCHES, *others))
    performed = perform(play_pages(whole))
    part = engraved(tmp_path, PITCHES)
    notes = align_recording(part, record(performed), model=encoder, transpose=0).notes
    true_sec = performed["onset_sec"][len(others) : len(others) + len(PITCHES)]
    assert np.abs(notes["onset_sec"] - true_sec).max() < NEAR_SEC
