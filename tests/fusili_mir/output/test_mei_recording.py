"""The MEI holds the score and the times: by its structure, by loading it, by what MEI allows of what is added.

`benchmarks/read_back.py` validates whole files by the schema of music-encoding.org.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import verovio
from example_performances import perform, record
from example_scores import VOLTAS
from lxml import etree

from fusili_mir.alignment.aligning import align_recording
from fusili_mir.alignment.played import play_pages
from fusili_mir.alignment.results import Alignment
from fusili_mir.model.encoder import Encoder
from fusili_mir.output.mei_recording import mei_with_recording, save_mei
from fusili_mir.pages.pages import render_pages

MEI = "{http://www.music-encoding.org/ns/mei}"
XML_ID = "{http://www.w3.org/XML/1998/namespace}id"


def seconds_of(when: etree._Element) -> float:
    hours, minutes, seconds = str(when.get("absolute")).split(":")
    return 3600 * int(hours) + 60 * int(minutes) + float(seconds)


def test_every_onset_is_a_when_that_names_its_notes(repeated: Alignment) -> None:
    root = mei_with_recording(repeated)
    heads = {str(note.get(XML_ID)) for note in root.iter(f"{MEI}note")}
    whens = list(root.iter(f"{MEI}when"))
    assert {when.get("abstype") for when in whens} == {"time"}
    told = sorted(
        (seconds_of(when), reference.removeprefix("#"))
        for when in whens
        for reference in str(when.get("data")).split()
    )
    assert {head for _, head in told} <= heads
    notes = repeated.notes[np.isfinite(repeated.notes["onset_sec"])]
    expected = sorted(zip(notes["onset_sec"].tolist(), notes["notated_id"].tolist(), strict=True))
    assert [head for _, head in told] == [head for _, head in expected]
    assert [second for second, _ in told] == pytest.approx([second for second, _ in expected], abs=1e-4)
    assert len({when.get(XML_ID) for when in whens}) == len(whens)


def test_the_recording_stands_before_the_music_and_names_its_file(repeated: Alignment) -> None:
    music = next(mei_with_recording(repeated).iter(f"{MEI}music"))
    assert [child.tag for child in music][:2] == [f"{MEI}performance", f"{MEI}body"]
    recording = music[0][0]
    assert recording.tag == f"{MEI}recording"
    assert recording[0].tag == f"{MEI}avFile"
    assert recording[0].get("target") == "voltas.wav"


def test_a_score_without_a_title_is_named_after_its_file(repeated: Alignment, duet: Alignment) -> None:
    for alignment, name in ((repeated, "voltas"), (duet, "duet")):
        statement = next(mei_with_recording(alignment).iter(f"{MEI}titleStmt"))
        assert [title.text for title in statement.iter(f"{MEI}title")] == [name]


def test_a_note_points_to_the_first_time_that_it_is_played(repeated: Alignment) -> None:
    root = mei_with_recording(repeated)
    time_of = {f"#{when.get(XML_ID)}": seconds_of(when) for when in root.iter(f"{MEI}when")}
    for note in root.iter(f"{MEI}note"):
        rows = repeated.notes[repeated.notes["notated_id"] == note.get(XML_ID)]
        if len(rows):
            assert time_of[str(note.get("when"))] == pytest.approx(rows["onset_sec"].min(), abs=1e-4)
        else:  # a tied head is not struck
            assert note.get("when") is None


@pytest.mark.parametrize("name", ["repeated", "duet", "cut_short"])
def test_verovio_loads_it_and_draws_every_note(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    alignment: Alignment = request.getfixturevalue(name)
    save_mei(alignment, tmp_path / "recording.mei")
    verovio.enableLog(verovio.LOG_OFF)
    toolkit = verovio.toolkit()
    assert toolkit.loadFile(str(tmp_path / "recording.mei"))
    svg = "".join(toolkit.renderToSVG(page + 1) for page in range(toolkit.getPageCount()))
    assert all(f'id="{head}"' in svg for head in np.unique(alignment.notes["notated_id"]))


def test_mei_stays_the_mei_of_the_user(repeated: Alignment, encoder: Encoder, tmp_path: Path) -> None:
    toolkit = verovio.toolkit()
    verovio.enableLog(verovio.LOG_OFF)
    toolkit.loadData(Path(repeated.pages.filename).read_text())
    (tmp_path / "mine.mei").write_text(toolkit.getMEI())
    pages = render_pages(tmp_path / "mine.mei")
    alignment = align_recording(pages, record(perform(play_pages(pages, "maximal"))), model=encoder)
    root = mei_with_recording(alignment)
    mine = etree.parse(tmp_path / "mine.mei")
    for tag in ("note", "measure", "staffDef"):
        assert [each.get(XML_ID) for each in root.iter(f"{MEI}{tag}")] == [
            each.get(XML_ID) for each in mine.getroot().iter(f"{MEI}{tag}")
        ]
    assert next(root.iter(f"{MEI}when"), None) is not None


PERFORMANCE = etree.RelaxNG(
    etree.fromstring(
        """
<element name="performance" ns="http://www.music-encoding.org/ns/mei" xmlns="http://relaxng.org/ns/structure/1.0"
         datatypeLibrary="http://www.w3.org/2001/XMLSchema-datatypes">
  <element name="recording">
    <optional><attribute name="xml:id"><data type="NCName"/></attribute></optional>
    <optional>
      <element name="avFile"><attribute name="target"><data type="anyURI"/></attribute></element>
    </optional>
    <oneOrMore>
      <element name="when">
        <attribute name="xml:id"><data type="NCName"/></attribute>
        <attribute name="absolute"><data type="time"/></attribute>
        <attribute name="abstype"><value>time</value></attribute>
        <attribute name="data"><list><oneOrMore><data type="anyURI"/></oneOrMore></list></attribute>
      </element>
    </oneOrMore>
  </element>
</element>
"""
    )
)


@pytest.mark.parametrize("name", ["repeated", "duet", "cut_short"])
def test_what_is_added_is_what_mei_allows(name: str, request: pytest.FixtureRequest) -> None:
    root = mei_with_recording(request.getfixturevalue(name))
    PERFORMANCE.assertValid(next(root.iter(f"{MEI}performance")))
    names = [each.get(XML_ID) for each in root.iter(etree.Element) if each.get(XML_ID)]
    assert len(names) == len(set(names))


def test_an_ending_of_two_times_is_numbered_by_one_word_as_mei_wants(
    encoder: Encoder, tmp_path: Path
) -> None:
    (tmp_path / "voltas.musicxml").write_text(VOLTAS.replace("<ending number='1'", "<ending number='1, 2'"))
    pages = render_pages(tmp_path / "voltas.musicxml")
    alignment = align_recording(pages, record(perform(play_pages(pages, "minimal"))), model=encoder)
    endings = mei_with_recording(alignment).iter(f"{MEI}ending")
    assert [ending.get("n") for ending in endings] == ["1,2", "2"]
