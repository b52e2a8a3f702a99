from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from example_bundles import (
    NATURALS,
    NOTHING,
    melody_notes,
    midi_pitch,
    sine_recording,
    write_ink_bundle,
    write_pitch_bundle,
)
from example_scores import VOLTAS, measure, melody, note, score
from PIL import Image

from fusili_mir.audio import audio_samples, heard_recording
from fusili_mir.audio.pitch_curve import PitchCurve
from fusili_mir.audio.recording import AudioSamples
from fusili_mir.errors import FusiliError, InputError
from fusili_mir.geometry import FrameGrid
from fusili_mir.model import encoder as encoder_module
from fusili_mir.model import score_segments
from fusili_mir.model.bundle import Bundle, default_bundle, load_bundle, save_bundle
from fusili_mir.model.encoded import EncodedAudio, EncodedScore
from fusili_mir.model.encoder import Encoder, encode_pages, encode_recording
from fusili_mir.model.score_segments import cut_image, segment_pages
from fusili_mir.pages.engraving import EngravingOptions
from fusili_mir.pages.pages import Pages, load_pages, render_pages
from fusili_mir.pages.score_axis import COLUMN_DTYPE, ScoreAxis
from fusili_mir.sessions import graph_session

SCALE = score(
    [
        measure(note(low) + note(high), number + 1, first=number == 0)
        for number, (low, high) in enumerate(zip(NATURALS[:-1:2], NATURALS[1::2], strict=True))
    ]
)
"""A3 to B5, two quarter notes per measure."""
HALF_NOTES = score(
    [measure(note(name, "half"), number + 1, first=number == 0) for number, name in enumerate(NATURALS)]
)


@pytest.fixture(scope="module")
def pitch(tmp_path_factory) -> Bundle:
    return write_pitch_bundle(tmp_path_factory.mktemp("bundles") / "pitch")


@pytest.fixture(scope="module")
def ink(tmp_path_factory) -> Bundle:
    return write_ink_bundle(tmp_path_factory.mktemp("bundles") / "ink")


def engraved(tmp_path: Path, content: str, options: EngravingOptions | None = None) -> Pages:
    (tmp_path / "score.musicxml").write_text(content)
    return render_pages(tmp_path / "score.musicxml", options)


def read_heads(encoded: EncodedScore) -> list[str]:
    """The naturals along the score axis, one for each run of columns with a head."""
    best = encoded.embeddings[:, 0].argmax(axis=1)
    starts = np.flatnonzero(np.diff(best, prepend=NOTHING) != 0)
    return [NATURALS[best[column]] for column in starts if best[column] != NOTHING]


@pytest.mark.parametrize("content", [SCALE, HALF_NOTES])
def test_columns_over_a_note_are_most_similar_to_the_frames_in_which_it_sounds(
    tmp_path: Path, pitch: Bundle, content: str
) -> None:
    pages = engraved(tmp_path, content, EngravingOptions(page_width_mm=90, page_height_mm=50))
    assert len(pages.images) > 1
    encoder = Encoder(pitch, "cpu", 1)
    encoded = encoder.encode_pages(pages)
    names = NATURALS[:-1] if content == SCALE else NATURALS
    notes = melody_notes(names)
    audio = encoder.encode_recording(AudioSamples(sine_recording(notes), 16_000))
    similarity = encoded.embeddings[:, 0] @ audio.frames.T  # (columns, frames)

    frame_sec = audio.grid.centre(np.arange(len(audio.grid)))
    columns = encoded.axis.columns
    centre_x = (columns["x0"] + columns["x1"]) / 2
    for head, played in zip(pages.notes, notes, strict=True):
        over = (columns["system"] == head["system"]) & (head["x0"] < centre_x) & (centre_x < head["x1"])
        sounds = (played["onset_sec"] < frame_sec) & (
            frame_sec < played["onset_sec"] + played["duration_sec"]
        )
        assert over.sum() >= 2
        assert sounds.sum() == 8
        assert similarity[np.ix_(over, sounds)] == pytest.approx(1)
        assert (similarity[np.ix_(over, ~sounds)] < 0.1).all()
    assert read_heads(encoded) == list(names)  # and nowhere else


