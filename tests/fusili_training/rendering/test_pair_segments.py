from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import example_scores
import numpy as np
import partitura as pt
import pytest
import soundfile

from fusili_mir.arrays import Float64
from fusili_training.data.shard_folder import Pair, ShardFolder
from fusili_training.rendering.corpus import CorpusPiece, list_corpus
from fusili_training.rendering.pair_segments import PieceReport, Sample, render_piece
from fusili_training.rendering.render import render_corpus
from fusili_training.rendering.render_recipe import MutationOptions, PageOptions, RenderRecipe, SegmentOptions

HOP_SEC = 0.005


@pytest.fixture(scope="module")
def pairs(rendered: Path) -> list[Pair]:
    folder = ShardFolder(rendered)
    return [folder.read(entry) for entry in folder.entries]


def _render(piece: CorpusPiece, recipe: RenderRecipe) -> list[Sample]:
    return list(render_piece(piece, recipe, PieceReport(piece.id, piece.licence)))


def _rise(pair: Pair) -> Float64:
    """The rise in level of each hop of a clip over the previous one, in decibels, at least 0."""
    hop = round(HOP_SEC * pair.sample_rate_hz)
    frames = pair.waveform[: len(pair.waveform) // hop * hop].reshape(-1, hop)
    level_db = 10 * np.log10(np.square(frames, dtype=np.float64).mean(axis=1) + 1e-7)
    return np.maximum(np.diff(level_db, prepend=level_db[:1]), 0)


def test_the_audio_has_its_onsets_where_the_truth_says(pairs: list[Pair]) -> None:
    reach = round(0.12 / HOP_SEC)
    lags = []
    for pair in pairs:
        rise = _rise(pair)
        expected = np.zeros(len(rise))
        struck = pair.truth["onset_sec"][pair.truth["struck"]]
        expected[np.minimum((struck / HOP_SEC).astype(int), len(rise) - 1)] = 1
        correlation = [np.sum(np.roll(expected, lag) * rise) for lag in range(-reach, reach + 1)]
        lags.append((int(np.argmax(correlation)) - reach) * HOP_SEC)
    assert len(lags) >= 10
    assert np.median(np.abs(lags)) <= 0.010
    assert np.mean(np.abs(lags) <= 0.015) >= 0.9


def test_every_box_holds_a_note_head(pairs: list[Pair]) -> None:
    n_heads = 0
    for pair in pairs:
        for note in pair.truth:
            x, y = (note["x0"] + note["x1"]) / 2, (note["y0"] + note["y1"]) / 2
            around = pair.image[round(y) - 2 : round(y) + 3, round(x) - 2 : round(x) + 3]
            assert around.min() < 130, (pair.key, note)
            n_heads += 1
    assert n_heads > 100


def test_higher_notes_of_a_staff_stand_higher_in_its_strip(pairs: list[Pair]) -> None:
    for pair in pairs:
        natural = pair.truth[np.isin(pair.truth["pitch"] % 12, [0, 2, 4, 5, 7, 9, 11])]
        for staff in np.unique(natural["staff"]):
            rows = natural[natural["staff"] == staff]
            strip = (rows["y0"] + rows["y1"]) / 2 // pair.strip_height_px
            assert set(strip) == {staff}
            order = np.argsort(rows["pitch"], kind="stable")
            assert np.all(np.diff(rows["y0"][order]) <= 2.5)  # B sharp and C may be exchanged


def test_mutants_differ_from_their_originals_in_pitch_and_not_in_time(pairs: list[Pair]) -> None:
    by_key = {pair.key: pair for pair in pairs}
    n_moved = 0
    for pair in pairs:
        if pair.mutant_of is None:
            continue
        original = by_key[pair.mutant_of].truth
        mutant = pair.truth
        assert set(mutant["id"]) == set(original["id"])
        mutant, original = np.sort(mutant, order="id"), np.sort(original, order="id")
        assert np.abs(mutant["onset_sec"] - original["onset_sec"]).max() < 1e-4
        n_moved += int((mutant["pitch"] != original["pitch"]).sum())
    assert n_moved > 20


def test_rendering_depends_on_nothing_but_piece_and_recipe(corpus: Path, small_recipe: RenderRecipe) -> None:
    song = next(piece for piece in list_corpus(corpus) if piece.id == "song")
    first, again = _render(song, small_recipe), _render(song, small_recipe)
    assert [s.key for s in first] == [s.key for s in again]
    assert all(a.members == b.members for a, b in zip(first, again, strict=True))
    other = _render(song, small_recipe.with_seed(1))
    assert all(a.members["flac"] != b.members["flac"] for a, b in zip(first, other, strict=False))


def test_ossias_and_fingerings_are_seen_and_not_heard(corpus: Path, small_recipe: RenderRecipe) -> None:
    song = next(piece for piece in list_corpus(corpus) if piece.id == "song")
    without, with_both = (
        _render(song, replace(small_recipe, page=PageOptions(ossias=share, fingerings=share)))
        for share in (0.0, 1.0)
    )
    assert [s.key for s in without] == [s.key for s in with_both]
    for bare, edited in zip(without, with_both, strict=True):
        assert bare.members["flac"] == edited.members["flac"]
        bare_notes, notes = (json.loads(s.members["json"])["notes"] for s in (bare, edited))
        for name in ("id", "pitch", "onset_sec", "staff"):
            assert [note[name] for note in bare_notes] == [note[name] for note in notes]
    assert any(
        bare.members["png"] != edited.members["png"] for bare, edited in zip(without, with_both, strict=True)
    )


def test_a_square_shows_measures_over_several_lines(corpus: Path, small_recipe: RenderRecipe) -> None:
    piano = next(piece for piece in list_corpus(corpus) if piece.id == "piano")
    recipe = replace(small_recipe, segment=SegmentOptions(shape="square"), page=PageOptions())
    samples = _render(piano, recipe)
    described = [json.loads(sample.members["json"]) for sample in samples]
    assert [sorted({n["measure"] for n in d["notes"]}) for d in described] == [
        list(range(8)),
        list(range(4, 12)),
        list(range(8, 16)),
    ]
    assert {len(d["notes"]) for d in described} == {32}
    with io.BytesIO(samples[0].members["png"]) as file:
        from PIL import Image

        assert Image.open(file).size == (224, 224)


def test_a_square_alone_has_clef_and_key_and_none_of_the_earlier_notes(
    corpus: Path, small_recipe: RenderRecipe
) -> None:
    piano = next(piece for piece in list_corpus(corpus) if piece.id == "piano")
    whole = SegmentOptions(shape="square", n_measures=2, hop_measures=1)
    silent_lead = replace(small_recipe.audio, lead_sec=0.0)
    pedal = replace(small_recipe.expression, pedal=1.0)
    recipe = replace(small_recipe, segment=whole, page=PageOptions(), audio=silent_lead, expression=pedal)
    alone = replace(recipe, segment=replace(whole, alone=True))
    cut, own = _render(piano, recipe), _render(piano, alone)
    assert [sample.key for sample in own] == [sample.key for sample in cut]
    for within, apart in zip(cut, own, strict=True):
        heads, own_heads = (json.loads(sample.members["json"])["notes"] for sample in (within, apart))
        assert {n["id"] for n in own_heads} == {n["id"] for n in heads}
        assert [n["onset_sec"] for n in own_heads] == [n["onset_sec"] for n in heads]
    # Cut out of the piece, the first note of a later segment stands at its left edge; alone, after clef and key.
    left = [min(n["x0"] for n in json.loads(sample.members["json"])["notes"]) for sample in own[1:]]
    assert min(left) > 25
    first = [soundfile.read(io.BytesIO(samples[1].members["flac"]))[0] for samples in (cut, own)]
    assert not np.array_equal(*first)  # the pedal holds notes of measure 0 into measure 1


def test_long_segments_are_cut_off_if_the_recipe_says_so(corpus: Path, small_recipe: RenderRecipe) -> None:
    piano = next(piece for piece in list_corpus(corpus) if piece.id == "piano")
    options = SegmentOptions(shape="square", max_duration_sec=3.0, cut_long=True, alone=True)
    recipe = replace(small_recipe, segment=options, page=PageOptions())
    report = PieceReport(piano.id, piano.licence)
    samples = list(render_piece(piano, recipe, report))
    assert len(samples) == 3
    assert not report.dropped
    for sample in samples:
        described = json.loads(sample.members["json"])
        assert described["duration_sec"] == 3.0
        assert all(note["onset_sec"] < note["offset_sec"] <= 3.0 for note in described["notes"])
        waveform, rate_hz = soundfile.read(io.BytesIO(sample.members["flac"]))
        assert len(waveform) == 3 * rate_hz


def test_opus_takes_less_than_half_the_space_and_sounds_the_same(
    corpus: Path, small_recipe: RenderRecipe, tmp_path: Path
) -> None:
    pieces = [piece for piece in list_corpus(corpus) if piece.id == "piano"]
    found = []
    for codec in ("flac", "opus"):
        audio = replace(small_recipe.audio, codec=codec)
        out = tmp_path / codec
        render_corpus(pieces, out, replace(small_recipe, audio=audio), jobs=1)
        folder = ShardFolder(out)
        found.append([folder.read(entry) for entry in folder.entries])
        assert found[-1][0].sample_rate_hz == audio.sample_rate_hz
    for exact, lossy in zip(*found, strict=True):
        assert lossy.key == exact.key
        assert len(lossy.waveform) == len(exact.waveform)
        assert np.corrcoef(exact.waveform, lossy.waveform)[0, 1] > 0.99
    sounds = [sum(p.stat().st_size for p in (tmp_path / codec).glob("*.tar")) for codec in ("flac", "opus")]
    assert sounds[1] < 0.6 * sounds[0]  # with pictures and truth, which stay as they are


def test_notes_take_a_fraction_of_the_space_and_give_the_very_samples_of_flac(
    corpus: Path, small_recipe: RenderRecipe, tmp_path: Path
) -> None:
    pieces = [piece for piece in list_corpus(corpus) if piece.id == "piano"]
    found = {}
    for codec in ("flac", "notes"):
        recipe = replace(small_recipe, audio=replace(small_recipe.audio, codec=codec))
        render_corpus(pieces, tmp_path / codec, recipe, jobs=1)
        folder = ShardFolder(tmp_path / codec)
        found[codec] = {entry.key: folder.read(entry) for entry in folder.entries}
    for key, kept in found["flac"].items():
        played = found["notes"][key]
        assert played.sample_rate_hz == kept.sample_rate_hz
        assert kept.waveform.any()
        np.testing.assert_array_equal(played.waveform, kept.waveform)
    flac, notes = (sum(p.stat().st_size for p in (tmp_path / c).glob("*.tar")) for c in ("flac", "notes"))
    assert notes < 0.5 * flac


def test_long_and_silent_segments_are_left_out_and_counted(corpus: Path, small_recipe: RenderRecipe) -> None:
    song = next(piece for piece in list_corpus(corpus) if piece.id == "song")
    report = PieceReport(song.id, song.licence)
    recipe = replace(small_recipe, segment=SegmentOptions(max_duration_sec=0.5))
    assert list(render_piece(song, recipe, report)) == []
    assert set(report.dropped) == {"too long"}
    narrow = replace(small_recipe, segment=SegmentOptions(max_width_px=20))
    report = PieceReport(song.id, song.licence)
    assert list(render_piece(song, narrow, report)) == []
    assert report.dropped["too wide"] == 14


@pytest.mark.parametrize("kind", ["match", "mid"])
def test_a_performance_gives_the_timing(tmp_path: Path, small_recipe: RenderRecipe, kind: str) -> None:
    score_path, performance_path = tmp_path / "tune.musicxml", tmp_path / f"tune.{kind}"
    identified = example_scores.score(
        [
            example_scores.measure(
                example_scores.note("C5", note_id="a") + example_scores.note("D5", note_id="b"), 1, first=True
            ),
            example_scores.measure(
                example_scores.note("E5", note_id="c") + example_scores.note("F5", note_id="d"), 2
            ),
        ]
    )
    score_path.write_text(identified)
    onsets = {"a": 0.0, "b": 0.7, "c": 1.1, "d": 2.0}
    notes = [
        {"id": f"n{i}", "midi_pitch": 72 + i, "note_on": sec, "note_off": sec + 0.3, "velocity": 64}
        for i, sec in enumerate(onsets.values())
    ]
    for note, pitch in zip(notes, (72, 74, 76, 77), strict=True):
        note["midi_pitch"] = pitch
    performed = pt.performance.PerformedPart(notes, id="P")
    alignment = [{"label": "match", "score_id": s, "performance_id": f"n{i}"} for i, s in enumerate(onsets)]
    score = pt.load_musicxml(score_path, quiet=True)
    if kind == "match":
        pt.save_match(alignment, performed, score.parts[0], out=str(performance_path), assume_unfolded=True)
    else:
        pt.save_performance_midi(performed, str(performance_path))
    piece = CorpusPiece("tune", score_path, "CC0-1.0", "train", performance_path)
    recipe = replace(small_recipe, mutation=MutationOptions(mutants=True, probability=1.0))
    original, mutant = _render(piece, recipe)
    for sample in (original, mutant):
        described = json.loads(sample.members["json"])["notes"]
        times = np.array([note["onset_sec"] for note in described])
        assert np.diff(times).tolist() == pytest.approx([0.7, 0.4, 0.9], abs=0.002)


def test_kern_is_rendered_as_verovio_converts_it(tmp_path: Path, small_recipe: RenderRecipe) -> None:
    bars = [line for bar in range(1, 5) for line in (f"={bar}", "4c", "4d", "4e", "4f")]
    lines = ["**kern", "*clefG2", "*M4/4", *bars, "==", "*-"]
    (tmp_path / "scale.krn").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (piece,) = list_corpus(tmp_path)
    samples = _render(piece, small_recipe)
    notes = [note for sample in samples for note in json.loads(sample.members["json"])["notes"]]
    assert [note["pitch"] for note in notes] == [60, 62, 64, 65] * 4
