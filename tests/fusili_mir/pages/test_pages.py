from __future__ import annotations

import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from example_scores import VOLTAS, piano, song
from PIL import Image, ImageDraw, ImageFont

from fusili_mir.arrays import GreyImage
from fusili_mir.errors import InputError
from fusili_mir.pages.engraving import EngravingOptions
from fusili_mir.pages.pages import PageImages, load_pages, open_pages, render_pages

MEI = """<mei xmlns="http://www.music-encoding.org/ns/mei" meiversion="5.0"><meiHead><fileDesc><titleStmt><title/>
</titleStmt><pubStmt/></fileDesc></meiHead><music><body><mdiv><score>
<scoreDef meter.count="2" meter.unit="4" keysig="0">
<staffGrp><staffDef n="1" lines="5" clef.shape="G" clef.line="2"/></staffGrp></scoreDef><section>
<measure n="1"><staff n="1"><layer n="1"><note xml:id="a" pname="c" oct="5" dur="4"/>
<note pname="d" oct="5" dur="4" xml:id="an_id_that_is_rather_long"/></layer></staff>
<tie startid="#an_id_that_is_rather_long" endid="#b"/></measure>
<measure n="2" right="end"><staff n="1"><layer n="1"><note xml:id="b" pname="d" oct="5" dur="2"/></layer></staff>
</measure></section></score></mdiv></body></music></mei>"""


def write(folder: Path, content: str, name: str = "score.musicxml") -> Path:
    (folder / name).write_text(content)
    return folder / name


def test_a_page_is_drawn_on_request_and_the_last_two_are_cached() -> None:
    class Counted:
        reads = 0

        def read(self) -> GreyImage:
            Counted.reads += 1
            return np.zeros((2, 2), np.uint8)

    images = PageImages([Counted(), Counted(), Counted()])
    assert (len(images), Counted.reads) == (3, 0)
    images[0], images[0], images[1], images[-3]
    assert Counted.reads == 2
    images[2], images[1], images[0]
    assert Counted.reads == 4
    assert len(images[1:]) == 2
    with pytest.raises(IndexError):
        images[3]


def test_a_symbolic_score_gives_pages_notes_and_score_time_under_the_same_ids(tmp_path: Path) -> None:
    pages = render_pages(write(tmp_path, song(4)))
    assert pages.score is not None
    notes = pages.score.note_array(unique_id_per_part=False)
    assert set(notes["id"].tolist()) == set(pages.notes["id"].tolist())
    first_of_voice = notes[notes["id"] == "p0n0"][0]
    assert (first_of_voice["pitch"], first_of_voice["onset_beat"]) == (69, 0)
    assert pages.images[0].shape == (1650, 1167)
    assert (pages.images[0] < 128).mean() > 0.002


def test_one_box_has_several_passes_when_repeats_are_written_out(tmp_path: Path) -> None:
    path = write(tmp_path, VOLTAS)
    folded = render_pages(path)
    assert folded.notes[["id", "notated_id"]].tolist() == [
        ("p0n0", "p0n0"),
        ("p0n1", "p0n1"),
        ("p0n2", "p0n2"),
        ("p0n2", "p0n3"),  # the tied head belongs to the note that sounds
        ("p0n4", "p0n4"),
        ("p0n5", "p0n5"),
    ]
    unfolded = render_pages(path, unfold="maximal")
    grace = unfolded.notes[unfolded.notes["notated_id"] == "p0n1"]
    assert grace["id"].tolist() == ["p0n1-1", "p0n1-2"]
    assert grace["x0"][0] == grace["x0"][1]
    assert len(unfolded.notes) == 8


def test_mei_is_engraved_like_musicxml_and_keeps_its_ids(tmp_path: Path) -> None:
    pages = render_pages(write(tmp_path, MEI, "score.mei"))
    long = "an_id_that_is_rather_long"
    assert pages.notes[["id", "notated_id"]].tolist() == [("a", "a"), (long, long), (long, "b")]  # it is tied
    assert pages.notes["measure"].tolist() == [0, 0, 1]
    assert pages.measures["number"].tolist() == ["1", "2"]
    assert pages.score is not None
    notes = pages.score.note_array()
    assert notes[["id", "pitch", "duration_beat"]].tolist() == [("a", 72, 1), (long, 74, 3)]


