"""Tempo of measures: 48 quarter notes of 0.48 s, two a measure, so 125 beats and 62.5 measures a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_bundles import write_pitch_bundle
from example_performances import PITCHES, perform, record, tune
from PIL import Image

from fusili_mir.alignment.aligning import align_recording
from fusili_mir.alignment.measure_tempo import measure_tempo
from fusili_mir.alignment.played import play_pages
from fusili_mir.alignment.results import Alignment
from fusili_mir.model.encoder import Encoder
from fusili_mir.output.verovio_timemap import timemap
from fusili_mir.pages.pages import Pages, load_pages, render_pages

LONG = tuple(PITCHES[step * number % 16] for step in (1, 5, 7) for number in range(16))
# Measure 5 begins at 4.32 s, and its second note at 4.8 s; measure 18 at 16.8 s, and its second note at 17.28 s.
START_SEC, END_SEC = 4.6, 17.2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tempo")
    (folder / "tune.musicxml").write_text(tune(LONG))
    return folder


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Encoder:
    return Encoder(write_pitch_bundle(folder / "bundle"))


@pytest.fixture(scope="module")
def engraved(folder: Path) -> Pages:
    return render_pages(folder / "tune.musicxml")


def excerpt(engraved: Pages, pages: Pages, encoder: Encoder, **span: Any) -> Alignment:
    recording = record(perform(play_pages(engraved)))
    return align_recording(pages, recording, model=encoder, transpose=0, **span)


def test_with_a_score_a_measure_that_is_cut_has_the_tempo_of_its_onsets(
    engraved: Pages, encoder: Encoder
) -> None:
    alignment = excerpt(engraved, engraved, encoder, start_sec=4.6, end_sec=17.4)
    heard = np.isfinite(alignment.measures["start_sec"])
    tempo = measure_tempo(alignment)
    known = heard & np.isfinite(tempo.beats_per_minute)
    assert known.sum() >= heard.sum() - 2  # a single onset in a measure tells nothing
    assert tempo.beats_per_minute[known] == pytest.approx(125.0, rel=0.12)
    np.testing.assert_allclose(tempo.measures_per_minute[known], tempo.beats_per_minute[known] / 2)
    assert np.isnan(tempo.beats_per_minute[~heard]).all()


def test_timemaps_have_the_tempo_of_the_music_where_a_measure_is_cut(
    engraved: Pages, encoder: Encoder
) -> None:
    events = timemap(excerpt(engraved, engraved, encoder, start_sec=START_SEC, end_sec=END_SEC))
    tempos = [event["tempo"] for event in events if "tempo" in event]
    assert len(tempos) > 8
    assert tempos == pytest.approx([125.0] * len(tempos), rel=0.12)


def test_on_images_the_tempo_of_measures_that_are_cut_is_unknown(
    folder: Path, engraved: Pages, encoder: Encoder
) -> None:
    Image.fromarray(engraved.images[0]).save(folder / "tune.png")
    scan = load_pages(folder / "tune.png")
    tempo = measure_tempo(excerpt(engraved, scan, encoder, start_sec=START_SEC, end_sec=END_SEC))
    assert np.isnan(tempo.measures_per_minute[[0, -1]]).all()
    assert tempo.measures_per_minute[1:-1] == pytest.approx(62.5, rel=0.12)
    whole = measure_tempo(excerpt(engraved, scan, encoder))
    assert np.isfinite(whole.measures_per_minute).all()
    assert np.isnan(whole.beats_per_minute).all()
