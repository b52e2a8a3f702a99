"""Results of the benchmark of pitches."""

from pathlib import Path

import numpy as np

from fusili_benchmarks.odd_pieces import ODD_KINDS, write_odd_piece
from fusili_benchmarks.pitch_results import CloseHeads, KeptResults, PitchResult
from fusili_mir.scores.score_file import read_score_file


def test_errors_are_counted_at_both_speeds() -> None:
    heads = CloseHeads.of(np.array([0.1, 0.25, 0.4, np.inf]), slower=2.0)
    assert (heads.n_heads, heads.within_250, heads.within_250_unshifted) == (4, 2, 3)
    assert heads.median_ms == 325.0


def test_a_result_is_computed_once_and_survives_in_its_file(tmp_path: Path) -> None:
    result = PitchResult(-200.0, "found", -201.0, 1.0, heads=CloseHeads(4, 3, 3, 5.0))
    KeptResults(tmp_path / "runs.jsonl").keep("first", lambda: result)

    def again() -> PitchResult:
        raise AssertionError("computed twice")

    assert KeptResults(tmp_path / "runs.jsonl").keep("first", again) == result


def test_odd_pieces_have_48_measures_and_differ_by_seed(tmp_path: Path) -> None:
    for kind in ODD_KINDS:
        roots = [read_score_file(write_odd_piece(kind, seed, tmp_path).file).root for seed in (0, 1)]
        assert [len(list(root.iter("measure"))) for root in roots] == [48, 48]
        steps = [
            [(note.findtext("step"), note.findtext("octave")) for note in root.iter("pitch")]
            for root in roots
        ]
        assert steps[0] != steps[1]
