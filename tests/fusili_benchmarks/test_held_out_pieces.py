from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import example_scores
import numpy as np
import pytest
from example_bundles import write_pitch_bundle
from example_performances import tune

from fusili_benchmarks import held_out_pieces
from fusili_benchmarks.held_out_onsets import (
    RememberingEncoder,
    format_results,
    measure_images,
    measure_shifts,
)
from fusili_benchmarks.held_out_pieces import (
    HeldOutPiece,
    Playing,
    choose_layouts,
    choose_pieces,
    open_piece,
)
from fusili_benchmarks.held_out_shifts import BASE, PageShift, Shift, SoundShift
from fusili_mir.errors import InputError
from fusili_mir.model.encoder import Encoder
from fusili_training.evaluation.whole_pieces import Knowledge, WholePiece
from fusili_training.pitches import LOWEST_PITCH, N_PITCHES
from fusili_training.rendering.corpus import CorpusPiece
from fusili_training.rendering.render_recipe import AudioOptions
from fusili_training.sound.expression import Expression
from fusili_training.sound.soundbank import SoundBank

RATE_HZ = 16_000
AMPLITUDE = 0.4  # what the pitch bundle listens for
RUBATO = Expression(tempo_factor=1.2, rubato=0.15)
PLAYING = Playing(RUBATO, AudioOptions(), AudioOptions())


def sine_bank() -> SoundBank:
    """Tones of 2 s without overtones, which stop abruptly."""
    seconds = np.arange(2 * RATE_HZ) / RATE_HZ
    hertz = 440 * 2 ** ((LOWEST_PITCH + np.arange(N_PITCHES) - 69) / 12)
    tones = np.rint(32767 * np.sin(2 * np.pi * hertz[:, None] * seconds)).astype(np.int16)
    return SoundBank(
        name="sines",
        licence="CC0-1.0",
        sample_rate_hz=RATE_HZ,
        velocities=(64,),
        samples=tones.ravel(),
        start=(np.arange(N_PITCHES) * len(seconds))[None],
        length=np.full((1, N_PITCHES), len(seconds)),
        release_db_per_sec=np.full(N_PITCHES, 1500.0),
        loop_length=0,
        gain=AMPLITUDE / 32767,
    )


def corpus_piece(folder: Path, name: str, content: str) -> CorpusPiece:
    path = folder / f"{name}.musicxml"
    path.write_text(content)
    return CorpusPiece(name, path, "CC0-1.0", "test")


@pytest.fixture
def sines(monkeypatch: pytest.MonkeyPatch) -> None:
    bank = sine_bank()
    monkeypatch.setattr(
        held_out_pieces, "draw_banks", lambda score, *_: dict.fromkeys(range(len(score.part_ids)), bank)
    )


@pytest.fixture
def melody(tmp_path: Path, sines: None) -> Iterator[HeldOutPiece]:
    with open_piece(corpus_piece(tmp_path, "tune", tune()), "whole", PLAYING) as piece:
        yield piece


def test_a_model_that_reads_and_hears_pitches_finds_the_onsets(tmp_path: Path, sines: None) -> None:
    encoder = RememberingEncoder(write_pitch_bundle(tmp_path / "bundle"))
    piece = corpus_piece(tmp_path, "again", tune())
    shifts = [BASE, Shift("slower", sound=SoundShift(detune_cents=-25), with_score=True)]
    results = measure_shifts([(piece, "whole")], shifts, PLAYING, encoder)
    assert [(each.name, each.knowledge) for each in results] == [
        (BASE.name, "images"),
        ("slower", "images"),
        (BASE.name, "score"),
        ("slower", "score"),
    ]
    for result in results:
        (errors,) = result.errors
        assert len(errors.model) == 16
        assert np.median(errors.model) < 0.045  # a frame lasts 40 ms
        assert np.median(errors.straight) > 0.06
    table = format_results(results).splitlines()
    assert len(table) == 2 + len(results)
    assert {line.count("|") for line in table} == {table[0].count("|")}
    assert table[2].startswith(f"| {BASE.name} | 1 | 16 |")


def test_detuning_scales_the_recording_and_its_truth_equally(melody: HeldOutPiece) -> None:
    base = melody.under(BASE, "score")
    lower = melody.under(Shift("", sound=SoundShift(detune_cents=-1200)), "score")
    np.testing.assert_allclose(lower.heads["onset_sec"], 2 * base.heads["onset_sec"])
    n_base, n_lower = (sum(map(len, piece.recording.blocks())) for piece in (base, lower))
    assert n_lower == pytest.approx(2 * n_base, abs=2)


def test_metronomic_onsets_are_evenly_spaced_at_the_tempo_of_the_base(melody: HeldOutPiece) -> None:
    onsets = {
        metronomic: np.sort(
            melody.under(Shift("", sound=SoundShift(metronomic=metronomic)), "score").heads["onset_sec"]
        )
        for metronomic in (False, True)
    }
    steps = np.diff(onsets[True])
    np.testing.assert_allclose(steps, steps[0])
    assert (
        0.5 / 1.2 <= steps[0] <= 0.5 * 1.2
    )  # 120 quarters per minute, faster or slower by a factor of at most 1.2
    assert np.std(np.diff(onsets[False])) > 0.01
    assert onsets[True][0] == pytest.approx(0.5)  # the silence before the first note


def test_noise_and_room_leave_the_truth_alone(melody: HeldOutPiece) -> None:
    base = melody.under(BASE, "score").heads
    for sound in (SoundShift(snr_db=5), SoundShift(room_sec=1.2)):
        np.testing.assert_array_equal(melody.under(Shift("", sound=sound), "score").heads, base)


