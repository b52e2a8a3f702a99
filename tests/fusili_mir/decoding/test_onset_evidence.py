from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from fusili_mir.audio.onset_map import N_PITCHES, OnsetMap
from fusili_mir.audio.sound_envelope import SoundEnvelope
from fusili_mir.decoding import onset_evidence
from fusili_mir.decoding.onset_evidence import OnsetEvidence, StopPitches
from fusili_mir.decoding.timing_law import TimingLaw

LAW = TimingLaw(bias_sec=0.0)
C, E, G = 39, 43, 46  # indices of C4, E4, G4


def onsets_with(activations: dict[tuple[int, int], float], start_sec: float = 0.0) -> OnsetMap:
    """Two seconds with onsets at some (step, pitch)."""
    activation = np.zeros((200, N_PITCHES), np.float16)
    for place, value in activations.items():
        activation[place] = value
    return OnsetMap(activation, start_sec=start_sec)


def pitches_of(*stops: list[int], are_read: bool = False) -> StopPitches:
    weights = np.zeros((len(stops), N_PITCHES), np.float32)
    for stop, pitches in enumerate(stops):
        weights[stop, pitches] = 1 / max(len(pitches), 1)
    return StopPitches(weights, np.array([len(pitches) for pitches in stops], np.float32), are_read)


def envelope_with(*steps: int, start_sec: float = 0.0) -> SoundEnvelope:
    """Two seconds in which something begins at some steps."""
    rise = np.full(200, 0.001, np.float32)
    rise[list(steps)] = 1.0
    return SoundEnvelope(rise, np.ones(200, np.float32), start_sec=start_sec)


def evidence_of(
    onsets: OnsetMap, pitches: StopPitches, law: TimingLaw = LAW, envelope: SoundEnvelope | None = None
) -> OnsetEvidence:
    """Evidence; without an envelope, nothing else is heard."""
    nothing = np.zeros(200, np.float32)
    return OnsetEvidence(onsets, envelope or SoundEnvelope(nothing, nothing), pitches, law)


EVIDENCE = evidence_of(onsets_with({(41, C): 1.0, (81, E): 1.0}), pitches_of([C], [E], [C, E]))
SURE = 3.5 * math.log(1.03 / 0.3)
NOT_AT_ALL = 3.5 * -2.0  # log(0.03 / 0.3) = -2.3 is bounded


def test_a_stop_begins_where_its_own_pitch_does() -> None:
    first, second = (EVIDENCE.nats(stop, slice(0, 100)) for stop in (0, 1))
    assert [int(first.argmax()), int(second.argmax())] == [20, 40]  # cells of two steps
    assert first[20] == second[40] == pytest.approx(SURE, rel=1e-3)
    assert first[40] == second[20] == pytest.approx(NOT_AT_ALL)
    assert np.unique(first).tolist() == pytest.approx([NOT_AT_ALL, SURE], rel=1e-3)


def test_half_of_a_chord_is_half_of_its_strength() -> None:
    nats = EVIDENCE.nats(2, slice(0, 100))
    assert nats[[20, 40]] == pytest.approx([3.5 * math.sqrt(2) * math.log(0.53 / 0.3)] * 2, rel=1e-3)


def test_long_recordings_are_looked_at_in_parts_that_say_the_same(monkeypatch) -> None:
    strength = np.random.default_rng(0).uniform(size=(4001, N_PITCHES)).astype(np.float16)
    evidence = evidence_of(OnsetMap(strength), pitches_of([C], [E]))
    whole = evidence.nats(1, slice(0, 2000))
    ranges = np.array([3, 5, 130, 131, 250, 1990, 2500])
    block = evidence.block(ranges, slice(0, 2))
    monkeypatch.setattr(onset_evidence, "_KEPT_CELLS", 64)
    in_parts = evidence_of(OnsetMap(strength), pitches_of([C], [E]))
    assert in_parts.n_cells == 2000
    for first, end in ((0, 10), (60, 70), (50, 400), (1999, 2000), (63, 64), (1000, 1000), (1990, 2100)):
        assert in_parts.nats(1, slice(first, end)).tolist() == whole[first:end].tolist()
    assert in_parts.block(ranges, slice(0, 2)).tolist() == block.tolist()


