from pathlib import Path
from typing import Any

import numpy as np
import partitura as pt
import pytest
import verovio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

from fusili_mir.errors import InputError
from fusili_mir.scores.accidentals import renew_accidentals
from fusili_mir.scores.pitch_names import Key
from fusili_mir.scores.written_notes import read_written_notes
from fusili_training.notation.mutations import mutate
from fusili_training.notation.spelling import spell

ALTERS = {"flat-flat": -2, "flat": -1, "natural": 0, "sharp": 1, "double-sharp": 2}


def write_score(
    pitches: list[list[list[int]]], ties: list[bool], fifths: int, transpose: int = 0
) -> etree._Element:
    """Measures of four quarter chords, given as MIDI pitches; `ties` ties a chord to an equal next chord."""
    key = Key.of_fifths(fifths)
    beats = [chord for measure in pitches for chord in measure]
    kept = [i > 0 and ties[(i - 1) % len(ties)] and beats[i] == beats[i - 1] for i in range(len(beats))] + [
        False
    ]
    measures, number = [], 0
    for index, measure in enumerate(pitches):
        body = ""
        for chord in measure:
            for place, pitch in enumerate(chord):
                best = spell(pitch, key, rising=True)[0]
                tie = "<tie type='stop'/>" * kept[number] + "<tie type='start'/>" * kept[number + 1]
                tied = tie.replace("<tie ", "<tied ")
                body += (
                    f"<note id='m{index}n{number}p{place}'>{'<chord/>' if place else ''}"
                    f"<pitch><step>{best.step}</step><alter>{best.alter}</alter><octave>{best.octave}</octave></pitch>"
                    f"<duration>1</duration>{tie}<voice>1</voice><type>quarter</type><notations>{tied}</notations></note>"
                )
            number += 1
        head = (
            f"<attributes><divisions>1</divisions><key><fifths>{fifths}</fifths></key>"
            "<time><beats>4</beats><beat-type>4</beat-type></time><clef><sign>G</sign><line>2</line></clef>"
            f"<transpose><chromatic>{transpose}</chromatic></transpose></attributes>"
        )
        measures.append(f"<measure number='{index + 1}'>{'' if index else head}{body}</measure>")
    score = etree.fromstring(
        "<score-partwise version='4.0'><part-list><score-part id='P1'><part-name>A</part-name></score-part>"
        f"</part-list><part id='P1'>{''.join(measures)}</part></score-partwise>"
    )
    for _, notes in by_measure(score):
        renew_accidentals(notes, set())
    return score


def find(element: etree._Element, path: str) -> etree._Element:
    found = element.find(path)
    assert found is not None
    return found


def by_measure(score: etree._Element) -> list:
    notes = read_written_notes(find(score, "part"))
    return [(m, [n for n in notes if n.measure == m]) for m in sorted({n.measure for n in notes})]


def sounding(score: etree._Element, folder: Path) -> dict[str, tuple[int, float]]:
    """Note id -> (pitch, tied duration), as partitura reads it."""
    path = folder / "score.musicxml"
    path.write_bytes(etree.tostring(score))
    part = pt.load_musicxml(path).parts[0]
    return {note.id: (note.midi_pitch, note.duration_tied) for note in part.notes}


def read_from_the_page(score: etree._Element) -> dict[str, int]:
    """Note id -> alteration that a musician reads: by signature, accidentals in the measure, and ties."""
    read: dict[str, int] = {}
    carried: dict[tuple[str, int], int] = {}
    for _, notes in by_measure(score):
        in_force: dict[tuple[str, int], int] = {}
        for note in notes:
            place, mark = (note.step, note.octave), note.element.findtext("accidental")
            if mark:
                in_force[place] = ALTERS[mark]
            alter = carried[place] if note.tied_back else in_force.get(place, int(note.key.alter(note.step)))
            read[note.element.get("id")] = carried[place] = alter
    return read


# thirds and wider: no two notes of a chord share a staff position
chords = st.tuples(st.integers(50, 70), st.lists(st.integers(3, 7), max_size=3)).map(
    lambda found: [int(pitch) for pitch in np.cumsum([found[0], *found[1]])]
)
measures = st.lists(st.lists(chords, min_size=4, max_size=4), min_size=1, max_size=4).map(
    # every other chord is repeated, so that there are chords to tie
    lambda found: [[m[0], m[0], m[2], m[2]] for m in found]
)
seeds = st.integers(0, 2**32 - 1)


@given(measures, st.lists(st.booleans(), min_size=1, max_size=4), st.integers(-6, 6), seeds, st.floats(0, 1))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_exactly_the_listed_notes_move_by_exactly_the_listed_shifts(
    tmp_path: Path,
    pitches: list[list[list[int]]],
    ties: list[bool],
    fifths: int,
    seed: int,
    probability: float,
) -> None:
    score = write_score(pitches, ties, fifths)
    untouched = etree.tostring(score)
    mutation = mutate(score, np.random.default_rng(seed), probability)
    assert etree.tostring(mutation.original) == untouched
    before, after = sounding(mutation.original, tmp_path), sounding(mutation.mutant, tmp_path)
    assert {
        name: (pitch + mutation.shifts.get(name, 0), ties) for name, (pitch, ties) in before.items()
    } == after
    assert all(1 <= abs(shift) <= 4 for shift in mutation.shifts.values())
    written = {n.element.get("id"): n for n in read_written_notes(find(mutation.mutant, "part"))}
    assert read_from_the_page(mutation.mutant) == {name: note.alter for name, note in written.items()}
    for note in written.values():
        chord = [other for other in written.values() if other.onset == note.onset and other is not note]
        assert note.pitch not in [other.pitch for other in chord]
        assert 21 <= note.pitch <= 108


