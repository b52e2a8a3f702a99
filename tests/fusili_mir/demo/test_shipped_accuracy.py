"""Floors of accuracy with the bundle that ships: nonsense in a constant of the decoder falls through them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from fusili_mir.alignment.aligning import align_recording
from fusili_mir.alignment.encoded_alignment import align_encoded
from fusili_mir.alignment.fitted_decoding import decoding_options
from fusili_mir.alignment.results import Alignment
from fusili_mir.arrays import Table
from fusili_mir.audio.recording import open_recording
from fusili_mir.demo.demonstration import OnsetErrors, errors_of_notes, errors_of_places
from fusili_mir.demo.example import Example, load_example
from fusili_mir.model.bundle import default_bundle
from fusili_mir.model.encoded import EncodedAudio, EncodedScore
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import Pages, load_pages, render_pages


@pytest.fixture(scope="module")
def example() -> Example:
    return load_example()


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder(default_bundle(), n_threads=1)


@pytest.fixture(scope="module")
def song(example: Example, encoder: Encoder) -> tuple[Pages, EncodedScore, EncodedAudio]:
    pages = render_pages(example.score)
    return pages, encoder.encode_pages(pages), encoder.encode_recording(example.recording)


def aligned(
    encoder: Encoder,
    pages: Pages,
    score: EncodedScore,
    audio: EncodedAudio,
    changed: Mapping[str, float] = MappingProxyType({}),
) -> Alignment:
    options = decoding_options(encoder.bundle)
    law = replace(options.law, **changed)  # type: ignore[arg-type]
    return align_encoded(
        pages, score, audio, encoder.bundle.manifest.scale, options=replace(options, law=law)
    )


def within(errors: OnsetErrors, *tolerances_ms: float) -> list[float]:
    return [errors.share_within(ms) for ms in tolerances_ms]


def test_the_demo_song_is_aligned_with_its_score(
    example: Example, encoder: Encoder, song: tuple[Pages, EncodedScore, EncodedAudio]
) -> None:
    errors = errors_of_notes(aligned(encoder, *song), example.truth)
    assert errors.median_ms < 9
    assert np.all(np.array(within(errors, 25, 50, 250)) >= [0.85, 0.97, 0.99])


@pytest.mark.filterwarnings("ignore:the score hardly explains")
@pytest.mark.filterwarnings("ignore:.* measures that repeats name are heard")
@pytest.mark.filterwarnings("ignore:.*unlike the measures")
def test_measures_as_played_are_named_so_that_they_can_be_given_again(
    example: Example, encoder: Encoder
) -> None:
    for order in ("0-17 19-20", "5 5 5 5", "0-4 8-12"):
        alignment = align_recording(
            example.score, example.recording, model=encoder, repeats=order, end_sec=8.0
        )
        assert alignment.repeats == order


def test_the_demo_song_is_aligned_with_its_page(
    example: Example, encoder: Encoder, song: tuple[Pages, EncodedScore, EncodedAudio]
) -> None:
    page = load_pages(example.page)
    alignment = aligned(encoder, page, encoder.encode_pages(page), song[2])
    assert alignment.repeats == "1-18 20-21"
    assert "19" not in alignment.measures["number"]  # the first ending is leapt over
    errors = errors_of_places(alignment, example.truth)
    assert errors.median_ms < 12
    assert np.all(np.array(within(errors, 25, 50, 250)) >= [0.74, 0.86, 0.90])


@pytest.mark.parametrize(("start_sec", "end_sec"), [(8.0, 26.0), (12.5, 30.3), (30.0, 44.0)])
def test_excerpts_are_found_in_the_whole_score_up_to_their_ends(
    example: Example,
    encoder: Encoder,
    song: tuple[Pages, EncodedScore, EncodedAudio],
    start_sec: float,
    end_sec: float,
) -> None:
    audio = encoder.encode_recording(open_recording(example.recording, start_sec, end_sec))
    inside = (example.truth["onset_sec"] > start_sec) & (example.truth["onset_sec"] < end_sec)
    truth: Table = example.truth[inside]
    alignment = aligned(encoder, song[0], song[1], audio)
    errors = errors_of_notes(alignment, truth)
    assert len(truth) > 50
    assert np.all(np.array(within(errors, 50, 250)) >= [0.93, 0.95])
    given = alignment.notes[np.isfinite(alignment.notes["onset_sec"])]
    assert np.isin(given["notated_id"], truth["id"]).mean() > 0.9  # few that begin before or after it


@pytest.mark.parametrize(
    "nonsense",
    [
        {"onset_weight": 0.0},
        {"onset_strength": 30.0},
        {"jitter_sec": 5.0, "duration_spread": 50.0, "onset_weight": 0.0},
        {"bias_sec": 0.1},
        {"sound_weight": 50.0},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:the score hardly explains the recording")
def test_nonsense_in_a_constant_falls_through_the_floor(
    example: Example,
    encoder: Encoder,
    song: tuple[Pages, EncodedScore, EncodedAudio],
    nonsense: dict[str, float],
) -> None:
    errors = errors_of_notes(aligned(encoder, *song, nonsense), example.truth)
    assert np.any(np.array(within(errors, 25, 50, 250)) < [0.85, 0.97, 0.99])