@pytest.mark.parametrize(("content", "n_staves"), [(piano(30), 2), (song(30), 3)])
def test_systems_found_on_an_image_are_those_that_were_engraved(
    tmp_path: Path, content: str, n_staves: int
) -> None:
    known = render_pages(write(tmp_path, content), EngravingOptions(page_height_mm=200))
    files = []
    for number, image in enumerate(known.images):
        files.append(tmp_path / f"page-{number}.png")
        Image.fromarray(image).save(files[-1])
    found = load_pages(files)
    assert len(found.notes) == 0
    assert found.measures["number"].tolist() == known.measures["number"].tolist()
    assert found.score is None
    assert (
        found.systems[["page", "system", "n_staves"]].tolist()
        == known.systems[["page", "system", "n_staves"]].tolist()
    )
    assert set(found.systems["n_staves"].tolist()) == {n_staves}
    for name in ("x0", "y0", "x1", "y1"):
        assert found.systems[name] == pytest.approx(known.systems[name], abs=3)
        assert found.staves[name] == pytest.approx(known.staves[name], abs=3)
    assert found.systems["space_px"] == pytest.approx(known.systems["space_px"], rel=0.02)


def test_a_turned_page_is_deskewed_and_its_places_map_back_to_the_scan(tmp_path: Path) -> None:
    known = render_pages(write(tmp_path, piano(12)), EngravingOptions(page_height_mm=150))
    turned = Image.fromarray(known.images[0]).rotate(2.0, Image.Resampling.BICUBIC, fillcolor=255)
    turned.save(tmp_path / "scan.png")
    found = load_pages(tmp_path / "scan.png")
    assert found.skews[0].angle_deg == pytest.approx(2.0, abs=0.05)
    assert found.systems["y0"] == pytest.approx(known.systems["y0"], abs=3)
    system = found.systems[0]
    x, y = found.skews[0].to_original(system["x0"], system["y0"])
    # by hand: a point above and left of the centre moves down when the page turns counter-clockwise
    angle = np.deg2rad(2.0)
    right, down = system["x0"] - turned.width / 2, system["y0"] - turned.height / 2
    assert x == pytest.approx(turned.width / 2 + np.cos(angle) * right + np.sin(angle) * down, abs=1)
    assert y == pytest.approx(turned.height / 2 - np.sin(angle) * right + np.cos(angle) * down, abs=1)


def test_a_page_of_text_without_music_is_refused_but_may_stand_among_music(tmp_path: Path) -> None:
    text = Image.new("L", (800, 1000), 255)
    pen = ImageDraw.Draw(text)
    for line in range(40):
        pen.text(
            (80, 40 + 22 * line), "The quick brown fox jumps over it. " * 2, font=ImageFont.load_default(15)
        )
    text.save(tmp_path / "text.png")
    with pytest.raises(InputError, match="no staves were found on 1 page; expected pages of printed music"):
        load_pages(tmp_path / "text.png")
    music = render_pages(write(tmp_path, piano(6)), EngravingOptions(page_height_mm=150))
    Image.fromarray(music.images[0]).save(tmp_path / "music.png")
    both = load_pages([tmp_path / "text.png", tmp_path / "music.png"])
    assert set(both.systems["page"].tolist()) == {1}


def test_any_score_is_recognised_by_its_content(tmp_path: Path) -> None:
    symbolic = open_pages(write(tmp_path, piano(4), "named.pdf"), EngravingOptions(page_height_mm=100))
    assert len(symbolic.notes) == 16
    Image.fromarray(symbolic.images[0]).save(tmp_path / "page.png")
    assert len(open_pages(tmp_path / "page.png").notes) == 0
    with pytest.raises(InputError, match=r"gone\.pdf: not found"):
        open_pages(tmp_path / "gone.pdf")


def test_pages_can_be_sent_to_another_process(tmp_path: Path) -> None:
    pages = render_pages(write(tmp_path, piano(2)), EngravingOptions(page_height_mm=80))
    copy = pickle.loads(pickle.dumps(pages.images))
    assert (copy[0] == pages.images[0]).all()


def test_a_score_that_partitura_cannot_read_gives_a_message_of_one_line(tmp_path: Path) -> None:
    unlisted = re.sub("<part-list>.*</part-list>", "", piano(2))
    with pytest.raises(InputError, match="partitura"):
        render_pages(write(tmp_path, unlisted))
    wrong_step = piano(2).replace("<step>G</step>", "<step>H</step>")
    with pytest.raises(InputError, match="partitura cannot read it"):
        render_pages(write(tmp_path, wrong_step))


def test_a_sign_written_as_a_fingering_does_not_keep_a_score_from_being_read(tmp_path: Path) -> None:
    fingering = "<notations><technical><fingering>{}</fingering></technical></notations></note>"
    signed = (
        piano(2)
        .replace("</note>", fingering.format("\u0361"), 1)
        .replace("</note><note>", fingering.format(3) + "<note>")
    )
    pages = render_pages(write(tmp_path, signed))
    assert len(pages.notes) == 8
