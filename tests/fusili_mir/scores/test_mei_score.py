from __future__ import annotations

from pathlib import Path

import numpy as np
import partitura as pt
import pytest
from lxml import etree

from fusili_mir.pages.pages import render_pages
from fusili_mir.scores.loading import load_score
from fusili_mir.scores.mei_readings import take_first_readings
from fusili_mir.scores.mei_score import read_mei_score
from fusili_mir.scores.score_warning import ScoreWarning

STAFF = "<staffDef n='1' lines='5' clef.shape='G' clef.line='2'/>"


def mei(measures: str, definitions: str = STAFF, meter: str = "meter.count='2' meter.unit='4'") -> str:
    return (
        "<mei xmlns='http://www.music-encoding.org/ns/mei' meiversion='5.0'><music><body><mdiv><score>"
        f"<scoreDef {meter}><staffGrp>{definitions}</staffGrp></scoreDef>"
        f"<section>{measures}</section></score></mdiv></body></music></mei>"
    )


def bar(*layers: str, more: str = "", attributes: str = "") -> str:
    content = "".join(f"<layer n='{number}'>{layer}</layer>" for number, layer in enumerate(layers, start=1))
    return f"<measure {attributes}><staff n='1'>{content}</staff>{more}</measure>"


def note(name: str, dur: str = "4", more: str = "") -> str:
    return f"<note xml:id='{name}' pname='{name[0]}' oct='5' dur='{dur}' {more}/>"


def read(measures: str, **given: str) -> pt.score.Score:
    root = etree.fromstring(mei(measures, **given).encode())
    take_first_readings(root)
    return read_mei_score(root)


def onsets(score: pt.score.Score) -> dict[str, float]:
    return {
        str(each.id): float(part.quarter_map(each.start.t)) for part in score.parts for each in part.notes
    }


def durations(score: pt.score.Score) -> dict[str, float]:
    return {
        str(each.id): each.duration / float(part.quarter_duration_map(0))
        for part in score.parts
        for each in part.notes
    }


def test_notes_follow_each_other_and_layers_begin_together() -> None:
    score = read(
        bar(note("c1") + note("d1", "8", "dots='1'") + note("e1", "16"), note("f1", "2")) + bar(note("g1"))
    )
    assert onsets(score) == {"c1": 0, "d1": 1, "e1": 1.75, "f1": 0, "g1": 2}
    assert durations(score)["d1"] == 0.75


def test_partitura_reads_the_same_from_what_it_can_read(tmp_path: Path) -> None:
    measures = bar(note("c1") + note("d1"), note("e1", "2")) + bar(
        note("f1", "8") + note("g1", "4", "dots='1'")
    )
    file = tmp_path / "score.mei"
    file.write_text(mei(measures))
    ours, theirs = (
        np.sort(score.parts[0].note_array(), order="id")
        for score in (load_score(file).score, pt.load_score(str(file), quiet=True))
    )
    for column in ("id", "pitch", "onset_beat", "duration_beat", "onset_quarter", "voice"):
        assert ours[column].tolist() == theirs[column].tolist()


def test_tuplets_are_read_as_elements_and_as_spans() -> None:
    inside = note("c1", "8") + note("d1", "8") + note("e1", "8")
    as_element = read(bar(f"<tuplet num='3' numbase='2'>{inside}</tuplet>" + note("f1")))
    span = "<tupletSpan startid='#c1' endid='#e1' num='3' numbase='2'/>"
    as_span = read(bar(inside + note("f1"), more=span))
    expected = {"c1": 0, "d1": 1 / 3, "e1": 2 / 3, "f1": 1}
    assert onsets(as_element) == pytest.approx(expected)
    assert onsets(as_span) == pytest.approx(expected)


def test_the_notes_of_a_tremolo_share_its_time() -> None:
    score = read(bar(f"<fTrem>{note('c1', '2')}{note('e1', '2')}</fTrem>") + bar(note("g1")))
    assert onsets(score) == {"c1": 0, "e1": 1, "g1": 2}


def test_grace_notes_take_no_time() -> None:
    group = f"<graceGrp>{note('c1', '8')}{note('d1', '8')}</graceGrp>"
    score = read(bar(note("b1", "8", "grace='unacc'") + note("e1") + group + note("f1")))
    assert onsets(score) == {"b1": 0, "e1": 0, "c1": 1, "d1": 1, "f1": 1}
    assert sum(isinstance(each, pt.score.GraceNote) for each in score.parts[0].notes) == 3


