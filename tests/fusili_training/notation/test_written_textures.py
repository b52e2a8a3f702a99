from __future__ import annotations

from pathlib import Path

import numpy as np
import partitura
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from fusili_mir.pages.engraving import engrave
from fusili_mir.scores.score_file import read_score_file
from fusili_training.notation.written_textures import write_texture

SIGNS = {"flat-flat": -2, "flat": -1, "natural": 0, "sharp": 1, "double-sharp": 2}
ORDER_OF_SHARPS = "FCGDAEB"


def _text(element: etree._Element, path: str) -> str:
    text = element.findtext(path)
    assert text is not None, path
    return text


def _texture(seed: int, n_measures: int = 6) -> etree._Element:
    return etree.fromstring(write_texture(n_measures, np.random.default_rng(seed)))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000))
def test_both_staves_fill_every_measure(seed: int) -> None:
    score = _texture(seed)
    full = 24 * int(_text(score, ".//time/beats"))
    for measure in score.iter("measure"):
        for staff in ("1", "2"):
            notes = [
                n for n in measure.iter("note") if _text(n, "staff") == staff and n.find("chord") is None
            ]
            assert sum(int(_text(note, "duration")) for note in notes) == full


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000))
def test_accidentals_that_are_drawn_say_what_sounds(seed: int) -> None:
    score = _texture(seed)
    fifths = int(_text(score, ".//key/fifths"))
    signature = dict.fromkeys(ORDER_OF_SHARPS, 0)
    altered = ORDER_OF_SHARPS[:fifths] if fifths > 0 else ORDER_OF_SHARPS[::-1][:-fifths]
    signature |= dict.fromkeys(altered, 1 if fifths > 0 else -1)
    for measure in score.iter("measure"):
        drawn: dict[tuple[str, ...], int] = {}
        for note in measure.findall("note[pitch]"):
            step = _text(note, "pitch/step")
            place = (_text(note, "staff"), step, _text(note, "pitch/octave"))
            if note.find("accidental") is not None:
                drawn[place] = SIGNS[_text(note, "accidental")]
            assert drawn.get(place, signature[step]) == int(_text(note, "pitch/alter"))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000))
def test_every_beam_that_begins_ends_in_its_beat(seed: int) -> None:
    for measure in _texture(seed).iter("measure"):
        for staff in ("1", "2"):
            open_levels: set[str] = set()
            for note in [n for n in measure.findall("note") if _text(n, "staff") == staff]:
                for beam in note.findall("beam"):
                    level = beam.get("number", "")
                    if beam.text == "begin":
                        assert level not in open_levels
                        open_levels.add(level)
                    elif beam.text in ("continue", "end"):
                        assert level in open_levels
                    if beam.text == "end":
                        open_levels.remove(level)
            assert not open_levels


def test_no_layer_has_more_than_sixteen_notes_a_second() -> None:
    for seed in range(40):
        score = _texture(seed)
        tempo = float(score.xpath("string(.//sound/@tempo)"))
        shortest = min(int(_text(note, "duration")) for note in score.iter("note"))
        assert shortest / 24 * 60 / tempo > 1 / 16.2  # the written tempo is rounded


def test_the_seed_decides_the_piece() -> None:
    first, second, other = (write_texture(4, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first == second
    assert first != other


@pytest.mark.parametrize("seed", [3, 4])
def test_verovio_draws_a_head_for_every_note_that_partitura_reads(seed: int, tmp_path: Path) -> None:
    filename = tmp_path / "texture.musicxml"
    filename.write_bytes(write_texture(6, np.random.default_rng(seed)))
    notes = partitura.load_score(str(filename))[0].notes
    assert len(engrave(read_score_file(filename)).notes) == len(notes) > 40


def test_a_third_staff_stands_between_those_of_the_hands(tmp_path: Path) -> None:
    filename = tmp_path / "three.musicxml"
    filename.write_bytes(write_texture(4, np.random.default_rng(5), third_staff=True))
    score = etree.parse(filename).getroot()
    full = 24 * int(_text(score, ".//time/beats"))
    for measure in score.iter("measure"):
        for staff in ("1", "2", "3"):
            notes = [
                n for n in measure.iter("note") if _text(n, "staff") == staff and n.find("chord") is None
            ]
            assert sum(int(_text(note, "duration")) for note in notes) == full
    pages = engrave(read_score_file(filename))
    assert len(pages.staves[pages.staves["system"] == 0]) == 3
