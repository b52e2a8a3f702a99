"""Pitch classes of systems, and how a recording agrees with them."""

from pathlib import Path

import numpy as np
import pytest
from example_scores import measure, note, score
from PIL import Image

from fusili_mir.alignment.pitch_classes import PitchClasses
from fusili_mir.pages.pages import Pages, load_pages, render_pages

BARS = [measure(note("C5") + note("G4"), 1, first=True), measure(note("C4", "half"), 2)]


@pytest.fixture
def engraved(tmp_path: Path) -> Pages:
    (tmp_path / "score.musicxml").write_text(score(BARS))
    return render_pages(tmp_path / "score.musicxml")


def test_the_notes_of_a_score_count_by_their_lengths(engraved: Pages) -> None:
    # C lasts a quarter and a half note, G a quarter: 3, 1 and ten times nothing, with mean 1/3
    expected = np.zeros(12)
    expected[0], expected[7] = 3.0, 1.0
    expected = (expected - expected.mean()) / expected.std()
    np.testing.assert_allclose(PitchClasses(engraved).of_systems(np.array([0, 0])), [expected, expected])


def test_transposing_instruments_count_as_they_sound(tmp_path: Path) -> None:
    bars = [BARS[0].replace("</clef>", "</clef><transpose><chromatic>-2</chromatic></transpose>"), BARS[1]]
    (tmp_path / "clarinet.musicxml").write_text(score(bars))
    weights = PitchClasses(render_pages(tmp_path / "clarinet.musicxml")).of_systems(np.array([0]))[0]
    assert np.flatnonzero(weights > 0).tolist() == [5, 10]  # F, B flat


def test_on_images_the_scale_of_the_key_signature_counts(tmp_path: Path) -> None:
    (tmp_path / "flats.musicxml").write_text(score(BARS).replace("<fifths>0<", "<fifths>-4<"))
    Image.fromarray(render_pages(tmp_path / "flats.musicxml").images[0]).save(tmp_path / "flats.png")
    weights = PitchClasses(load_pages(tmp_path / "flats.png")).of_systems(np.array([0]))[0]
    assert np.flatnonzero(weights > 0).tolist() == [0, 1, 3, 5, 7, 8, 10]  # A flat major
    assert weights.mean() == pytest.approx(0.0)
    assert weights.std() == pytest.approx(1.0)
