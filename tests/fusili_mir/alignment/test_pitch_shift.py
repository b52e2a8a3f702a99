"""Finding the pitch of recordings whose shift is known, with the model that hears naturals."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
import soxr
from example_bundles import NATURALS, write_pitch_bundle
from example_performances import perform, record, tune
from PIL import Image

from fusili_mir.alignment.aligning import align_recording
from fusili_mir.alignment.pitch_shift import find_pitch
from fusili_mir.alignment.played import play_pages
from fusili_mir.alignment.results import Alignment
from fusili_mir.arrays import Float32, Float64
from fusili_mir.audio.heard_recording import HeardRecording
from fusili_mir.audio.pitch_curve import PitchCurve, Retuning
from fusili_mir.audio.recording import AudioSamples
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import Pages, load_pages, render_pages

RATE_HZ = 16_000
N_NOTES = 200  # 97 seconds
pytestmark = pytest.mark.filterwarnings("ignore::fusili_mir.alignment.encoded_alignment.AlignmentWarning")
Align: TypeAlias = Callable[..., Alignment]


def pitches(seed: int, n_notes: int = N_NOTES) -> list[str]:
    """Draw notes of C major in the middle of the staff, none twice in a row."""
    rng = np.random.default_rng(seed)
    steps = np.cumsum(rng.integers(1, 9, n_notes)) % 9
    return [NATURALS[3 + step] for step in steps]


class Piece:
    """A melody: its pages, its recording at the pitch of the score, and its true onsets."""

    def __init__(self, folder: Path, seed: int, transpose: str = "") -> None:
        file = folder / f"melody{seed}{len(transpose)}.musicxml"
        file.write_text(tune(pitches(seed)).replace("</clef>", f"</clef>{transpose}", 1))
        self.pages = render_pages(file)
        performed = perform(play_pages(self.pages), slower=0.0002)
        self.onset_sec: Float64 = performed["onset_sec"]
        self.samples: Float32 = record(performed).samples

    def shifted(self, cents: float) -> AudioSamples:
        return AudioSamples(soxr.resample(self.samples, 1.0, 2 ** (-cents / 1200)), RATE_HZ)

    def images(self, folder: Path) -> Pages:
        files = []
        for number, image in enumerate(self.pages.images):
            files.append(folder / f"page{number}.png")
            Image.fromarray(image).save(files[-1])
        return load_pages(files)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pitch")


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Encoder:
    return Encoder(write_pitch_bundle(folder / "bundle"), n_threads=1)


@pytest.fixture(scope="module")
def piece(folder: Path) -> Piece:
    return Piece(folder, seed=1)


def median_error_sec(alignment: Alignment, onset_sec: Float64) -> float:
    return float(np.nanmedian(np.abs(alignment.notes["onset_sec"] - onset_sec)))


@pytest.mark.parametrize("cents", [-700.0, -212.0, -101.3, 163.0, 500.0])
def test_a_shift_is_found_and_times_are_the_recordings_own(
    piece: Piece, encoder: Encoder, cents: float
) -> None:
    alignment = align_recording(piece.pages, piece.shifted(cents), model=encoder)
    assert alignment.pitch is not None
    assert alignment.pitch.source == "found"
    assert alignment.pitch.cents == pytest.approx(cents, abs=5.0)
    assert alignment.is_reliable
    assert median_error_sec(alignment, piece.onset_sec * 2 ** (-cents / 1200)) < 0.04
    duration_sec = len(piece.samples) / RATE_HZ * 2 ** (-cents / 1200)
    assert alignment.grid.end_sec == pytest.approx(duration_sec, abs=0.01)
    assert alignment.frames["onset_sec"][-1] == pytest.approx(duration_sec, abs=0.1)


def test_what_is_not_shifted_is_left_as_it_is(piece: Piece, encoder: Encoder) -> None:
    recording = AudioSamples(piece.samples, RATE_HZ)
    found = align_recording(piece.pages, recording, model=encoder)
    off = align_recording(piece.pages, recording, model=encoder, transpose=0)
    assert found.pitch is not None
    assert off.pitch is not None
    assert (found.pitch.source, off.pitch.source) == ("found", "off")
    assert abs(found.pitch.cents) < 5.0
    np.testing.assert_array_equal(found.notes["onset_sec"], off.notes["onset_sec"])


@pytest.fixture
def encoded_sec(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Lengths of the excerpts that are encoded."""
    lengths: list[float] = []
    encode_samples = encoder.encode_samples

    def counted(samples: Float32) -> Float32:
        lengths.append(len(samples) / RATE_HZ)
        return encode_samples(samples)

    monkeypatch.setattr(encoder, "encode_samples", counted)
    return lengths


