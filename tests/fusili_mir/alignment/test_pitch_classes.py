"""Pitch classes of systems, and how a recording agrees with them."""

from pathlib import Path

import numpy as np
import pytest
from example_scores import measure, melody, note, score
from PIL import Image

from fusili_mir.alignment.pitch_classes import PitchClasses, agreement_by_key
from fusili_mir.audio.spectral_peaks import SpectralPeaks
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


def test_passages_are_systems_and_two_systems_in_a_row(tmp_path: Path) -> None:
    (tmp_path / "score.musicxml").write_text(melody(80))
    pages = render_pages(tmp_path / "score.musicxml")
    n = len(pages.systems)
    assert n > 2
    passages = PitchClasses(pages).of_passages
    assert passages.shape == (2 * n - 1, 12)
    np.testing.assert_allclose(passages[n], (passages[0] + passages[1]) / 2)
    np.testing.assert_allclose(passages[-1], (passages[n - 2] + passages[n - 1]) / 2)


def test_a_triad_agrees_in_the_keys_in_which_the_score_has_it() -> None:
    heard = SpectralPeaks(np.zeros(3), np.array([500.0, 900.0, 1200.0]), np.ones(3), 0.25)  # D, F sharp, A
    passages = np.zeros((2, 12))
    passages[0, [0, 4, 7]] = passages[1, [5, 9, 0]] = 1.0  # C major, F major
    agreed = agreement_by_key(heard, passages, 0.0)
    # a tone above C major, or a minor third below F major
    assert np.flatnonzero(agreed > 0.99).tolist() == [2, 9]
    # if the tuning is a semitone higher, each key is one less
    np.testing.assert_allclose(agreement_by_key(heard, passages, 100.0), np.roll(agreed, -1))


def test_nothing_heard_agrees_with_every_key_alike() -> None:
    nothing = SpectralPeaks(np.zeros(0), np.zeros(0), np.zeros(0), step_sec=0.25)
    assert agreement_by_key(nothing, np.eye(12), 0.0).tolist() == [0.0] * 12
