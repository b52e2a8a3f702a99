"""How people play what is written together: which notes come first, which are louder, and how tempo wanders.

All laws are of rows of notes, one for each note that was played as written: `PLAYED_DTYPE`.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import partitura as pt

from fusili_mir.arrays import Float64

__all__ = ["PLAYED_DTYPE", "Laws", "PedalUse", "measure_laws", "read_pedal", "read_played"]

PLAYED_DTYPE = np.dtype(
    [
        *(("onset_quarter", "f8"), ("duration_quarter", "f8"), ("pitch", "i4"), ("staff", "i4")),
        *(("onset_sec", "f8"), ("duration_sec", "f8"), ("velocity", "i4")),
    ]
)
_HALF_DOWN = (32, 96)  # of 127: between them, strings are damped in part
_SHORTEST_PERIOD_SEC = 0.1  # tempo is told by onsets that are at least so far apart
_STRAY_SEC = 0.5  # what lies farther from its chord is a slip of the matching


@dataclass(frozen=True)
class Laws:
    """Means and standard deviations over all notes that have others to compare with.

    Attributes
    ----------
    lead_sec, lead_spread_sec : float
        How far the highest note of an onset comes before the mean of the others of its staff.
    hand_sec, hand_spread_sec : float
        How far the lower staff comes before the upper one, where both begin together.
    hand_memory : float
        Correlation of that distance from one common onset to the next.
    chord_sec : float
        Mean distance from the first to the last note of a chord on one staff.
    voicing : float
        Velocity of the highest note of an onset, less the mean of the others.
    tempo_spread, tempo_memory : float
        Standard deviation of the log tempo within a piece, and its correlation from one quarter note to the next.
    held : float
        Median of how long keys are held, as a share of what is written.
    """

    lead_sec: float
    lead_spread_sec: float
    hand_sec: float
    hand_spread_sec: float
    hand_memory: float
    chord_sec: float
    voicing: float
    tempo_spread: float
    tempo_memory: float
    held: float


@dataclass(frozen=True)
class PedalUse:
    """Share of the time in which the damper pedal is not up, and share of that in which it is not down either."""

    used: float
    half: float


def read_played(match_file: str | os.PathLike[str]) -> npt.NDArray[np.void]:
    """Return the notes of a match file that were played as written, by score onset [dtype=PLAYED_DTYPE]."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        performance, alignment, score = pt.load_match(os.fspath(match_file), create_score=True)
        written = {str(row["id"]): row for row in score.note_array(include_staff=True)}
        played = {str(row["id"]): row for row in performance.note_array()}
    rows = [
        (
            *(of_score[name] for name in ("onset_quarter", "duration_quarter", "pitch", "staff")),
            *(of_player[name] for name in ("onset_sec", "duration_sec", "velocity")),
        )
        for pair in alignment
        if pair["label"] == "match"
        and (of_score := written.get(pair["score_id"])) is not None
        and (of_player := played.get(pair["performance_id"])) is not None
    ]
    return np.sort(np.array(rows, dtype=PLAYED_DTYPE), order=["onset_quarter", "pitch"])


def read_pedal(match_file: str | os.PathLike[str]) -> PedalUse:
    """Return how the damper pedal is used from its first movement to its last."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        performance, _ = pt.load_match(os.fspath(match_file))
    moves = sorted((move["time"], move["value"]) for move in performance[0].controls if move["number"] == 64)
    if len(moves) < 2:
        return PedalUse(0.0, 0.0)
    at_sec, depth = np.array(moves, dtype=np.float64).T
    lasting = np.diff(at_sec) / max(at_sec[-1] - at_sec[0], 1e-9)
    low, high = _HALF_DOWN
    used = float(lasting[depth[:-1] >= low].sum())
    half = float(lasting[(depth[:-1] >= low) & (depth[:-1] < high)].sum())
    return PedalUse(used, half / used if used else 0.0)


def measure_laws(played: npt.NDArray[np.void]) -> Laws:
    """Measure the laws of one performance; NaN where nothing tells them."""
    leads, spreads, voicings, hands = [], [], [], []
    played = played[
        played["duration_quarter"] > 0
    ]  # grace notes are written where others are, and come before
    for first, end in _runs(played["onset_quarter"]):
        together = played[first:end]
        middle = np.median(together["onset_sec"])
        together = together[np.abs(together["onset_sec"] - middle) < _STRAY_SEC]
        begins = {}
        for staff in (1, 2):
            chord = together[together["staff"] == staff]
            if len(chord):
                begins[staff] = float(chord["onset_sec"].mean())
            if len(chord) > 1:
                spreads.append(float(np.ptp(chord["onset_sec"])))
        upper = together[together["staff"] == 1]
        if len(upper) > 1:
            leads.append(float(upper["onset_sec"][:-1].mean() - upper["onset_sec"][-1]))
        if len(together) > 1:
            voicings.append(float(together["velocity"][-1] - together["velocity"][:-1].mean()))
        if len(begins) == 2:
            hands.append(begins[1] - begins[2])
    log_tempo = _log_tempo(played)
    quarter_sec = np.exp(-np.median(log_tempo)) if len(log_tempo) else np.nan
    held = played["duration_sec"] / (played["duration_quarter"] * quarter_sec)
    return Laws(
        *_mean_and_spread(leads),
        *_mean_and_spread(hands),
        _memory(np.array(hands)),
        _mean_and_spread(spreads)[0],
        _mean_and_spread(voicings)[0],
        float(np.std(log_tempo)) if len(log_tempo) else np.nan,
        _memory(log_tempo),
        float(np.median(held)) if len(held) else np.nan,
    )


def _runs(values: Float64) -> list[tuple[int, int]]:
    """Return where equal values of a sorted row [shape=(n,)] begin and end."""
    borders = np.flatnonzero(np.diff(values)) + 1
    return list(zip([0, *borders], [*borders, len(values)], strict=True)) if len(values) else []


def _log_tempo(played: npt.NDArray[np.void]) -> Float64:
    """Return the log of the tempo in quarter notes a second, for each quarter note with an onset."""
    onsets = [
        (played["onset_quarter"][first], float(np.median(played["onset_sec"][first:end])))
        for first, end in _runs(played["onset_quarter"])
    ]
    kept = [onsets[0]] if onsets else []
    for quarter, second in onsets:
        if quarter >= kept[-1][0] + 1 and second >= kept[-1][1] + _SHORTEST_PERIOD_SEC:
            kept.append((quarter, second))
    quarters, seconds = np.array(kept, dtype=np.float64).reshape(-1, 2).T
    return np.asarray(np.log(np.diff(quarters) / np.diff(seconds)))


def _mean_and_spread(values: list[float]) -> tuple[float, float]:
    return (float(np.mean(values)), float(np.std(values))) if values else (np.nan, np.nan)


def _memory(values: Float64) -> float:
    """Return the correlation of each value with the next."""
    if len(values) < 3 or not np.ptp(values):
        return np.nan
    return float(np.corrcoef(values[:-1], values[1:])[0, 1])