def test_evidence_takes_as_much_memory_for_a_short_recording_as_for_a_long_one() -> None:
    peaks = []
    for n_steps in (60_000, 240_000):
        evidence = evidence_of(OnsetMap(np.ones((n_steps, N_PITCHES), np.float16)), pitches_of([C]))
        tracemalloc.start()
        for cell in range(0, n_steps // 2, 100):
            evidence.nats(0, slice(cell, cell + 100))
            evidence.block(np.arange(cell, cell + 50, 2), slice(0, 1))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_some_cells_are_a_part_of_all() -> None:
    assert EVIDENCE.nats(0, slice(15, 25)).tolist() == EVIDENCE.nats(0, slice(0, 100))[15:25].tolist()


@pytest.mark.parametrize("start_sec", [0.0, 5.0])
def test_the_middle_of_a_cell_lies_between_its_two_steps(start_sec: float) -> None:
    evidence = evidence_of(onsets_with({}, start_sec), pitches_of([C]))
    assert evidence.n_cells == 100
    assert evidence.cell_sec == pytest.approx(0.02)
    assert evidence.sound_weight == LAW.sound_weight
    middle_sec = evidence.start_sec + 20.5 * evidence.cell_sec
    assert middle_sec == pytest.approx(start_sec + (0.40 + 0.41) / 2)


def test_onsets_of_anything_count_beside_pitches_only_if_those_were_read() -> None:
    onsets, envelope = onsets_with({(41, C): 1.0}), envelope_with(120)
    known = evidence_of(onsets, pitches_of([C]), LAW, envelope).nats(0, slice(0, 100))
    assert known.tolist() == evidence_of(onsets, pitches_of([C])).nats(0, slice(0, 100)).tolist()
    read = pitches_of([C], are_read=True)
    alone = evidence_of(onsets, read).nats(0, slice(0, 100))
    both = evidence_of(onsets, read, LAW, envelope).nats(0, slice(0, 100))
    assert alone[20] == pytest.approx(1.4 * 1.6)  # log(1.03 / 0.2) = 1.64 is bounded
    anything = [3.0 * max(pair) for pair in envelope.nats.reshape(100, 2).tolist()]
    assert both[8:] - alone[8:] == pytest.approx(anything[8:], abs=1e-5)
    assert both[:8].max() <= 0.0  # where the recording is cut, nothing speaks for an onset


def test_an_envelope_that_ends_early_says_nothing_about_the_rest() -> None:
    short = SoundEnvelope(envelope_with(20).rise[:101], np.ones(101, np.float32))
    read = pitches_of([C], are_read=True)
    onsets = onsets_with({})
    gained = evidence_of(onsets, read, LAW, short).nats(0, slice(0, 100))
    gained -= evidence_of(onsets, read).nats(0, slice(0, 100))
    assert gained[51:].tolist() == [0.0] * 49


def test_a_stop_at_which_nothing_was_read_begins_where_anything_does() -> None:
    envelope = envelope_with(41, 120)
    read = pitches_of([], [C], are_read=True)
    evidence = evidence_of(onsets_with({(61, C): 1.0}), read, LAW, envelope)
    nats = evidence.nats(0, slice(0, 100))
    assert nats.tolist() == [3.0 * max(pair) for pair in envelope.nats.reshape(100, 2).tolist()]
    assert np.flatnonzero(nats > 0).tolist() == [20, 60]
    assert not evidence.block(np.arange(0, 100, 5), slice(0, 1)).any()  # no pitch tells it from other stops
    assert evidence.activation(np.array([0]), np.array([0.6])).tolist() == [0.0]


@pytest.mark.parametrize("start_sec", [0.0, 5.0])
def test_stops_are_moved_to_the_peak_of_their_own_pitches(start_sec: float) -> None:
    onsets = onsets_with({(40, C): 1.0, (41, C): 2.0, (42, C): 1.5, (39, E): 3.0}, start_sec)
    evidence = evidence_of(onsets, pitches_of([C], [E], [G]))
    seconds = start_sec + np.array([0.405, 0.405, 0.405])
    # The parabola through 1, 2, 1.5 has its top a sixth of a step after the middle one.
    expected = start_sec + np.array([0.41 + 0.01 / 6, 0.39, 0.405])
    assert evidence.refined(np.array([0, 1, 2]), seconds) == pytest.approx(expected, abs=1e-9)


def test_peaks_are_looked_for_within_50_ms_and_dated_as_late_as_they_are_seen() -> None:
    evidence = evidence_of(onsets_with({(40, C): 1.0}), pitches_of([C]), TimingLaw(bias_sec=0.002))
    found = evidence.refined(np.zeros(4, np.int64), np.array([0.34, 0.35, 0.45, 0.46]))
    assert found == pytest.approx([0.34, 0.398, 0.398, 0.46])


def test_peaks_at_the_ends_of_a_recording_stay_inside_it() -> None:
    evidence = evidence_of(onsets_with({(0, C): 1.0, (199, C): 1.0}), pitches_of([C]))
    found = evidence.refined(np.zeros(3, np.int64), np.array([0.0, 0.03, 1.97]))
    assert found == pytest.approx([0.0, 0.0, 1.99], abs=0.005 + 1e-9)


def test_stops_whose_pitches_are_not_known_or_hardly_heard_are_moved_to_any_onset() -> None:
    envelope = envelope_with(40)
    read = pitches_of([C], are_read=True)
    nothing = pitches_of([], are_read=True)
    for evidence in (
        evidence_of(onsets_with({(43, C): 1.0}), nothing, LAW, envelope),
        evidence_of(onsets_with({(43, C): 0.1}), read, LAW, envelope),  # less than `read_onset_strength`
    ):
        found = evidence.refined(np.zeros(2, np.int64), np.array([0.42, 0.60]))
        assert found == pytest.approx([0.40, 0.60])


def test_stops_whose_read_pitches_are_heard_are_moved_there() -> None:
    evidence = evidence_of(
        onsets_with({(43, C): 1.0}), pitches_of([C], are_read=True), LAW, envelope_with(40)
    )
    found = evidence.refined(np.zeros(2, np.int64), np.array([0.42, 0.60]))
    assert found == pytest.approx([0.43, 0.60])


def test_the_pitches_of_a_stop_are_looked_for_a_tenth_to_two_tenths_of_a_second_away() -> None:
    onsets = onsets_with({(60, C): 0.47, (75, C): 0.97, (45, C): 0.22, (100, C): 0.97})
    nearby = evidence_of(onsets, pitches_of([C])).nearby(np.array([0]), np.array([0.6]))
    # Every second step is looked at, and an onset lasts for some of them: here 75 and 45 are not among them.
    assert nearby.later.tolist() == nearby.earlier.tolist() == pytest.approx([math.log(0.03 / 0.5)], rel=1e-3)
    onsets = onsets_with({(60, C): 0.47, (76, C): 0.97, (46, C): 0.22, (100, C): 0.97})
    nearby = evidence_of(onsets, pitches_of([C])).nearby(np.array([0]), np.array([0.6]))
    assert nearby.later.tolist() == pytest.approx([math.log(1.0 / 0.5)], rel=1e-3)
    assert nearby.earlier.tolist() == pytest.approx([math.log(0.25 / 0.5)], rel=1e-3)


def test_what_begins_between_two_stops_counts_whatever_its_pitch_but_not_their_own_onsets() -> None:
    onsets = onsets_with({(60, C): 1.0, (64, E): 1.0, (80, G): 0.5, (97, E): 1.0, (120, G): 0.75})
    evidence = evidence_of(onsets, pitches_of([C], [E], [C]))
    nearby = evidence.nearby(np.arange(3), np.array([0.6, 1.0, 1.04]))
    assert nearby.passed.tolist() == [0.5, 0.0, 0.0]  # the last has no stop after it


def test_pitches_of_a_score_are_never_doubtful_and_those_read_as_much_as_they_are_said_to_be() -> None:
    stops, seconds = np.array([1]), np.array([0.6])
    known = pitches_of([C], [E])
    read = StopPitches(known.weights, known.n_notes, True, np.array([0.1, 0.2], np.float32))
    onsets = onsets_with({})
    assert evidence_of(onsets, known).nearby(stops, seconds).doubtful.tolist() == [0.0]
    assert evidence_of(onsets, read).nearby(stops, seconds).doubtful == pytest.approx([0.2])