def test_a_recording_at_the_pitch_of_its_score_costs_one_excerpt(
    piece: Piece, encoder: Encoder, encoded_sec: list[float]
) -> None:
    score = encoder.encode_pages(piece.pages)
    with HeardRecording(AudioSamples(piece.samples, RATE_HZ), RATE_HZ) as heard:
        assert find_pitch(piece.pages, score, heard, encoder).source == "found"
        assert len(encoded_sec) == 1
        assert encoded_sec[0] <= 20.1
        assert find_pitch(piece.pages, score, heard, encoder, 0.0, 440.0).source == "off"
    assert len(encoded_sec) == 1


def test_keys_that_pitch_classes_rule_out_are_not_encoded(
    piece: Piece, encoder: Encoder, encoded_sec: list[float], folder: Path
) -> None:
    counts = []
    for pages in (piece.pages, piece.images(folder)):  # with the score, and where no notes are known
        encoded_sec.clear()
        score = encoder.encode_pages(pages)
        with HeardRecording(piece.shifted(500.0), RATE_HZ) as heard:
            assert find_pitch(pages, score, heard, encoder).cents == pytest.approx(500.0, abs=5.0)
        counts.append(len(encoded_sec))
    assert counts[0] < 15 < counts[1]


def test_an_octave_is_found_as_well(piece: Piece, encoder: Encoder) -> None:
    score = encoder.encode_pages(piece.pages)
    with HeardRecording(piece.shifted(-1200.0), RATE_HZ) as heard:
        pitch = find_pitch(piece.pages, score, heard, encoder)
    assert (pitch.source, pitch.cents) == ("found", pytest.approx(-1200.0, abs=5.0))


def test_it_is_found_from_images_alone(piece: Piece, encoder: Encoder, folder: Path) -> None:
    alignment = align_recording(piece.images(folder), piece.shifted(-300.0), model=encoder)
    assert alignment.pitch is not None
    assert alignment.pitch.cents == pytest.approx(-300.0, abs=5.0)


def test_a_clarinet_at_sounding_pitch_is_as_written_for_it(folder: Path, encoder: Encoder) -> None:
    clarinet = Piece(folder, 2, "<transpose><diatonic>-1</diatonic><chromatic>-2</chromatic></transpose>")
    alignment = align_recording(clarinet.pages, clarinet.shifted(-200.0), model=encoder)
    assert alignment.pitch is not None
    assert alignment.pitch.cents == pytest.approx(0.0, abs=5.0)
    assert alignment.pitch.written_cents == -200.0
    assert median_error_sec(alignment, clarinet.onset_sec * 2 ** (200 / 1200)) < 0.04


def test_a_drift_is_followed(piece: Piece, encoder: Encoder) -> None:
    length_sec = len(piece.samples) / RATE_HZ
    slower = PitchCurve(np.array([0.0, length_sec]), np.array([215.0, 185.0]))  # from -215 to -185 cents
    retuning = Retuning(slower, len(piece.samples), RATE_HZ)
    drifting = np.concatenate(list(retuning.read([piece.samples])))
    alignment = align_recording(piece.pages, AudioSamples(drifting, RATE_HZ), model=encoder)
    assert alignment.pitch is not None
    assert alignment.pitch.cents == pytest.approx(-200.0, abs=5.0)
    assert alignment.pitch.drift_cents == pytest.approx(30.0, abs=8.0)
    assert median_error_sec(alignment, retuning.to_read_sec(piece.onset_sec)) < 0.04


@pytest.mark.parametrize("cents", [0.0, -200.0])
def test_another_piece_is_not_found_in_another_key(
    piece: Piece, folder: Path, encoder: Encoder, cents: float
) -> None:
    alignment = align_recording(piece.pages, Piece(folder, 3).shifted(cents), model=encoder)
    assert alignment.pitch is not None
    assert (alignment.pitch.source, alignment.pitch.cents) == ("unknown", 0.0)
    assert not alignment.is_reliable


def test_too_little_sound_is_not_shifted(piece: Piece, encoder: Encoder) -> None:
    short = AudioSamples(piece.shifted(-200.0).samples[: 15 * RATE_HZ], RATE_HZ)
    alignment = align_recording(piece.pages, short, model=encoder)
    assert alignment.pitch is not None
    assert (alignment.pitch.source, alignment.pitch.cents) == ("unknown", 0.0)


def test_what_is_given_is_not_looked_for(piece: Piece, encoder: Encoder) -> None:
    given = align_recording(piece.pages, piece.shifted(-212.0), model=encoder, transpose=-2, a4_hz=436.96)
    assert given.pitch is not None
    assert given.pitch.source == "given"
    assert given.pitch.cents == pytest.approx(-212.0, abs=0.1)
    modern = align_recording(piece.pages, piece.shifted(-200.0), model=encoder, transpose=-2)
    assert modern.pitch is not None
    assert (modern.pitch.source, modern.pitch.cents) == ("given", -200.0)
