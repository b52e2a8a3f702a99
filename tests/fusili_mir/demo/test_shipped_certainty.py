"""What the bundle that ships says about how sure it is: on its example, on another piece, and with nonsense."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from example_scores import measure, note, score

from fusili_mir.alignment.encoded_alignment import AlignmentWarning, align_encoded
from fusili_mir.alignment.fitted_decoding import decoding_options
from fusili_mir.alignment.results import Alignment
from fusili_mir.arrays import Float64, Table
from fusili_mir.decoding.certainty import Certainty
from fusili_mir.demo.example import Example, load_example
from fusili_mir.model.bundle import default_bundle
from fusili_mir.model.encoded import EncodedAudio
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import Pages, load_pages, render_pages


@pytest.fixture(scope="module")
def example() -> Example:
    return load_example()


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder(default_bundle(), n_threads=1)


@pytest.fixture(scope="module")
def audio(example: Example, encoder: Encoder) -> EncodedAudio:
    return encoder.encode_recording(example.recording)


@pytest.fixture(scope="module")
def with_score(example: Example, encoder: Encoder, audio: EncodedAudio) -> Alignment:
    return aligned(encoder, render_pages(example.score), audio)


@pytest.fixture(scope="module")
def from_page(example: Example, encoder: Encoder, audio: EncodedAudio) -> Alignment:
    return aligned(encoder, load_pages(example.page), audio)


def aligned(encoder: Encoder, pages: Pages, audio: EncodedAudio) -> Alignment:
    options = decoding_options(encoder.bundle)
    scale = encoder.bundle.manifest.scale
    return align_encoded(pages, encoder.encode_pages(pages), audio, scale, options=options)


def other_piece(folder: Path) -> Path:
    """Write a tune of 40 measures that is not the example."""
    rng = np.random.default_rng(3)
    names = [f"{step}{octave}" for octave in (4, 5) for step in "CDEFGAB"]
    walk = np.clip(np.cumsum(rng.integers(-2, 3, 160)) + 7, 0, 13).reshape(40, 4)
    bars = ["".join(note(names[place]) for place in row) for row in walk]
    file = folder / "other.musicxml"
    file.write_text(score([measure(bar, number + 1, first=not number) for number, bar in enumerate(bars)]))
    return file


def true_onsets(example: Example, notes: Table) -> Float64:
    truth = dict(zip(example.truth["id"].tolist(), example.truth["onset_sec"].tolist(), strict=True))
    return np.array([truth.get(each, np.nan) for each in notes["notated_id"].tolist()])


def test_the_recording_is_taken_to_be_of_its_score_and_of_its_page(
    with_score: Alignment, from_page: Alignment
) -> None:
    assert with_score.reliability > 0.9
    assert from_page.reliability > 0.9


def test_the_recording_of_another_piece_is_recognised(
    tmp_path: Path, encoder: Encoder, audio: EncodedAudio
) -> None:
    with pytest.warns(AlignmentWarning, match="is it a recording of"):
        wrong = aligned(encoder, render_pages(other_piece(tmp_path)), audio)
    assert wrong.reliability < 0.1
    assert wrong.notes["confidence"].max() < 0.1


def test_intervals_contain_the_times_that_were_found(with_score: Alignment, from_page: Alignment) -> None:
    for times, found in (
        (with_score.notes, "onset_sec"),
        (with_score.measures, "start_sec"),
        (from_page.measures, "start_sec"),
    ):
        assert np.all(times["earliest_sec"] <= times[found])
        assert np.all(times[found] <= times["latest_sec"])
    for alignment in (with_score, from_page):
        frames, middle_sec = alignment.frames, alignment.grid.centre(np.arange(len(alignment.grid)))
        inside = middle_sec <= alignment.grid.end_sec
        assert np.all((frames["earliest_sec"] <= middle_sec)[inside])
        assert np.all((middle_sec <= frames["latest_sec"])[inside])


def test_intervals_are_narrow_and_nine_in_ten_hold(example: Example, with_score: Alignment) -> None:
    notes = with_score.notes
    true_sec = true_onsets(example, notes)
    known = np.isfinite(true_sec) & np.isfinite(notes["onset_sec"])
    holds = (notes["earliest_sec"] <= true_sec) & (true_sec <= notes["latest_sec"])
    assert holds[known].mean() >= 0.8  # other instruments than those that it was fitted to
    assert np.median((notes["latest_sec"] - notes["earliest_sec"])[known]) < 0.15


def test_times_are_right_about_as_often_as_they_say(example: Example, with_score: Alignment) -> None:
    notes = with_score.notes
    errors_sec = np.abs(notes["onset_sec"] - true_onsets(example, notes))
    known = np.isfinite(errors_sec)
    assert np.mean(errors_sec[known] <= 0.1) == pytest.approx(notes["confidence"][known].mean(), abs=0.05)


def test_nonsense_in_the_weights_is_no_longer_calibrated(
    example: Example, encoder: Encoder, audio: EncodedAudio, with_score: Alignment
) -> None:
    options, scale = decoding_options(encoder.bundle), encoder.bundle.manifest.scale
    fitted = options.law.certainty
    assert isinstance(fitted, Certainty)
    unsure = replace(fitted, right=replace(fitted.right, base=fitted.right.base - 3.0))
    pages = with_score.pages
    encoded = encoder.encode_pages(pages)
    law = replace(options.law, certainty=unsure)
    found = align_encoded(pages, encoded, audio, scale, options=replace(options, law=law))
    assert found.notes["confidence"].mean() < with_score.notes["confidence"].mean() - 0.05
