"""Whole pieces through every layer, with a bundle whose embeddings are right: exact to a frame."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import partitura as pt
import pytest
import soundfile
from example_bundles import NATURALS, write_pitch_bundle
from example_performances import FRAME_SEC, PITCHES, perform, record, tune
from example_scores import VOLTAS, measure, melody, note, score
from PIL import Image

from fusili_mir.alignment.aligning import align_pages, align_recording, align_score
from fusili_mir.alignment.encoded_alignment import AlignmentWarning, align_encoded
from fusili_mir.alignment.fitted_decoding import decoding_options
from fusili_mir.alignment.played import play_pages
from fusili_mir.alignment.position_maps import get_position_maps
from fusili_mir.alignment.results import Alignment
from fusili_mir.arrays import Float64
from fusili_mir.errors import InputError
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.engraving import EngravingOptions
from fusili_mir.pages.pages import Pages, load_pages, render_pages

SHORT_PAGES = EngravingOptions(page_height_mm=50)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    return Encoder(write_pitch_bundle(tmp_path_factory.mktemp("bundle") / "pitch"))


def engraved(folder: Path, xml: str, options: EngravingOptions | None = None) -> Pages:
    file = folder / "piece.musicxml"
    file.write_text(xml)
    return render_pages(file, options)


def as_images(folder: Path, pages: Pages) -> Pages:
    for number, image in enumerate(pages.images):
        Image.fromarray(image).save(folder / f"{number}.png")
    return load_pages([folder / f"{number}.png" for number in range(len(pages.images))])


def onset_errors(alignment: Alignment, performed: npt.NDArray[np.void]) -> Float64:
    true = dict(zip(performed["id"].tolist(), performed["onset_sec"].tolist(), strict=True))
    assert set(alignment.notes["id"]) == set(true)
    return np.abs([note["onset_sec"] - true[str(note["id"])] for note in alignment.notes])


def test_a_melody_is_exact_to_a_frame_whatever_its_tempo(tmp_path: Path, encoder: Encoder) -> None:
    pages = engraved(tmp_path, tune())
    performed = perform(play_pages(pages), slower=0.013)
    alignment = align_recording(pages, record(performed), model=encoder)
    assert onset_errors(alignment, performed).max() < FRAME_SEC
    assert alignment.is_reliable
    assert alignment.notes["confidence"].min() > 0.5


@pytest.mark.parametrize("unfold", ["maximal", "minimal"])
def test_pick_up_repeat_endings_grace_notes_and_ties_are_exact_to_a_frame(
    tmp_path: Path, encoder: Encoder, unfold: str
) -> None:
    pages = engraved(tmp_path, VOLTAS)
    performed = perform(play_pages(pages, unfold))  # type: ignore[arg-type]
    alignment = align_recording(pages, record(performed), model=encoder)  # finds out what was played
    assert alignment.played is not None
    assert alignment.played.unfold == unfold
    assert onset_errors(alignment, performed).max() < FRAME_SEC + 1e-9


def test_each_playing_of_a_measure_has_its_own_seconds(tmp_path: Path, encoder: Encoder) -> None:
    pages = engraved(tmp_path, VOLTAS)
    recording = record(perform(play_pages(pages, "maximal"), start_sec=0.48, beat_sec=0.48))
    measures = align_recording(pages, recording, model=encoder).measures
    assert measures["number"].tolist() == ["0", "1", "2", "1", "3"]
    # the pick-up is a beat long, the others two
    assert measures["start_sec"] == pytest.approx([0.48, 0.96, 1.92, 2.88, 3.84], abs=FRAME_SEC)
    assert measures["end_sec"][:-1].tolist() == measures["start_sec"][1:].tolist()


def test_a_tied_note_sounds_until_its_last_head_ends(tmp_path: Path, encoder: Encoder) -> None:
    pages = engraved(tmp_path, VOLTAS)
    recording = record(perform(play_pages(pages, "maximal"), start_sec=0.48, beat_sec=0.48))
    notes = align_recording(pages, recording, model=encoder).notes
    (tied,) = notes[notes["id"] == "p0n2-1"]  # C5, a half note tied to a quarter
    assert tied["offset_sec"] - tied["onset_sec"] == pytest.approx(3 * 0.48, abs=FRAME_SEC)


def test_a_grace_note_ends_where_its_main_note_begins(tmp_path: Path, encoder: Encoder) -> None:
    pages = engraved(tmp_path, VOLTAS)
    notes = align_recording(pages, record(perform(play_pages(pages, "maximal"))), model=encoder).notes
    (grace,) = notes[notes["id"] == "p0n1-1"]
    (main,) = notes[notes["id"] == "p0n2-1"]
    assert grace["onset_sec"] < main["onset_sec"]
    assert grace["offset_sec"] == main["onset_sec"]


def test_several_pages_are_exact_to_a_frame(tmp_path: Path, encoder: Encoder) -> None:
    pages = engraved(tmp_path, melody(60), SHORT_PAGES)
    assert len(pages.images) >= 3
    performed = perform(play_pages(pages), beat_sec=0.36)
    alignment = align_recording(pages, record(performed), model=encoder)
    assert onset_errors(alignment, performed).max() < FRAME_SEC + 1e-9
    # In the frame in which a note begins, the place is on its page, at its head.
    at_onset = alignment.frames[alignment.grid.index(alignment.notes["onset_sec"] + FRAME_SEC / 2)]
    assert at_onset["page"].tolist() == alignment.notes["page"].tolist()
    middle = (alignment.notes["x0"] + alignment.notes["x1"]) / 2
    assert np.abs(at_onset["x"] - middle).max() < 10  # a staff space


def test_notes_of_a_chord_over_all_parts_begin_within_a_step(tmp_path: Path, encoder: Encoder) -> None:
    upper = [
        measure(note(pitch) + note(pitch), i + 1, first=i == 0) for i, pitch in enumerate(("G5", "E5", "A5"))
    ]
    lower = [
        measure(note(a) + note("B4") + note("G4", extra="<chord/>"), i + 1, first=i == 0)
        for i, a in enumerate(("C4", "D4", "E4"))
    ]
    pages = engraved(tmp_path, score(upper, lower))
    performed = perform(play_pages(pages))
    performance, alignment, merged = align_score(
        tmp_path / "piece.musicxml", record(performed), model=encoder
    )
    assert len(merged.parts) == 1
    times = {entry["score_id"]: entry["performance_time"] for entry in alignment}
    onsets = {str(row["id"]): float(row["onset_beat"]) for row in merged[0].note_array()}
    assert set(times) == set(onsets)
    for beat in set(onsets.values()):
        together = [times[note_id] for note_id, onset in onsets.items() if onset == beat]
        assert max(together) - min(together) < 0.02  # each begins with the attack of its own pitch
    assert len(performance[0].notes) == 15


def test_page_images_alone_are_exact_to_a_frame(tmp_path: Path, encoder: Encoder) -> None:
    pages = engraved(tmp_path, melody(60), SHORT_PAGES)
    played = play_pages(pages)
    performed = perform(played, beat_sec=0.36)
    frames = align_pages(as_images(tmp_path, pages), record(performed), model=encoder)
    assert np.diff(frames["onset_sec"]) == pytest.approx(FRAME_SEC)
    # Two frames into each note, the place is at its head; two frames before, it is to the left or a line above.
    for head, onset_sec in zip(played.notes, performed["onset_sec"], strict=True):
        frame = round(onset_sec / FRAME_SEC)
        assert frames["page"][frame + 1] == head["page"]
        middle, reach = (head["x0"] + head["x1"]) / 2, head["x1"] - head["x0"]
        assert abs(frames["x"][frame + 1] - middle) <= reach
        before = frames[frame - 2]
        assert before["system"] < head["system"] or before["x"] < middle


def test_repeats_in_images_are_found_if_jumps_are_allowed(tmp_path: Path, encoder: Encoder) -> None:
    pages = engraved(tmp_path, tune())
    first = perform(play_pages(pages))
    again = first.copy()
    again["onset_sec"] += 16 * 0.48
    images = as_images(tmp_path, pages)
    recording = record(np.concatenate((first, again)))
    with pytest.warns(AlignmentWarning, match="goes from measure 8 to 1, where no sign was read"):
        frames = align_pages(images, recording, model=encoder, cuts=True)
    n_pass = round(16 * 0.48 / FRAME_SEC)
    start = round(0.48 / FRAME_SEC)
    once, twice = frames["x"][start : start + n_pass], frames["x"][start + n_pass : start + 2 * n_pass]
    assert np.median(np.abs(once - twice)) < 10


def test_all_layers_give_the_same_result(tmp_path: Path, encoder: Encoder) -> None:
    pages = engraved(tmp_path, tune())
    recording = record(perform(play_pages(pages)))
    soundfile.write(tmp_path / "recording.wav", recording.samples, recording.sample_rate_hz, subtype="FLOAT")
    encoded = encoder.encode_pages(pages), encoder.encode_recording(recording)
    scale, options = encoder.bundle.manifest.scale, decoding_options(encoder.bundle)
    arrays = align_encoded(pages, *encoded, scale, options=options)
    audio = align_recording(pages, recording, model=encoder.bundle, cache=tmp_path / "cache")
    cached = align_recording(pages, recording, model=encoder.bundle.folder, cache=tmp_path / "cache")
    files = align_score(tmp_path / "piece.musicxml", tmp_path / "recording.wav", model=encoder)
    for alignment in (audio, cached):
        assert alignment.note_alignment == arrays.note_alignment
    assert files[1] == arrays.note_alignment


def test_the_result_speaks_partitura(tmp_path: Path, encoder: Encoder) -> None:
    pages = engraved(tmp_path, VOLTAS)
    recording = record(perform(play_pages(pages, "maximal"), start_sec=0.48, beat_sec=0.48))
    performance, alignment, unfolded = align_score(tmp_path / "piece.musicxml", recording, model=encoder)
    assert isinstance(performance, pt.performance.Performance)
    assert isinstance(unfolded, pt.score.Score)
    to_score, to_seconds = pt.musicanalysis.performance_codec.get_time_maps_from_alignment(
        performance.note_array(), unfolded.note_array(), alignment
    )
    assert to_seconds([0, 4]) == pytest.approx([0.96, 2.88], abs=FRAME_SEC)
    assert to_score([0.96, 2.88]) == pytest.approx([0, 4], abs=0.1)


def test_a_recording_that_ends_early_leaves_deletions(tmp_path: Path, encoder: Encoder) -> None:
    pages = engraved(tmp_path, tune(PITCHES * 2))
    performed = perform(play_pages(pages))
    cut_sec = float(performed["onset_sec"][20])
    performance, alignment, _ = align_score(
        tmp_path / "piece.musicxml", record(performed, end_sec=cut_sec), model=encoder
    )
    labels = [entry["label"] for entry in alignment]
    assert labels == ["match"] * 20 + ["deletion"] * 12
    assert all(set(entry) == {"label", "score_id"} for entry in alignment[20:])
    assert len(performance[0].notes) == 20


def test_a_recording_that_begins_late_leaves_deletions(tmp_path: Path, encoder: Encoder) -> None:
    pages = engraved(tmp_path, tune(PITCHES * 2))
    performed = perform(play_pages(pages))[12:]
    performed["onset_sec"] -= performed["onset_sec"][0]
    _, alignment, _ = align_score(tmp_path / "piece.musicxml", record(performed), model=encoder)
    assert [entry["label"] for entry in alignment] == ["deletion"] * 12 + ["match"] * 20


def test_what_comes_before_and_after_the_piece_is_left_out(tmp_path: Path, encoder: Encoder) -> None:
    pages = engraved(tmp_path, tune())
    performed = perform(play_pages(pages), start_sec=4.0)
    alignment = align_recording(pages, record(performed, end_sec=20.0), model=encoder)
    assert onset_errors(alignment, performed).max() < FRAME_SEC + 1e-9
    music = np.flatnonzero(~alignment.path.is_filler)
    assert music[0] == pytest.approx(4.0 / FRAME_SEC, abs=1)
    assert music[-1] == pytest.approx((4.0 + 16 * 0.48 - 0.08) / FRAME_SEC, abs=1)


def test_a_recording_of_another_piece_is_marked_and_warned_about(tmp_path: Path, encoder: Encoder) -> None:
    other = play_pages(engraved(tmp_path, tune(PITCHES * 2)))
    rng = np.random.default_rng(0)
    performed = perform(other)
    performed["pitch"] = performed["pitch"][rng.permutation(len(performed))]
    pages = engraved(tmp_path, tune(PITCHES * 2))
    with pytest.warns(AlignmentWarning, match=r"is it a recording of .*piece\.musicxml\?"):
        alignment = align_recording(pages, record(performed), model=encoder)
    assert not alignment.is_reliable
    assert alignment.notes["confidence"].max() < 0.25


def test_repeats_and_cuts_are_refused_where_they_make_no_sense(tmp_path: Path, encoder: Encoder) -> None:
    pages = engraved(tmp_path, tune())
    recording = record(perform(play_pages(pages)))
    with pytest.raises(
        InputError, match="cuts are looked for, and repeats are '1-8'; expected one of the two"
    ):
        align_recording(pages, recording, model=encoder, cuts=True, repeats="1-8")
    with pytest.raises(InputError, match="repeats name measure twice; the measures of the score are 1 to 8"):
        align_recording(pages, recording, model=encoder, repeats="twice")
    with pytest.raises(InputError, match="repeats name measure 9; the measures of the score are 1 to 8"):
        align_recording(as_images(tmp_path, pages), recording, model=encoder, repeats="1-9")


def test_the_measures_that_the_user_names_are_played(tmp_path: Path, encoder: Encoder) -> None:
    pages = engraved(tmp_path, tune())
    first = perform(play_pages(pages))
    again = first.copy()
    again["onset_sec"] += 16 * 0.48
    recording = record(np.concatenate((first, again)))
    numbers = [str(number) for number in range(1, 9)]
    for source in (pages, as_images(tmp_path, pages)):
        alignment = align_recording(source, recording, model=encoder, repeats="1-8 1-8")
        assert alignment.measures["number"].tolist() == numbers * 2
        assert alignment.repeats == "1-8 1-8"
        starts = alignment.measures["start_sec"]
        assert starts == pytest.approx(0.48 + 0.96 * np.arange(16), abs=0.1)


def test_a_repeat_sign_on_an_image_is_followed_if_the_recording_does(
    tmp_path: Path, encoder: Encoder
) -> None:
    sign = (
        "<barline location='right'><bar-style>light-heavy</bar-style><repeat direction='backward'/></barline>"
    )
    before, _, after = tune().rpartition("</measure>")
    pages = engraved(tmp_path, before + sign + "</measure>" + after)
    images = as_images(tmp_path, pages)
    assert images.repeats is not None
    assert images.repeats.ends == (7,)
    twice = align_recording(images, record(perform(play_pages(pages, "maximal"))), model=encoder)
    assert twice.repeats == "1-8 1-8"
    once = align_recording(images, record(perform(play_pages(pages, "minimal"))), model=encoder)
    assert once.repeats == "none"
    assert len(once.measures) == 8


def lively_tune(n_measures: int, seed: int) -> str:
    """One staff of eighths, quarters and halves, with notes that are played again and again."""
    rng = np.random.default_rng(seed)
    bars, step = [], 8
    for number in range(1, n_measures + 1):
        content = ""
        for kind in [["eighth"] * 4, ["quarter", "eighth", "eighth"], ["quarter"] * 2, ["half"]][
            rng.integers(4)
        ]:
            step = int(np.clip(step + rng.integers(-3, 4), 2, 14))
            content += note(NATURALS[step], kind)
        bars.append(measure(content, number, first=number == 1))
    return score(bars)


@pytest.mark.parametrize("seed", range(2))
def test_images_alone_tell_when_the_heads_of_a_lively_tune_begin(
    tmp_path: Path, encoder: Encoder, seed: int
) -> None:
    pages = engraved(tmp_path, lively_tune(40, seed))
    performed = perform(play_pages(pages), slower=0.0007)
    maps = get_position_maps(align_pages(as_images(tmp_path, pages), record(performed), model=encoder))
    heads = pages.notes
    x, y = (heads["x0"] + heads["x1"]) / 2, (heads["y0"] + heads["y1"]) / 2
    errors = np.abs(maps.position_to_seconds(heads["page"], x, y) - performed["onset_sec"])
    assert len(set(pages.systems["system"])) > 2
    assert np.median(errors) <= 0.015
    # One tune has five equal notes in a row, of unequal durations.
    assert np.mean(errors < 0.1) >= 0.9
    assert np.mean(errors < 0.25) >= 0.9


@pytest.mark.parametrize("n_played", [13, 14, 15])
def test_notes_after_the_end_of_a_short_recording_are_not_rushed_through(
    tmp_path: Path, encoder: Encoder, n_played: int
) -> None:
    pages = engraved(tmp_path, melody(8))  # 16 notes, the same four again and again
    performed = perform(play_pages(pages))[:n_played]
    alignment = align_recording(pages, record(performed), model=encoder)
    assert np.isfinite(alignment.notes["onset_sec"]).tolist() == [True] * n_played + [False] * (16 - n_played)
    assert alignment.notes["onset_sec"][:n_played] == pytest.approx(performed["onset_sec"], abs=FRAME_SEC)
