"""Results at the speed at which a recording was read, and at its own."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from example_bundles import write_pitch_bundle
from example_performances import perform, record, tune

from fusili_mir.alignment.encoded_alignment import align_encoded
from fusili_mir.alignment.played import play_pages
from fusili_mir.alignment.playing_speed import audio_at_speed, result_at_own_speed
from fusili_mir.alignment.results import Alignment
from fusili_mir.model.encoded import EncodedAudio
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import render_pages


@pytest.fixture(scope="module")
def encoded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Alignment, EncodedAudio]:
    folder: Path = tmp_path_factory.mktemp("speed")
    (folder / "tune.musicxml").write_text(tune())
    pages = render_pages(folder / "tune.musicxml")
    encoder = Encoder(write_pitch_bundle(folder / "bundle"), n_threads=1)
    audio = encoder.encode_recording(record(perform(play_pages(pages))))
    return align_encoded(pages, encoder.encode_pages(pages), audio, 20.0), audio


def test_a_recording_at_the_usual_speed_is_left_alone(encoded: tuple[Alignment, EncodedAudio]) -> None:
    alignment, audio = encoded
    assert audio_at_speed(audio, audio.grid.frame_sec) is audio
    assert result_at_own_speed(alignment, audio.grid) is alignment


def test_there_and_back_all_times_are_the_same(encoded: tuple[Alignment, EncodedAudio]) -> None:
    _, audio = encoded
    late = replace(audio, grid=replace(audio.grid, start_sec=5.0, audio_start_sec=5.0))
    slow = audio_at_speed(late, 0.05)
    assert slow.grid.frame_sec == pytest.approx(0.05)
    assert slow.grid.start_sec == 5.0
    assert slow.grid.end_sec - 5.0 == pytest.approx(1.25 * (late.grid.end_sec - 5.0))
    assert slow.envelope.step_sec == pytest.approx(0.0125)
    assert slow.onsets.step_sec == pytest.approx(0.0125)
    assert audio_at_speed(slow, 0.04).grid.end_sec == pytest.approx(late.grid.end_sec)


def test_every_table_of_a_result_is_in_the_recordings_own_seconds(
    encoded: tuple[Alignment, EncodedAudio],
) -> None:
    alignment, audio = encoded
    stretched = replace(audio.grid, frame_sec=0.05, audio_sec=1.25 * audio.grid.end_sec)
    own = result_at_own_speed(alignment, stretched)
    assert own.grid == stretched
    tables = {
        "notes": ("onset_sec", "offset_sec"),
        "measures": ("start_sec", "end_sec"),
        "frames": ("onset_sec",),
    }
    for name, columns in tables.items():
        for column in (*columns, "earliest_sec", "latest_sec"):
            found, expected = getattr(own, name)[column], 1.25 * getattr(alignment, name)[column]
            np.testing.assert_allclose(found, expected)
