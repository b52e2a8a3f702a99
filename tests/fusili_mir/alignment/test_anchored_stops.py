"""Alignments with anchors: they are kept, and only what lies between their neighbours changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_bundles import write_pitch_bundle
from example_performances import PITCHES, perform, record, tune
from example_scores import VOLTAS, measure, note, score
from PIL import Image

from fusili_mir.alignment.aligning import align_recording
from fusili_mir.alignment.anchors import Anchor
from fusili_mir.alignment.played import play_pages
from fusili_mir.alignment.results import Alignment
from fusili_mir.audio.recording import AudioSamples
from fusili_mir.boxes import MEASURE_DTYPE
from fusili_mir.errors import InputError
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import Pages, load_pages, render_pages


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    return Encoder(write_pitch_bundle(tmp_path_factory.mktemp("bundle") / "pitch"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scores")


def engraved(folder: Path, name: str, content: str) -> Pages:
    (folder / f"{name}.musicxml").write_text(content, encoding="utf-8")
    return render_pages(folder / f"{name}.musicxml")


@pytest.fixture(scope="module")
def song(folder: Path) -> Pages:
    """Twenty-four measures of two notes."""
    return engraved(folder, "song", tune(PITCHES * 3))


@pytest.fixture(scope="module")
def recording(song: Pages) -> AudioSamples:
    return record(perform(play_pages(song), slower=0.003))


@pytest.fixture(scope="module")
def free(song: Pages, recording: AudioSamples, encoder: Encoder) -> Alignment:
    return align_recording(song, recording, model=encoder, transpose=0)


def start_of(alignment: Alignment, number: int) -> float:
    return float(alignment.measures["start_sec"][alignment.measures["number"] == str(number)][0])


def test_anchors_are_kept_to_the_millisecond(
    song: Pages, recording: AudioSamples, encoder: Encoder, free: Alignment
) -> None:
    wrong = {8: start_of(free, 8) + 0.31, 17: start_of(free, 17) - 0.23}
    found = align_recording(song, recording, model=encoder, transpose=0, anchors=wrong)
    for number, second in wrong.items():
        assert start_of(found, number) == pytest.approx(second, abs=1e-6)
    assert np.all(np.diff(found.notes["onset_sec"]) > 0)
    assert found.anchors == tuple(Anchor(second, measure=str(number)) for number, second in wrong.items())
    assert found.made_with is not None
    assert found.made_with.options["anchors"][0] == {"measure": "8", "pass": 1, "second": wrong[8]}


def test_only_the_stretch_between_its_neighbours_changes(
    song: Pages, recording: AudioSamples, encoder: Encoder, free: Alignment
) -> None:
    anchors = {number: start_of(free, number) for number in (5, 11, 18)}
    before = align_recording(song, recording, model=encoder, transpose=0, anchors=anchors)
    moved = {**anchors, 11: anchors[11] + 0.35}
    after = align_recording(song, recording, model=encoder, transpose=0, anchors=moved)
    changed = before.notes["onset_sec"] != after.notes["onset_sec"]
    onset = before.notes["onset_sec"]
    inside = (onset > anchors[5]) & (onset < anchors[18])
    assert not changed[~inside].any()
    assert changed[np.isclose(onset, anchors[11], atol=0.1)].all()
    frame_sec = before.frames["onset_sec"]
    outside = (frame_sec < anchors[5] - 0.05) | (frame_sec > anchors[18] + 0.05)
    assert np.array_equal(before.frames[outside], after.frames[outside])


def test_a_right_anchor_mends_a_wrong_alignment(song: Pages, encoder: Encoder) -> None:
    """A recording in which eight bars are played twice, although the score has them once."""
    performed = perform(play_pages(song))
    again = performed[16:32].copy()
    shift_sec = float(performed["onset_sec"][32] - performed["onset_sec"][16])
    later = performed[16:].copy()
    later["onset_sec"] += shift_sec
    played = np.concatenate((performed[:16], again, later))
    sound = record(played)
    truth = later["onset_sec"][16:]  # of the last sixteen notes
    found = align_recording(song, sound, model=encoder, transpose=0, anchors={17: float(truth[0])})
    assert np.abs(found.notes["onset_sec"][32:] - truth).max() < 0.06


def test_a_note_is_anchored_by_its_id(
    song: Pages, recording: AudioSamples, encoder: Encoder, free: Alignment
) -> None:
    note_id = str(free.notes["id"][21])
    second = float(free.notes["onset_sec"][21]) + 0.17
    found = align_recording(
        song, recording, model=encoder, transpose=0, anchors=[Anchor(second, note=note_id)]
    )
    assert found.notes["onset_sec"][21] == second
    anchored = found.notes[21]
    assert (anchored["earliest_sec"], anchored["latest_sec"], anchored["confidence"]) == (second, second, 1.0)
    place = free.notes[21]
    at = (int(place["page"]), float(place["x0"] + place["x1"]) / 2, float(place["y0"]))
    same = align_recording(song, recording, model=encoder, transpose=0, anchors=[Anchor(second, place=at)])
    assert np.array_equal(same.notes["onset_sec"], found.notes["onset_sec"])


def test_each_time_that_a_measure_is_played_has_its_own_anchor(folder: Path, encoder: Encoder) -> None:
    pages = engraved(folder, "voltas", VOLTAS)
    recording = record(perform(play_pages(pages, "maximal")))
    free = align_recording(pages, recording, model=encoder, transpose=0)
    numbers, counts = np.unique(free.measures["number"], return_counts=True)
    number = str(numbers[counts == 2][0])
    first, second = free.measures["start_sec"][free.measures["number"] == number]
    anchors = [Anchor(float(second) + 0.1, measure=number, time=2)]
    found = align_recording(pages, recording, model=encoder, transpose=0, anchors=anchors)
    times = found.measures["start_sec"][found.measures["number"] == number]
    assert times[1] == pytest.approx(second + 0.1, abs=1e-6)
    assert times[0] == pytest.approx(first, abs=0.05)
    with pytest.raises(InputError, match=rf"measure {number} \(time 3\): the recording plays .* 2 times"):
        align_recording(
            pages, recording, model=encoder, transpose=0, anchors=[Anchor(1.0, measure=number, time=3)]
        )


def test_a_measure_in_which_nothing_begins_can_be_anchored(folder: Path, encoder: Encoder) -> None:
    rest = "<note><rest/><duration>{}</duration><voice>1</voice><type>{}</type></note>"
    bars = [
        measure(note(PITCHES[0]) + note(PITCHES[1]), 1, first=True),
        measure(rest.format(2, "quarter") + note(PITCHES[2]), 2),
        measure(note(PITCHES[3]) + note(PITCHES[4]), 3),
        measure(note(PITCHES[5]) + note(PITCHES[6]), 4),
    ]
    pages = engraved(folder, "rest", score(bars))
    recording = record(perform(play_pages(pages)))
    free = align_recording(pages, recording, model=encoder, transpose=0)
    second = start_of(free, 2) + 0.11
    found = align_recording(pages, recording, model=encoder, transpose=0, anchors={2: second})
    assert start_of(found, 2) == pytest.approx(second, abs=1e-6)
    assert found.notes["onset_sec"][1] < second < found.notes["onset_sec"][2]


@pytest.mark.parametrize(
    ("anchors", "expected"),
    [
        (
            {5: 4.0, 7: 3.0},
            "measure 5 is anchored at 4 s, measure 7 at 3 s, but it comes later",
        ),
        ({99: 4.0}, "measure 99 is not in the score, whose measures are numbered 1 to 24"),
        ({5: 4000.0}, "measure 5 is anchored at 4000 s, outside the recording of 0 to"),
        ([Anchor(4.0, note="nobody")], "note nobody: no note of the score as played has this id"),
        ([Anchor(4.0, place=(7, 1.0, 1.0))], "page 7 has no systems; pages are counted from 0"),
        (7, "anchors: 7, expected a table, measures with their seconds, or anchors"),
    ],
)
def test_impossible_anchors_are_one_clear_line(
    song: Pages, recording: AudioSamples, encoder: Encoder, anchors: Any, expected: str
) -> None:
    with pytest.raises(InputError, match=expected):
        align_recording(song, recording, model=encoder, transpose=0, anchors=anchors)


def test_anchors_too_close_for_the_notes_between_them_still_keep_the_order(
    song: Pages, recording: AudioSamples, encoder: Encoder, free: Alignment
) -> None:
    start = start_of(free, 4)
    found = align_recording(song, recording, model=encoder, transpose=0, anchors={4: start, 12: start + 0.1})
    assert start_of(found, 12) == pytest.approx(start + 0.1, abs=1e-6)
    assert np.all(np.diff(found.measures["start_sec"]) > 0)


@pytest.fixture(scope="module")
def scan(folder: Path, song: Pages) -> Pages:
    Image.fromarray(song.images[0]).rotate(0.9, Image.Resampling.BICUBIC, fillcolor=255).save(
        folder / "scan.png"
    )
    return load_pages(folder / "scan.png")


def test_places_on_images_are_anchored(scan: Pages, recording: AudioSamples, encoder: Encoder) -> None:
    free = align_recording(scan, recording, model=encoder, transpose=0)
    assert free.moments is not None
    row = len(free.moments.seconds) // 2
    second = float(free.moments.seconds[row]) + 0.2
    page, x, y = free.position_maps.seconds_to_position(float(free.moments.seconds[row]))
    at = (int(page), float(x), float(y))
    found = align_recording(scan, recording, model=encoder, transpose=0, anchors=[Anchor(second, place=at)])
    assert found.moments is not None
    assert np.abs(found.moments.seconds - second).min() == 0.0
    unknown = replace(scan, measures=scan.measures[:0], repeats=None)
    with pytest.raises(InputError, match="no measures are known on these pages; anchor places instead"):
        align_recording(unknown, recording, model=encoder, transpose=0, anchors={3: 4.0})


def test_measures_on_images_are_anchored_where_they_are_known(
    scan: Pages, song: Pages, recording: AudioSamples, encoder: Encoder
) -> None:
    measures = song.measures.astype(MEASURE_DTYPE)
    known = replace(scan, measures=measures)
    free = align_recording(known, recording, model=encoder, transpose=0)
    second = start_of(free, 9) + 0.15
    found = align_recording(known, recording, model=encoder, transpose=0, anchors={9: second})
    assert start_of(found, 9) == pytest.approx(second, abs=1e-6)
