from __future__ import annotations

from pathlib import Path

import example_scores
import numpy as np
import pytest

from fusili_mir.scores.score_file import read_score_file
from fusili_training.rendering.rendition import Rendition
from fusili_training.rendering.segment_spans import Span
from fusili_training.sound.expression import Expression, perform
from fusili_training.sound.score_clock import read_score_clock
from fusili_training.sound.soundbank import SoundBank
from fusili_training.sound.sounding_score import read_sounding_score

RATE_HZ = 1000


def _bank(sustained: bool = True) -> SoundBank:
    """Every key is a square wave of full scale: loud for as long as it is held."""
    n = 400
    return SoundBank(
        name="square",
        licence="",
        sample_rate_hz=RATE_HZ,
        velocities=(64,),
        samples=np.tile(np.array([1000, -1000], np.int16), n * 44),
        start=(np.arange(88) * n)[None],
        length=np.full((1, 88), n),
        release_db_per_sec=np.full(88, 6000.0),
        loop_length=n if sustained else 0,
        gain=1e-4,
    )


def _rendition(
    content: str, folder: Path, parts: tuple[int, ...] = (0,), sustained: bool = True
) -> Rendition:
    path = folder / "score.musicxml"
    path.write_text(content)
    score = read_sounding_score(read_score_file(path))
    performed = perform(score.notes, score.tempo, Expression(), np.random.default_rng(0))
    clock = read_score_clock(score.notes, performed)
    return Rendition(score, performed, clock, {part: _bank(sustained) for part in parts})


def test_a_clip_goes_from_the_first_measure_to_the_end_of_the_last_with_its_leads(tmp_path: Path) -> None:
    rendition = _rendition(example_scores.melody(4), tmp_path)  # 2 quarters per measure, 0.5 s each
    clip = rendition.clip_times(Span(1, 2), lead_in_sec=0.2, lead_out_sec=0.3)
    assert clip.start_sec == pytest.approx(0.8)
    assert clip.duration_sec == pytest.approx(2.5)


def test_notes_from_before_ring_into_a_clip_and_notes_from_after_are_silent(tmp_path: Path) -> None:
    rendition = _rendition(example_scores.melody(3), tmp_path)
    clip = rendition.clip_times(Span(1, 1), 0.2, 0.4)
    loud = np.abs(rendition.sound_of(Span(1, 1), clip)) > 0.01
    assert loud[:200].all()  # the last note of the previous measure
    assert loud[200:1190].all()
    assert not loud[1250:].any()  # the next measure begins at 1.2 s


def test_parts_without_a_bank_are_silent(tmp_path: Path) -> None:
    rendition = _rendition(example_scores.song(2), tmp_path, parts=(1,))
    heads = rendition.score.heads
    assert rendition.is_heard(heads).tolist() == (rendition.score.notes["part"][heads["note"]] == 1).tolist()
    assert rendition.is_heard(heads).sum() == 8


def test_the_heads_of_a_tie_share_the_time_of_its_note(tmp_path: Path) -> None:
    rendition = _rendition(example_scores.VOLTAS, tmp_path)
    rows = [rendition.score.row_of_head[head] for head in ("n3", "n4")]
    times = rendition.times_of(rendition.score.heads[rows])
    # The pick-up is a quarter, then C5 is held for a half and a quarter; 120 quarters per minute.
    assert times.onset_sec.tolist() == pytest.approx([0.5, 1.5])
    assert times.offset_sec.tolist() == pytest.approx([1.5, 2.0])
    assert times.struck.tolist() == [True, False]