def long_score() -> etree._Element:
    pitches = np.random.default_rng(0).integers(55, 85, size=(250, 4))
    return write_score([[[int(p)] for p in measure] for measure in pitches], [False], -3)


def test_the_share_and_the_spread_of_the_shifts_are_as_asked() -> None:
    shifts = list(mutate(long_score(), np.random.default_rng(1)).shifts.values())
    assert 110 <= len(shifts) <= 190  # 1000 notes at 0.15: 150 with a standard deviation of 11
    counts = np.array([shifts.count(shift) for shift in (-4, -3, -2, -1, 1, 2, 3, 4)])
    assert (counts >= 6).all()  # about 19 each


def test_the_same_seed_gives_the_same_mutant() -> None:
    first, again, other = (mutate(long_score(), np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert etree.tostring(first.mutant) == etree.tostring(again.mutant)
    assert first.shifts == again.shifts != other.shifts


def test_probability_0_changes_nothing() -> None:
    mutation = mutate(long_score(), np.random.default_rng(0), probability=0.0)
    assert mutation.shifts == {}
    assert etree.tostring(mutation.mutant) == etree.tostring(mutation.original)


def test_the_mutant_engraves_with_as_many_note_heads_and_its_accidentals() -> None:
    score = write_score([[[60, 64], [60, 64], [67], [66]], [[61], [61], [61, 70], [60]]], [True], -3)
    mutation = mutate(score, np.random.default_rng(4), probability=0.5)
    assert mutation.shifts
    toolkit = verovio.toolkit()
    drawn = []
    for root in (mutation.original, mutation.mutant):
        assert toolkit.loadData(etree.tostring(root).decode())
        drawn.append(toolkit.renderToSVG(1))
    assert drawn[0].count('class="notehead"') == drawn[1].count('class="notehead"') == 11
    shown = sum(1 for _ in mutation.mutant.iter("accidental"))
    assert etree.fromstring(drawn[1].encode()).xpath("count(//*[@class='accid'][*])") == shown


def test_transposed_parts_stay_within_what_can_be_played() -> None:
    highest = [[[108 + 14], [108 + 14], [108 + 14], [108 + 14]]]
    mutation = mutate(
        write_score(highest, [False], 0, transpose=-14), np.random.default_rng(0), probability=1.0
    )
    assert len(mutation.shifts) == 4
    assert max(mutation.shifts.values()) < 0


def test_grace_notes_move_and_unpitched_notes_tablature_and_quarter_tones_stay() -> None:
    score = write_score([[[60], [62], [64], [65]]], [False], 0)
    first, second, third, _ = score.iter("note")
    first.remove(find(first, "duration"))
    first.insert(0, etree.Element("grace"))
    find(second, "pitch/alter").text = "0.5"
    find(third, "notations").append(
        etree.fromstring("<technical><string>1</string><fret>3</fret></technical>")
    )
    drum = etree.fromstring("<note id='drum'><unpitched/><duration>1</duration></note>")
    find(score, "part/measure").append(drum)
    moved = mutate(score, np.random.default_rng(0), probability=1.0).shifts
    assert set(moved) == {"m0n0p0", "m0n3p0"}


def test_notes_held_in_another_voice_are_not_struck() -> None:
    score = write_score([[[60], [62], [64], [65]]], [False], 0)
    held = "".join(
        f"<note id='h{step}{octave}'>{'<chord/>' if number else ''}"
        f"<pitch><step>{step}</step><octave>{octave}</octave></pitch>"
        "<duration>4</duration><voice>2</voice><type>whole</type></note>"
        for number, (step, octave) in enumerate([("A", 3), ("B", 3)])
    )
    measure = find(score, "part/measure")
    measure.extend(etree.fromstring(f"<x><backup><duration>4</duration></backup>{held}</x>"))
    for seed in range(40):
        mutant = mutate(score, np.random.default_rng(seed), probability=0.8).mutant
        notes = read_written_notes(find(mutant, "part"))
        for a in notes:
            clashes = [
                b for b in notes if b is not a and b.pitch == a.pitch and a.onset < b.end and b.onset < a.end
            ]
            assert not clashes


@pytest.mark.parametrize(
    ("score", "options", "message"),
    [
        ("<score-timewise/>", {}, "score-timewise"),
        ("<score-partwise/>", {"probability": 1.5}, "1.5"),
        ("<score-partwise/>", {"largest_shift": 0}, "largest shift 0"),
        (
            "<score-partwise><part><measure><note><pitch><step>C</step><octave>4</octave></pitch></note></measure></part>"
            "</score-partwise>",
            {},
            "without",
        ),
    ],
)
def test_what_cannot_be_mutated_is_refused(score: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        mutate(etree.fromstring(score), np.random.default_rng(0), **options)
