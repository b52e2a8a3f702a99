from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from example_performances import PITCHES

from fusili_mir.alignment.results import Alignment
from fusili_mir.output.piano_precision import piano_precision_rows, save_piano_precision_csv


def test_places_are_measures_from_1_and_whole_notes_from_their_start(cut_short: Alignment) -> None:
    rows = list(piano_precision_rows(cut_short))
    assert [label for label, _ in rows] == [f"{1 + i // 2}+{('0/1', '1/4')[i % 2]}" for i in range(10)]
    assert [second for _, second in rows] == cut_short.notes["onset_sec"][:10].tolist()


def test_a_pick_up_is_the_end_of_measure_0_and_what_is_repeated_is_left_out(repeated: Alignment) -> None:
    rows = list(piano_precision_rows(repeated))
    assert [label for label, _ in rows] == ["0+1/4", "1+0/1", "2+1/4", "3+0/1"]
    seconds = [second for _, second in rows]
    assert seconds == sorted(seconds)
    first_c5 = repeated.notes["onset_sec"][(repeated.notes["pitch"] == 72)].min()
    assert seconds[1] == pytest.approx(first_c5)


def test_the_file_is_what_parangonar_writes_for_piano_precision(duet: Alignment, tmp_path: Path) -> None:
    from parangonar.evaluate import io as evaluate

    assert duet.played is not None
    evaluate.save_piano_precision_csv(
        duet.performance, duet.played.score[0], duet.note_alignment, str(tmp_path / "theirs.csv")
    )
    save_piano_precision_csv(duet, tmp_path / "ours.csv")
    ours, theirs = (
        [
            (row["LABEL"], float(row["TIME"]))
            for row in csv.DictReader((tmp_path / name).read_text().splitlines())
        ]
        for name in ("ours.csv", "theirs.csv")
    )
    assert len(ours) == len(PITCHES)
    assert [label for label, _ in ours] == [label for label, _ in theirs]
    assert np.abs(np.subtract([s for _, s in ours], [s for _, s in theirs])).max() < 0.03