def test_grace_notes_and_ties_are_read_and_repeat_bars_are_not(tmp_path: Path, pitch: Bundle) -> None:
    encoded = encode_pages(engraved(tmp_path, VOLTAS), pitch)
    assert read_heads(encoded) == ["G4", "D5", "C5", "C5", "E5", "F5"]


def test_page_images_are_read_like_engraved_pages(tmp_path: Path, pitch: Bundle) -> None:
    pages = engraved(tmp_path, SCALE, EngravingOptions(page_width_mm=120, page_height_mm=200, dpi=250))
    for number, image in enumerate(pages.images):
        Image.fromarray(image).save(tmp_path / f"page-{number}.png")
    found = load_pages([tmp_path / f"page-{number}.png" for number in range(len(pages.images))])
    assert len(found.systems) == len(pages.systems)
    assert read_heads(encode_pages(found, pitch)) == list(NATURALS[:-1])


def test_batches_of_any_size_give_the_same_embeddings(tmp_path: Path, pitch: Bundle, monkeypatch) -> None:
    voice = [measure(note("A4") + note("B4"), i + 1, first=i == 0) for i in range(12)]
    other = [measure(note("C5") + note("D5"), i + 1, first=i == 0) for i in range(12)]
    pages = engraved(tmp_path, score(voice, other), EngravingOptions(page_width_mm=110))
    assert set(pages.systems["n_staves"]) == {2}
    one = Encoder(pitch, n_threads=1, batch_size=1).encode_pages(pages)
    many = Encoder(pitch, n_threads=1, batch_size=5).encode_pages(pages)
    monkeypatch.setattr(encoder_module, "_MAX_BATCH_PX", 10)
    small = Encoder(pitch, n_threads=1).encode_pages(pages)
    for other_score in (many, small):
        assert np.array_equal(one.embeddings, other_score.embeddings)
        assert np.array_equal(one.axis.columns, other_score.axis.columns)
        assert other_score.segment_embeddings is not None
        assert len(other_score.segment_embeddings) == len(pages.systems)


def test_a_system_cut_in_parts_gives_the_same_columns(tmp_path: Path, pitch: Bundle, monkeypatch) -> None:
    pages = engraved(tmp_path, melody(16), EngravingOptions(breaks="none"))
    whole = encode_pages(pages, pitch)
    monkeypatch.setattr(score_segments, "_MAX_COLUMNS", 64)
    parts = encode_pages(pages, pitch)
    assert parts.segment_embeddings is not None
    assert whole.segment_embeddings is not None
    assert len(parts.segment_embeddings) > 3 * len(whole.segment_embeddings)
    assert np.array_equal(parts.axis.columns, whole.axis.columns)
    # Other parts are cut at other fractions of a pixel: a head may reach into one column more or less.
    assert (parts.embeddings == whole.embeddings).all(axis=(1, 2)).mean() > 0.97
    assert read_heads(parts) == read_heads(whole)


def test_the_patches_of_squares_go_to_their_columns_from_top_to_bottom(tmp_path: Path, ink: Bundle) -> None:
    pages = engraved(tmp_path, melody(8))
    encoded = encode_pages(pages, ink)
    assert encoded.embeddings.shape == (len(encoded.axis), 7, 2)
    expected = []
    for segment in segment_pages(pages, ink.image):
        dark = 1 - cut_image(segment, pages.images)[0]
        dark = np.pad(dark, ((0, 0), (0, 224 - dark.shape[1])))
        cells = dark.reshape(7, 32, 7, 32).mean(axis=(1, 3))  # (rows, columns)
        expected.append(cells[:, segment.keep_from : segment.keep_from + len(segment.columns)].T)
    found = encoded.embeddings[encoded.mask]
    assert found[:, 0] / found[:, 1] == pytest.approx(np.concatenate(expected)[encoded.mask], abs=1e-5)
    assert found[:, 0].max() > 0.05


