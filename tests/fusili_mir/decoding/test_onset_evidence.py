from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from fusili_mir.audio.attack_map import N_PITCHES, AttackMap
from fusili_mir.audio.sound_envelope import SoundEnvelope
from fusili_mir.decoding import onset_evidence
from fusili_mir.decoding.onset_evidence import AnyOnsets, NoOnsets, OnsetEvidence, PitchedOnsets, StopPitches
from fusili_mir.decoding.timing_law import TimingLaw

LAW = TimingLaw(bias_sec=0.0)
C, E, G = 39, 43, 46  # indices of C4, E4, G4


def attacks_with(strengths: dict[tuple[int, int], float], start_sec: float = 0.0) -> AttackMap:
    """Two seconds with attacks at some (step, pitch)."""
    strength = np.zeros((200, N_PITCHES), np.float16)
    for place, value in strengths.items():
        strength[place] = value
    return AttackMap(strength, start_sec=start_sec)


def pitches_of(*stops: list[int], are_read: bool = False) -> StopPitches:
    weights = np.zeros((len(stops), N_PITCHES), np.float32)
    for stop, pitches in enumerate(stops):
        weights[stop, pitches] = 1 / len(pitches)
    return StopPitches(weights, np.array([len(pitches) for pitches in stops], np.float32), are_read)


def envelope_with(*steps: int, start_sec: float = 0.0) -> SoundEnvelope:
    """Two seconds in which something begins at some steps."""
    rise = np.full(200, 0.001, np.float32)
    rise[list(steps)] = 1.0
    return SoundEnvelope(rise, np.ones(200, np.float32), start_sec=start_sec)


EVIDENCE = PitchedOnsets(attacks_with({(41, C): 1.0, (81, E): 1.0}), pitches_of([C], [E], [C, E]), LAW)
SURE = 3.5 * math.log(1.03 / 0.3)
NOT_AT_ALL = 3.5 * -2.0  # log(0.03 / 0.3) = -2.3 is bounded


def test_a_stop_begins_where_its_own_pitch_is_struck() -> None:
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
    evidence = PitchedOnsets(AttackMap(strength), pitches_of([C], [E]), LAW)
    whole = evidence.nats(1, slice(0, 2000))
    ranges = np.array([3, 5, 130, 131, 250, 1990, 2500])
    block = evidence.block(ranges, slice(0, 2))
    monkeypatch.setattr(onset_evidence, "_KEPT_CELLS", 64)
    in_parts = PitchedOnsets(AttackMap(strength), pitches_of([C], [E]), LAW)
    assert in_parts.n_cells == 2000
    for first, end in ((0, 10), (60, 70), (50, 400), (1999, 2000), (63, 64), (1000, 1000), (1990, 2100)):
        assert in_parts.nats(1, slice(first, end)).tolist() == whole[first:end].tolist()
    assert in_parts.block(ranges, slice(0, 2)).tolist() == block.tolist()


def test_evidence_takes_as_much_memory_for_a_short_recording_as_for_a_long_one() -> None:
    peaks = []
    for n_steps in (60_000, 240_000):
        evidence = PitchedOnsets(AttackMap(np.ones((n_steps, N_PITCHES), np.float16)), pitches_of([C]), LAW)
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
    pitched = PitchedOnsets(attacks_with({}, start_sec), pitches_of([C]), LAW)
    for evidence in (pitched, AnyOnsets(envelope_with(start_sec=start_sec), LAW)):
        assert evidence.n_cells == 100
        assert evidence.cell_sec == pytest.approx(0.02)
        assert evidence.sound_weight == LAW.sound_weight
        middle_sec = evidence.start_sec + 20.5 * evidence.cell_sec
        assert middle_sec == pytest.approx(start_sec + (0.40 + 0.41) / 2)


