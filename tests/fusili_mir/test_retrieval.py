from __future__ import annotations

from pathlib import Path

import pytest
from example_bundles import write_pitch_bundle
from example_performances import FRAME_SEC, perform, record, tune

from fusili_mir.alignment import Alignment, align_recording
from fusili_mir.encoder import Encoder
from fusili_mir.errors import InputError
from fusili_mir.pages import render_pages
from fusili_mir.played import play_pages
from fusili_mir.retrieval import point_at_spot, point_at_time

PITCHES = ("C4", "E4", "G4", "C5", "A4", "E4", "D5", "B4")  # E4 comes in the first and in the third measure


@pytest.fixture(scope="module")
def alignment(tmp_path_factory: pytest.TempPathFactory) -> Alignment:
    folder: Path = tmp_path_factory.mktemp("retrieval")
    (folder / "tune.musicxml").write_text(tune(PITCHES))
    pages = render_pages(folder / "tune.musicxml")
    recording = record(perform(play_pages(pages), start_sec=0.48, beat_sec=0.48))
    return align_recording(pages, recording, Encoder(write_pitch_bundle(folder / "bundle")))


def head(alignment: Alignment, note: int) -> tuple[float, float]:
    row = alignment.notes[note]
    return float(row["x0"] + row["x1"]) / 2, float(row["y0"] + row["y1"]) / 2


def test_a_second_points_at_the_note_that_sounds_and_then_at_those_that_sound_alike(
    alignment: Alignment,
) -> None:
    first, second = point_at_time(alignment, 0.48 + 0.48 + 0.02, n_spots=2)  # just after the first E4 begins
    assert (first.page, first.measure) == (0, "1")
    assert first.x == pytest.approx(head(alignment, 1)[0], abs=10)
    assert first.similarity == pytest.approx(1.0, abs=1e-5)
    assert (second.page, second.measure) == (0, "3")  # the other E4
    assert second.x == pytest.approx(head(alignment, 5)[0], abs=10)
    assert second.similarity == pytest.approx(1.0, abs=1e-5)


def test_a_spot_points_at_the_second_when_it_sounds_and_then_at_those_that_sound_alike(
    alignment: Alignment,
) -> None:
    first, second = point_at_spot(alignment, 0, *head(alignment, 5), n_moments=2)
    assert first.seconds == pytest.approx(0.48 + 5 * 0.48, abs=FRAME_SEC)
    assert second.seconds == pytest.approx(0.48 + 1 * 0.48, abs=FRAME_SEC)
    assert [first.similarity, second.similarity] == pytest.approx([1.0, 1.0], abs=1e-5)


def test_spots_and_seconds_lead_back_to_each_other(alignment: Alignment) -> None:
    for note in range(len(PITCHES)):
        (moment,) = point_at_spot(alignment, 0, *head(alignment, note), n_moments=1)
        (spot,) = point_at_time(alignment, moment.seconds, n_spots=1)
        assert spot.x == pytest.approx(head(alignment, note)[0], abs=2)


def test_answers_come_best_first_and_never_more_than_asked_for(alignment: Alignment) -> None:
    spots = point_at_time(alignment, 1.0, n_spots=4)
    assert len(spots) == 4
    similarities = [spot.similarity for spot in spots[1:]]
    assert similarities == sorted(similarities, reverse=True)
    assert len(point_at_time(alignment, 1.0, n_spots=1)) == 1


def test_a_second_outside_the_recording_is_refused(alignment: Alignment) -> None:
    with pytest.raises(InputError, match=r"99 s is outside the recording \(0 to "):
        point_at_time(alignment, 99.0)


def test_a_page_that_does_not_exist_is_refused(alignment: Alignment) -> None:
    with pytest.raises(InputError, match="page 4 of 1 has no music, or does not exist"):
        point_at_spot(alignment, 3, 10.0, 10.0)