@pytest.mark.parametrize("page", [PageShift(), PageShift(font="Petaluma"), PageShift(degraded=1.0)])
def test_heads_lie_on_ink_and_not_beside_it(melody: HeldOutPiece, page: PageShift) -> None:
    piece = melody.under(Shift("", page=page), "images")
    assert len(piece.heads) == 16
    space_px = float(piece.pages.systems["space_px"][0])
    for head in piece.heads:
        image = piece.pages.images[int(head["page"])].astype(int)
        x, y = int(head["x"]), int(head["y"])
        paper = int(np.percentile(image[:, x - 40 : x + 40], 75))
        assert image[y, x] < 0.6 * paper
        # One and a half head widths to the side there is at most a staff line.
        assert image[y - 2 : y + 3, x + round(2.2 * space_px)].max() > 0.6 * paper


def test_shifts_share_pages_and_recordings(melody: HeldOutPiece) -> None:
    base = melody.under(BASE, "images")
    noisy = melody.under(Shift("", sound=SoundShift(snr_db=15)), "images")
    other_font = melody.under(Shift("", page=PageShift(font="Bravura")), "images")
    assert noisy.pages is base.pages
    assert noisy.recording is not base.recording
    assert other_font.recording is base.recording


def test_a_layout_is_heard_and_shown_alone(tmp_path: Path, sines: None) -> None:
    song = corpus_piece(tmp_path, "song", example_scores.song(4))  # each measure: 2 notes sung, 4 played
    counts = {}
    for layout in ("whole", "piano", "voice"):
        with open_piece(song, layout, PLAYING) as piece:
            counts[layout] = [len(piece.under(BASE, "images").heads), len(piece.under(BASE, "score").heads)]
    assert counts == {"whole": [24, 24], "piano": [16, 16], "voice": [8, 8]}


def test_all_notes_are_lost_on_pages_without_staves(
    tmp_path: Path, sines: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Path) -> None:
        raise InputError("no staves were found")

    monkeypatch.setattr(held_out_pieces, "load_pages", fail)
    encoder = RememberingEncoder(write_pitch_bundle(tmp_path / "bundle"))
    piece = corpus_piece(tmp_path, "tune", tune())
    images, score = measure_shifts([(piece, "whole")], [BASE], PLAYING, encoder)
    assert images.errors[0].model.tolist() == [np.inf] * 16
    assert np.isfinite(score.errors[0].model).all()


def test_pieces_with_alternative_endings_are_skipped_and_a_larger_choice_includes_a_smaller_one(
    tmp_path: Path,
) -> None:
    pieces = [corpus_piece(tmp_path, f"tune{i}", tune()) for i in range(5)]
    pieces.append(corpus_piece(tmp_path, "voltas", example_scores.VOLTAS))
    three, all_of_them = choose_pieces(pieces, 3), choose_pieces(pieces[::-1], 9)
    assert {piece.id for piece in all_of_them} == {f"tune{i}" for i in range(5)}
    assert all_of_them[:3] == three


def test_songs_are_laid_out_in_turn_and_others_stay_whole(tmp_path: Path) -> None:
    songs = [corpus_piece(tmp_path, f"song{i}", example_scores.song(2)) for i in range(6)]
    assert choose_layouts(songs) == ["whole", "piano", "whole", "piano", "whole", "voice"]
    assert choose_layouts([corpus_piece(tmp_path, f"tune{i}", tune()) for i in range(2)]) == ["whole"] * 2


def test_each_object_is_encoded_once_until_it_is_forgotten(tmp_path: Path, melody: HeldOutPiece) -> None:
    encoder = RememberingEncoder(write_pitch_bundle(tmp_path / "bundle"))
    piece = melody.under(BASE, "images")
    score, audio = encoder.encode_pages(piece.pages), encoder.encode_recording(piece.recording)
    assert encoder.encode_pages(piece.pages) is score
    assert encoder.encode_recording(piece.recording) is audio
    encoder.forget()
    again = encoder.encode_pages(piece.pages)
    assert again is not score
    plain = Encoder(encoder.bundle).encode_pages(piece.pages)
    np.testing.assert_array_equal(again.embeddings, plain.embeddings)


class OnePiece:
    """A source with a single given piece."""

    name = "one"
    knowledge: tuple[Knowledge, ...] = ("images",)

    def __init__(self, piece: HeldOutPiece) -> None:
        self.pieces: Sequence[str] = [piece.name]
        self._piece = piece

    @contextmanager
    def open(self, piece: str, knowledge: Knowledge) -> Iterator[WholePiece]:
        yield self._piece.under(BASE, knowledge)


def test_pieces_of_another_engraver_are_measured_in_the_same_way(
    tmp_path: Path, melody: HeldOutPiece
) -> None:
    encoder = RememberingEncoder(write_pitch_bundle(tmp_path / "bundle"))
    result = measure_images("other", OnePiece(melody), encoder)
    assert (result.name, result.knowledge, result.pieces) == ("other", "images", ["tune.whole"])
    assert np.median(result.errors[0].model) < 0.045
    assert format_results([result]).splitlines()[2].startswith("| other | 1 | 16 |")


def test_the_result_of_a_layout_is_that_of_its_pieces(tmp_path: Path, sines: None) -> None:
    song = corpus_piece(tmp_path, "song", example_scores.song(4))
    encoder = RememberingEncoder(write_pitch_bundle(tmp_path / "bundle"))
    images, _ = measure_shifts([(song, "whole"), (song, "voice")], [BASE], PLAYING, encoder)
    voice = images.of_layout("voice")
    assert (voice.name, voice.pieces) == (f"{BASE.name}: voice", ["song.voice"])
    assert voice.errors == [images.errors[1]]