def test_onsets_of_anything_count_beside_pitches_only_if_those_were_read() -> None:
    attacks, envelope = attacks_with({(41, C): 1.0}), envelope_with(120)
    known = PitchedOnsets(attacks, pitches_of([C]), LAW, envelope).nats(0, slice(0, 100))
    assert known.tolist() == PitchedOnsets(attacks, pitches_of([C]), LAW).nats(0, slice(0, 100)).tolist()
    read = pitches_of([C], are_read=True)
    alone = PitchedOnsets(attacks, read, LAW).nats(0, slice(0, 100))
    both = PitchedOnsets(attacks, read, LAW, envelope).nats(0, slice(0, 100))
    assert alone[20] == pytest.approx(1.4 * 1.6)  # log(1.03 / 0.2) = 1.64 is bounded
    assert both - alone == pytest.approx(AnyOnsets(envelope, LAW).nats(0, slice(0, 100)), abs=1e-5)


def test_an_envelope_that_ends_early_says_nothing_about_the_rest() -> None:
    short = SoundEnvelope(envelope_with(20).rise[:101], np.ones(101, np.float32))
    read = pitches_of([C], are_read=True)
    attacks = attacks_with({})
    gained = PitchedOnsets(attacks, read, LAW, short).nats(0, slice(0, 100))
    gained -= PitchedOnsets(attacks, read, LAW).nats(0, slice(0, 100))
    assert gained[51:].tolist() == [0.0] * 49


def test_without_pitches_all_stops_begin_where_anything_does() -> None:
    envelope = envelope_with(41, 120)
    evidence = AnyOnsets(envelope, LAW)
    nats = evidence.nats(0, slice(0, 100))
    assert nats.tolist() == [3.0 * max(pair) for pair in envelope.nats.reshape(100, 2).tolist()]
    assert np.flatnonzero(nats > 0).tolist() == [20, 60]
    assert evidence.nats(7, slice(10, 30)).tolist() == nats[10:30].tolist()


def test_without_a_sound_nothing_is_known_and_frames_count_in_full() -> None:
    evidence = NoOnsets(1.99, start_sec=3.0)
    assert (evidence.n_cells, evidence.start_sec, evidence.sound_weight) == (100, 3.0, 1.0)
    assert evidence.nats(4, slice(10, 15)).tolist() == [0.0] * 5
    assert evidence.refined(np.arange(2), np.array([3.1, 4.2])).tolist() == [3.1, 4.2]
    assert NoOnsets(0.0).n_cells == 1


@pytest.mark.parametrize("start_sec", [0.0, 5.0])
def test_stops_are_moved_to_the_peak_of_their_own_pitches(start_sec: float) -> None:
    attacks = attacks_with({(40, C): 1.0, (41, C): 2.0, (42, C): 1.5, (39, E): 3.0}, start_sec)
    evidence = PitchedOnsets(attacks, pitches_of([C], [E], [G]), LAW)
    seconds = start_sec + np.array([0.405, 0.405, 0.405])
    # The parabola through 1, 2, 1.5 has its top a sixth of a step after the middle one.
    expected = start_sec + np.array([0.41 + 0.01 / 6, 0.39, 0.405])
    assert evidence.refined(np.array([0, 1, 2]), seconds) == pytest.approx(expected, abs=1e-9)


def test_peaks_are_looked_for_within_50_ms_and_dated_as_late_as_they_are_seen() -> None:
    evidence = PitchedOnsets(attacks_with({(40, C): 1.0}), pitches_of([C]), TimingLaw(bias_sec=0.002))
    found = evidence.refined(np.zeros(4, np.int64), np.array([0.34, 0.35, 0.45, 0.46]))
    assert found == pytest.approx([0.34, 0.398, 0.398, 0.46])


def test_peaks_at_the_ends_of_a_recording_stay_inside_it() -> None:
    evidence = PitchedOnsets(attacks_with({(0, C): 1.0, (199, C): 1.0}), pitches_of([C]), LAW)
    found = evidence.refined(np.zeros(3, np.int64), np.array([0.0, 0.03, 1.97]))
    assert found == pytest.approx([0.0, 0.0, 1.99], abs=0.005 + 1e-9)


