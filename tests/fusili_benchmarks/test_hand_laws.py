import numpy as np
import pytest

from fusili_benchmarks.hand_laws import PLAYED_DTYPE, measure_laws


def _played(n_onsets: int, lead_sec: float, hands_sec: float, voicing: int, quarter_sec: float) -> np.ndarray:
    """Two notes in either hand on each quarter, held for three quarters of what is written."""
    rows = [
        (float(n), 1.0, pitch, staff, n * quarter_sec + late, 0.75 * quarter_sec, 64 + louder)
        for n in range(n_onsets)
        for pitch, staff, late, louder in (
            (48, 2, -hands_sec * (-1) ** n, 0),
            (55, 2, -hands_sec * (-1) ** n, 0),
            (60, 1, lead_sec, 0),
            (72, 1, 0.0, voicing),
        )
    ]
    return np.array(rows, dtype=PLAYED_DTYPE)


def test_what_was_played_is_measured() -> None:
    laws = measure_laws(_played(400, lead_sec=0.02, hands_sec=0.03, voicing=12, quarter_sec=0.5))
    assert laws.lead_sec == pytest.approx(0.02)
    assert laws.lead_spread_sec == pytest.approx(0.0, abs=1e-9)
    # the upper hand begins 10 ms late on average (its lower note by 20), the lower one 30 ms to either side
    assert laws.hand_sec == pytest.approx(0.01)
    assert laws.hand_spread_sec == pytest.approx(0.03)
    assert laws.hand_memory == pytest.approx(-1.0)
    assert laws.chord_sec == pytest.approx(0.01)  # 20 ms in one hand, none in the other
    assert laws.voicing == pytest.approx(12)
    assert measure_laws(_played(400, 0.0, 0.0, 0, 0.5)).held == pytest.approx(0.75)


def test_tempo_wanders_by_its_standard_deviation() -> None:
    notes = _played(400, 0.0, 0.0, 0, 0.5)
    wander = 0.2 * np.sin(np.arange(400) * 2 * np.pi / 40)
    seconds = np.cumsum(0.5 * np.exp(-wander))
    notes["onset_sec"] = np.repeat(seconds, 4)
    laws = measure_laws(notes)
    assert laws.tempo_spread == pytest.approx(0.2 * np.sqrt(0.5), rel=0.02)
    assert laws.tempo_memory == pytest.approx(np.cos(2 * np.pi / 40), abs=0.01)


def test_grace_notes_belong_to_no_chord() -> None:
    plain = _played(400, lead_sec=0.02, hands_sec=0.03, voicing=12, quarter_sec=0.5)
    graced = plain[3::4].copy()
    graced["onset_sec"] -= 0.1
    graced["duration_quarter"], graced["pitch"] = 0.0, 74
    both = np.sort(np.concatenate([plain, graced]), order=["onset_quarter", "pitch"])
    assert measure_laws(both) == measure_laws(plain)


def test_a_single_note_tells_no_law() -> None:
    laws = measure_laws(_played(1, 0.0, 0.0, 0, 0.5)[:1])
    assert np.isnan([laws.lead_sec, laws.hand_sec, laws.voicing, laws.tempo_spread]).all()