def test_rows_that_show_nothing_are_masked(tmp_path: Path, ink: Bundle) -> None:
    small = replace(ink, manifest=replace(ink.manifest, image=replace(ink.image, space_px=4.0)))
    encoded = encode_pages(engraved(tmp_path, melody(8)), small)
    assert encoded.mask[0].tolist() == [False, False, True, True, True, False, False]
    assert (encoded.embeddings[~encoded.mask] == 0).all()
    assert np.linalg.norm(encoded.embeddings[encoded.mask], axis=1) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("clip_sec", [2.0, None])
@pytest.mark.parametrize("n_samples", [7_000, 33_333, 700_000])
def test_frames_of_clips_are_those_of_one_long_pass(tmp_path: Path, clip_sec, n_samples: int) -> None:
    encoder = Encoder(write_ink_bundle(tmp_path / "ink", clip_sec), n_threads=1)
    samples = np.random.default_rng(0).uniform(-0.5, 0.5, n_samples).astype(np.float32)
    encoded = encoder.encode_recording(AudioSamples(samples, 16_000))
    whole = np.pad(samples, (0, -n_samples % 640))[None]
    (expected,) = encoder.audio_session.run("waveforms", whole, ["frames"])
    assert encoded.frames == pytest.approx(expected[0], abs=2e-5)
    assert encoded.grid == FrameGrid(-(-n_samples // 640), 0.04, audio_sec=n_samples / 16_000)


def test_clips_without_context_would_have_seams(tmp_path: Path) -> None:
    bundle = write_ink_bundle(tmp_path / "ink")
    blind = replace(bundle, manifest=replace(bundle.manifest, audio=replace(bundle.audio, context_sec=0.0)))
    samples = np.random.default_rng(0).uniform(-0.5, 0.5, 100_000).astype(np.float32)
    right, wrong = (encode_recording(AudioSamples(samples, 16_000), b).frames for b in (bundle, blind))
    differs = np.flatnonzero(np.abs(right - wrong).max(axis=1) > 1e-3)
    assert len(differs)
    assert set(differs) <= {cut + k for cut in (50, 100, 150) for k in range(-6, 6)}


def test_a_recording_at_another_rate_is_heard_at_the_same_times(pitch: Bundle) -> None:
    notes = melody_notes(["C4", "E4", "G4"])
    frames = [
        encode_recording(AudioSamples(sine_recording(notes, rate_hz), rate_hz), pitch).frames.argmax(axis=1)
        for rate_hz in (16_000, 44_100)
    ]
    assert frames[1].tolist() == frames[0].tolist()
    heard = [NATURALS.index(name) for name in ("C4", "E4", "G4")]
    assert frames[0].tolist() == [k for pitch_axis in heard for k in [pitch_axis] * 8 + [NOTHING] * 2][:-2]


def bytes_of_results(encoded: EncodedAudio) -> int:
    arrays = (
        encoded.frames,
        encoded.clip_embeddings,
        encoded.envelope.rise,
        encoded.envelope.level,
        encoded.onsets.activation,
    )
    return sum(array.nbytes for array in arrays)


@pytest.mark.parametrize("pitch_curve", [None, PitchCurve(np.array([0.0, 480.0]), np.array([-30.0, 30.0]))])
def test_longer_recordings_need_more_memory_only_for_their_results(
    pitch: Bundle, monkeypatch, pitch_curve: PitchCurve | None
) -> None:
    monkeypatch.setattr(heard_recording, "_IN_MEMORY_BYTES", 2**16)
    monkeypatch.setattr(heard_recording, "_BLOCK_SAMPLES", 2**12)  # what passes by must not hide what stays
    monkeypatch.setattr(audio_samples, "BLOCK_VALUES", 2**14)
    encoder = Encoder(pitch, "cpu", 1, batch_size=1)
    minute = sine_recording(melody_notes(NATURALS, note_sec=0.3), end_sec=60.0)
    encoder.encode_recording(AudioSamples(minute, 16_000))  # opens the graph
    peaks, results = [], []
    for n_minutes in (4, 12):
        sound = AudioSamples(np.tile(minute, n_minutes), 16_000)
        tracemalloc.start()
        encoded = encoder.encode_recording(sound, pitch=pitch_curve)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        results.append(bytes_of_results(encoded))
    n_copies = 1 if pitch_curve is None else 2  # what drifts is put on an even grid: both exist for a moment
    assert peaks[1] - peaks[0] < (n_copies + 0.25) * (results[1] - results[0])


def test_frames_in_long_silence_are_zero_and_all_others_as_before(pitch: Bundle) -> None:
    notes = melody_notes(NATURALS)
    sound = sine_recording(notes, end_sec=60.0)  # silent from 6.8 s on; clips of 20 s
    encoder = Encoder(pitch, "cpu", 1)
    encoded = encoder.encode_recording(AudioSamples(sound, 16_000))
    whole = encoder.encode_samples(sound)
    silent = ~encoded.frames.any(axis=1)
    assert np.array_equal(encoded.frames[~silent], whole[~silent])
    assert silent[-500:].all()
    assert not silent[:450].any()
    assert encoded.sound.is_silent[silent].all()
    assert encoded.clip_embeddings.any(axis=1).all()


def test_silence_around_the_music_holds_no_note(pitch: Bundle) -> None:
    notes = melody_notes(["A4"], start_sec=1.0)
    encoded = encode_recording(AudioSamples(sine_recording(notes, end_sec=3.0), 16_000), pitch)
    sounding = np.flatnonzero(encoded.frames[:, NATURALS.index("A4")] > 0.9)
    assert (sounding.min(), sounding.max(), len(encoded.frames)) == (25, 32, 75)
    assert encoded.clip_embeddings.shape == (1, NOTHING + 1)
    assert midi_pitch("A4") == 69


def test_a_graph_that_does_not_match_its_manifest_is_named(tmp_path: Path, pitch: Bundle) -> None:
    wrong = replace(pitch.manifest, embedding_dim=128)
    save_bundle(tmp_path / "wrong", wrong, pitch.read_graph("image"), pitch.read_graph("audio"))
    samples = AudioSamples(sine_recording(melody_notes(["A4"])), 16_000)
    message = r"audio.onnx gives frames of shape \(1, 8, 18\).* expected \(1, 8, 128\)"
    with pytest.raises(FusiliError, match=message):
        encode_recording(samples, load_bundle(tmp_path / "wrong"))


def test_a_graph_is_opened_only_when_it_is_needed(tmp_path: Path) -> None:
    bundle = write_pitch_bundle(tmp_path / "pitch")
    (tmp_path / "pitch" / "image.onnx").unlink()
    encoder = Encoder(bundle)
    assert (
        len(encoder.encode_recording(AudioSamples(sine_recording(melody_notes(["A4"])), 16_000)).frames) == 8
    )
    with pytest.raises(InputError, match="the image graph of the bundle is missing"):
        _ = encoder.image_session


def test_embeddings_must_match_their_grids(pitch: Bundle) -> None:
    heard = encode_recording(AudioSamples(sine_recording(melody_notes(["A4"])), 16_000), pitch)
    with pytest.raises(InputError, match="for a grid of 3"):
        replace(heard, grid=FrameGrid(3, 0.04))
    axis = ScoreAxis(np.zeros(1, COLUMN_DTYPE))
    with pytest.raises(InputError, match="for 1 columns"):
        EncodedScore(axis, np.zeros((2, 1, 4), np.float32), np.ones((2, 1), bool))
    with pytest.raises(InputError, match="a batch size of 0"):
        Encoder(None, batch_size=0)  # type: ignore[arg-type]


def test_several_batches_at_once_give_the_same_embeddings(tmp_path: Path, monkeypatch) -> None:
    voice = [measure(note("A4") + note("B4"), i + 1, first=i == 0) for i in range(12)]
    pages = engraved(tmp_path, score(voice), EngravingOptions(page_width_mm=110))
    sound = (0.1 * np.random.default_rng(0).normal(size=16_000 * 70)).astype(np.float32)
    encoded = []
    for n_cpus in (1, 3):
        monkeypatch.setattr(graph_session, "usable_cpus", lambda n_cpus=n_cpus: n_cpus)
        encoder = Encoder(default_bundle(), "cpu")
        audio = encoder.encode_recording((sound, 16_000))
        encoded.append((encoder.encode_pages(pages).embeddings, audio.frames, audio.onsets.activation))
    for one, several in zip(*encoded, strict=True):
        assert np.array_equal(one, several)