def test_a_tie_joins_notes_whether_it_is_an_element_or_an_attribute() -> None:
    element = read(bar(note("c1", "2")) + bar(note("c2", "2"), more="<tie startid='#c1' endid='#c2'/>"))
    attribute = read(bar(note("c1", "2", "tie='i'")) + bar(note("c2", "2", "tie='t'")))
    for score in (element, attribute):
        assert [str(row["id"]) for row in score.parts[0].note_array()] == ["c1"]
        assert score.parts[0].notes_tied[0].duration_tied == 4 * score.parts[0].quarter_duration_map(0)


def test_a_measure_of_rest_lasts_as_long_as_the_meter() -> None:
    assert onsets(read(bar("<mRest/>") + bar(note("c1")))) == {"c1": 2}


def test_a_space_is_silence_and_a_written_ottava_sounds() -> None:
    score = read(bar("<space dur='4'/>" + note("c1", "4", "oct.ges='6'")))
    assert onsets(score) == {"c1": 1}
    assert score.parts[0].notes[0].octave == 6


@pytest.mark.parametrize(
    "editorial",
    [
        "<choice><corr>{}</corr><sic>{}</sic></choice>",
        "<app><rdg>{}</rdg><rdg>{}</rdg></app>",
        "<supplied>{}</supplied><del>{}</del>",
        "<subst><add>{}</add><del>{}</del></subst>",
        "<app><rdg>{1}</rdg><lem>{0}</lem></app>",
    ],
)
def test_of_alternatives_one_reading_is_engraved_and_played(tmp_path: Path, editorial: str) -> None:
    file = tmp_path / "score.mei"
    file.write_text(mei(bar(editorial.format(note("c1"), note("d1")) + note("e1"))))
    pages = render_pages(file)
    assert pages.notes["id"].tolist() == ["c1", "e1"]
    assert pages.score is not None
    assert onsets(pages.score) == {"c1": 0, "e1": 1}


def test_repeats_and_endings_are_read() -> None:
    first = bar(note("c1", "2"), attributes="left='rptstart'")
    ending = "<ending n='{}'>{}</ending>"
    score = read(
        first
        + ending.format("1", bar(note("d1", "2"), attributes="right='rptend'"))
        + ending.format("2", bar(note("e1", "2")))
    )
    part = score.parts[0]
    assert [(each.start.t, each.end.t) for each in part.iter_all(pt.score.Repeat)] == [(0, 4)]
    assert [each.number for each in part.iter_all(pt.score.Ending)] == ["1", "2"]


def test_each_staff_is_a_part_with_its_clef_key_and_meter() -> None:
    definitions = STAFF + "<staffDef n='2' lines='5' clef.shape='F' clef.line='4' keysig='2f'/>"
    staves = "<staff n='{}'><layer n='1'>{}</layer></staff>"
    measure = f"<measure>{staves.format(1, note('c1', '2'))}{staves.format(2, note('d1', '2'))}</measure>"
    upper, lower = read(measure, definitions=definitions, meter="meter.sym='cut'").parts
    assert [clef.sign for part in (upper, lower) for clef in part.iter_all(pt.score.Clef)] == ["G", "F"]
    assert [key.fifths for key in lower.iter_all(pt.score.KeySignature)] == [-2]
    (meter,) = upper.iter_all(pt.score.TimeSignature)
    assert (meter.beats, meter.beat_type) == (2, 2)


def test_the_first_of_several_movements_is_taken_and_that_is_said(tmp_path: Path) -> None:
    content = mei(bar(note("c1")))
    movement = content[content.index("<mdiv>") : content.index("</body>")]
    file = tmp_path / "score.mei"
    file.write_text(content.replace("</body>", movement.replace("c1", "d1") + "</body>"))
    with pytest.warns(ScoreWarning, match="found 2 movements or tunes, and took the first"):
        assert render_pages(file).notes["id"].tolist() == ["c1"]


def test_notes_without_ids_are_named_by_part_and_place(tmp_path: Path) -> None:
    file = tmp_path / "score.mei"
    file.write_text(mei(bar("<note pname='c' oct='5' dur='4'/><note pname='d' oct='5' dur='4'/>")))
    assert render_pages(file).notes["id"].tolist() == ["p0n0", "p0n1"]