def test_stops_whose_pitches_are_not_known_or_hardly_struck_are_moved_to_any_onset() -> None:
    envelope = envelope_with(40)
    read = pitches_of([C], are_read=True)
    evidences: list[OnsetEvidence] = [
        AnyOnsets(envelope, LAW),
        PitchedOnsets(attacks_with({(43, C): 0.1}), read, LAW, envelope),  # less than `read_onset_strength`
    ]
    for evidence in evidences:
        found = evidence.refined(np.zeros(2, np.int64), np.array([0.42, 0.60]))
        assert found == pytest.approx([0.40, 0.60])


def test_stops_whose_read_pitches_are_struck_are_moved_there() -> None:
    evidence = PitchedOnsets(
        attacks_with({(43, C): 1.0}), pitches_of([C], are_read=True), LAW, envelope_with(40)
    )
    found = evidence.refined(np.zeros(2, np.int64), np.array([0.42, 0.60]))
    assert found == pytest.approx([0.43, 0.60])


def test_the_pitches_of_a_stop_are_looked_for_a_tenth_to_two_tenths_of_a_second_away() -> None:
    attacks = attacks_with({(60, C): 0.47, (75, C): 0.97, (45, C): 0.22, (100, C): 0.97})
    nearby = PitchedOnsets(attacks, pitches_of([C]), LAW).nearby(np.array([0]), np.array([0.6]))
    # Every second step is looked at, and an attack lasts for some of them: here 75 and 45 are not among them.
    assert nearby.later.tolist() == nearby.earlier.tolist() == pytest.approx([math.log(0.03 / 0.5)], rel=1e-3)
    attacks = attacks_with({(60, C): 0.47, (76, C): 0.97, (46, C): 0.22, (100, C): 0.97})
    nearby = PitchedOnsets(attacks, pitches_of([C]), LAW).nearby(np.array([0]), np.array([0.6]))
    assert nearby.later.tolist() == pytest.approx([math.log(1.0 / 0.5)], rel=1e-3)
    assert nearby.earlier.tolist() == pytest.approx([math.log(0.25 / 0.5)], rel=1e-3)


def test_what_is_struck_between_two_stops_counts_whatever_its_pitch_but_not_their_own_attacks() -> None:
    attacks = attacks_with({(60, C): 1.0, (64, E): 1.0, (80, G): 0.5, (97, E): 1.0, (120, G): 0.75})
    evidence = PitchedOnsets(attacks, pitches_of([C], [E], [C]), LAW)
    nearby = evidence.nearby(np.arange(3), np.array([0.6, 1.0, 1.04]))
    assert nearby.passed.tolist() == [0.5, 0.0, 0.0]  # the last has no stop after it


def test_pitches_of_a_score_are_never_doubtful_and_those_read_as_much_as_they_are_said_to_be() -> None:
    stops, seconds = np.array([1]), np.array([0.6])
    known = pitches_of([C], [E])
    read = StopPitches(known.weights, known.n_notes, True, np.array([0.1, 0.2], np.float32))
    attacks = attacks_with({})
    assert PitchedOnsets(attacks, known, LAW).nearby(stops, seconds).doubtful.tolist() == [0.0]
    assert PitchedOnsets(attacks, read, LAW).nearby(stops, seconds).doubtful == pytest.approx([0.2])


@pytest.mark.parametrize("evidence", [AnyOnsets(envelope_with(), LAW), NoOnsets(2.0)])
def test_without_pitches_nothing_is_known_about_attacks_nearby(evidence: OnsetEvidence) -> None:
    nearby = evidence.nearby(np.arange(3), np.array([0.1, 0.5, 0.9]))
    assert not np.any((nearby.earlier, nearby.later, nearby.passed, nearby.doubtful))
