"""Pages that are encoded once and aligned with several recordings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from example_bundles import write_pitch_bundle
from example_performances import perform, record, tune

from fusili_mir.alignment.aligning import align_recording
from fusili_mir.alignment.encoded_pages import encode_pages_once
from fusili_mir.alignment.played import play_pages
from fusili_mir.errors import InputError
from fusili_mir.model.encoded import EncodedScore
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import Pages, render_pages


class CountingEncoder(Encoder):
    """An encoder that counts the scores it has encoded."""

    n_scores = 0

    def encode_pages(self, pages: Pages, progress: bool = False) -> EncodedScore:
        self.n_scores += 1
        return super().encode_pages(pages, progress)


@pytest.fixture
def encoder(tmp_path: Path) -> CountingEncoder:
    return CountingEncoder(write_pitch_bundle(tmp_path / "pitch"))


@pytest.fixture
def pages(tmp_path: Path) -> Pages:
    (tmp_path / "tune.musicxml").write_text(tune())
    return render_pages(tmp_path / "tune.musicxml")


def test_pages_that_are_encoded_once_give_what_they_give_with_each_recording_alone(
    pages: Pages, encoder: CountingEncoder
) -> None:
    recordings = [record(perform(play_pages(pages), slower=slower)) for slower in (0.0, 0.02)]
    once = encode_pages_once(pages, encoder)
    together = [align_recording(once, recording) for recording in recordings]
    assert encoder.n_scores == 1
    for recording, alignment in zip(recordings, together, strict=True):
        alone = align_recording(pages, recording, encoder)
        np.testing.assert_array_equal(alignment.notes, alone.notes)


def test_encoded_pages_and_another_model_are_refused(pages: Pages, encoder: CountingEncoder) -> None:
    once = encode_pages_once(pages, encoder)
    recording = record(perform(play_pages(pages)))
    with pytest.raises(InputError, match="leave out the model"):
        align_recording(once, recording, Encoder(encoder.bundle))
