from __future__ import annotations

from pathlib import Path

import mido
import pytest
from example_scores import melody
from lxml import etree
from partitura.io.importmatch import load_matchfile

from fusili_mir.errors import InputError
from fusili_mir.scores.loading import load_score
from fusili_mir.scores.score_file import parse_score
from fusili_mir.scores.score_limits import (
    check_abc_numbers,
    check_kern_numbers,
    check_match_numbers,
    check_score_numbers,
)

FIRST = melody(2)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "<divisions>",
            "<staves>100000</staves><divisions>",
            "<staves>: 100000 staves of a part, expected",
        ),
        (
            "<duration>",
            "<duration>999999999",
            r"a <duration> of 9+\d* at \d+ divisions, expected at most 4096",
        ),
        ("<voice>", "<staff>99</staff><voice>", "<staff>: 99 staves of a part, expected at most 64"),
        ("<divisions>", "<divisions>1e9", "divisions of a quarter note, expected at most 10000000"),
        (
            "<divisions>",
            "<staff-details><staff-lines>100000</staff-lines></staff-details><divisions>",
            "<staff-lines>: 100000 lines of a staff, expected at most 32",
        ),
    ],
)
def test_numbers_out_of_all_proportion_are_refused_at_once(old: str, new: str, message: str) -> None:
    assert old in FIRST
    with pytest.raises(InputError, match=message):
        parse_score(FIRST.replace(old, new, 1).encode(), "odd.musicxml")


def test_a_usual_score_is_not_refused() -> None:
    assert parse_score(FIRST.encode(), "tune.musicxml").kind == "musicxml"


@pytest.mark.parametrize(
    ("attributes", "message"),
    [('lines="100000"', "staffDef/@lines: 100000 lines of a staff"), ('n="123456"', "staffDef/@n is 123456")],
)
def test_numbers_in_mei_are_looked_at_too(attributes: str, message: str) -> None:
    mei = (
        '<mei xmlns="http://www.music-encoding.org/ns/mei"><music><body><mdiv><score><scoreDef><staffGrp>'
        f'<staffDef {attributes}/></staffGrp></scoreDef><section><measure><staff n="1"><layer n="1">'
        '<note pname="c" oct="4" dur="4"/></layer></staff></measure></section></score></mdiv></body>'
        "</music></mei>"
    )
    with pytest.raises(InputError, match=message):
        parse_score(mei.encode(), "odd.mei")


@pytest.mark.parametrize(
    ("metre", "ticks", "message"),
    [
        ((0, 4), 480, "a time signature of 0/4; is the file damaged"),
        ((1, 2**30), 480, "a time signature of 1/1073741824; is the file damaged"),
        ((4, 4), 2**27, "beats of a match or MIDI file, expected at most 100000"),
        ((4, 4), 480 * 2100, "beats of a MIDI file for each note, expected at most 50"),
    ],
)
def test_midi_whose_measures_have_no_end_is_refused(
    tmp_path: Path, metre: tuple[int, int], ticks: int, message: str
) -> None:
    beats, beat_type = metre
    signature = bytes([0, 0xFF, 0x58, 4, beats, beat_type.bit_length() - 1, 24, 8])
    notes = [mido.Message("note_on", note=60, velocity=64), mido.Message("note_off", note=60, time=ticks)]
    track = mido.MidiTrack([mido.MetaMessage("time_signature", numerator=3, denominator=4), *notes])
    mido.MidiFile(tracks=[track]).save(tmp_path / "a.mid")
    data = (tmp_path / "a.mid").read_bytes()
    place = data.index(b"\xff\x58") - 1
    (tmp_path / "a.mid").write_bytes(data[:place] + signature + data[place + len(signature) :])
    with pytest.raises(InputError, match=message):
        load_score(tmp_path / "a.mid")


NOTE = "snote(n1,[C,n],5,1:1,0,1/4,0.0000,1.0000,[v1,staff1])-note(n0,72,0,480,64,0,0).\n"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("3/4", "0/8", "a time signature of 0/8; is the file damaged"),
        (
            "0.0000,1.0000",
            "0.0000,4_294_967_296",
            "4294967296 beats of a match or MIDI file, expected at most 100000",
        ),
        (NOTE, " " + NOTE.replace("0.0000,1", "1e9,1"), "1000000000 beats of a match or MIDI file"),
        ("1/4,", "99999,", "399996 quarter notes that a note, rest or step lasts, expected at most 4096"),
    ],
)
def test_a_match_file_whose_measures_have_no_end_is_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    head = "info(matchFileVersion,1.0.0).\ninfo(midiClockUnits,480).\ninfo(midiClockRate,500000).\n"
    text = f"{head}scoreprop(timeSignature,3/4,1:1,0,0.0000).\n{NOTE}"
    (tmp_path / "good.match").write_text(text)
    check_match_numbers(load_matchfile(tmp_path / "good.match"), "good.match")
    (tmp_path / "a.match").write_text(text.replace(old, new))
    with pytest.raises(InputError, match=message):
        load_score(tmp_path / "a.match")


KERN = "**kern\n*M4/4\n{}*-\n"
ABC = "X:1\nT:Bad cabbage\nM:4/4\nL:1/4\nK:C\n{}|]\n"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("long.krn", KERN.format("4c\n" * 3001), "3001 notes of a measure, expected at most 3000"),
        ("wide.krn", "\t".join(["**kern"] * 501) + "\n", "501 spines of a kern file, expected at most 500"),
        ("long.abc", ABC.format("C" * 3001), "3001 notes of a measure, expected at most 3000"),
    ],
)
def test_a_measure_that_verovio_would_not_end_with_is_refused_at_once(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        load_score(tmp_path / name)


def test_many_notes_in_many_measures_are_not_too_many_in_one() -> None:
    check_kern_numbers(KERN.format(("4c\n" * 1000 + "=\n") * 4), "score.krn")
    check_abc_numbers(ABC.format(("C" * 1000 + "|") * 4), "score.abc")
    check_abc_numbers("X:1\n" + "w:" + "a" * 4000 + "\n", "score.abc")


def test_the_notes_of_a_measure_are_counted_in_each_part() -> None:
    note = "<note><pitch><step>C</step><octave>4</octave></pitch><duration>1</duration></note>"
    score = (
        '<score-partwise><part-list><score-part id="P1"><part-name/></score-part></part-list><part id="P1">'
        '<measure number="1">{}</measure><measure number="2">{}</measure></part></score-partwise>'
    )
    check_score_numbers(etree.fromstring(score.format(note * 2000, note * 2000)), "a.xml")
    with pytest.raises(InputError, match="3001 notes of a measure"):
        check_score_numbers(etree.fromstring(score.format(note * 3001, note)), "a.xml")
