from __future__ import annotations

import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from example_scores import measure, melody, note, score
from lxml import etree

from fusili_mir.errors import InputError
from fusili_mir.scores.score_file import ScoreFile, is_safe_id, read_score_file
from fusili_mir.scores.score_formats import is_score_file, score_format

CONTAINER = '<container><rootfiles><rootfile full-path="{}"/></rootfiles></container>'
MEI = (
    '<mei xmlns="http://www.music-encoding.org/ns/mei" meiversion="5.0"><music><body><mdiv><score>'
    '<scoreDef meter.count="2" meter.unit="4"><staffGrp><staffDef n="1" lines="5" clef.shape="G" clef.line="2"/>'
    "</staffGrp></scoreDef><section>{}</section></score></mdiv></body></music></mei>"
)


def read(folder: Path, content: str | bytes, name: str = "score.musicxml") -> ScoreFile:
    data = content.encode() if isinstance(content, str) else content
    (folder / name).write_bytes(data)
    return read_score_file(folder / name)


def ids(score_file: ScoreFile) -> list[str]:
    return [str(element.get(score_file.id_attribute)) for element in score_file.notes()]


def mxl(folder: Path, members: dict[str, str | bytes]) -> Path:
    path = folder / "score.mxl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_notes_without_ids_are_numbered_in_the_order_of_the_file(tmp_path: Path) -> None:
    assert ids(read(tmp_path, melody(2))) == ["n1", "n2", "n3", "n4"]


def test_unique_safe_ids_are_kept_and_new_ones_go_around_them(tmp_path: Path) -> None:
    bar = measure(
        note("C5", note_id="n2") + note("D5") + note("E5") + note("F5", note_id="theme.1"), first=True
    )
    assert ids(read(tmp_path, score([bar]))) == ["n2", "n1", "n3", "theme.1"]


@pytest.mark.parametrize("given", ["twice", "a,b", "a#b", "3rd", "x" * 17, "with space", ""])
def test_an_id_that_is_doubled_or_unsafe_is_replaced(tmp_path: Path, given: str) -> None:
    doubled = note("D5", note_id="twice")
    bar = measure(note("C5").replace("<note", f"<note id='{given}'") + doubled, first=True)
    assert ids(read(tmp_path, score([bar])))[0] == "n1"


def test_a_note_never_gets_the_id_of_another_element(tmp_path: Path) -> None:
    content = melody(1).replace("<measure number='1'", "<measure id='n1' number='1'")
    score_file = read(tmp_path, content)
    assert score_file.measure_ids() == ["n1"]
    assert ids(score_file) == ["n2", "n3"]


def test_rests_are_not_notes(tmp_path: Path) -> None:
    rest = "<note><rest/><duration>2</duration><voice>1</voice><type>quarter</type></note>"
    assert ids(read(tmp_path, score([measure(rest + note("C5"), first=True)]))) == ["n1"]


def test_the_file_itself_is_left_as_it_was(tmp_path: Path) -> None:
    content = melody(1)
    read(tmp_path, content)
    assert (tmp_path / "score.musicxml").read_text() == content


def test_an_mxl_archive_is_read_through_its_container(tmp_path: Path) -> None:
    path = mxl(tmp_path, {"META-INF/container.xml": CONTAINER.format("deep/a.xml"), "deep/a.xml": melody(1)})
    assert ids(read_score_file(path)) == ["n1", "n2"]


def test_an_mxl_archive_without_a_container_is_read_by_its_score(tmp_path: Path) -> None:
    assert ids(read_score_file(mxl(tmp_path, {"a.musicxml": melody(1)}))) == ["n1", "n2"]


def test_utf_16_is_read(tmp_path: Path) -> None:
    content = melody(1).replace("encoding='UTF-8'", "encoding='UTF-16'").encode("utf-16")
    score_file = read(tmp_path, content)
    assert is_score_file(tmp_path / "score.musicxml")
    assert ids(score_file) == ["n1", "n2"]


def test_a_timewise_score_is_turned_into_parts(tmp_path: Path) -> None:
    partwise = etree.fromstring(
        score([measure(note("C5"), 1, True)], [measure(note("E5"), 1, True)]).encode()
    )
    timewise = etree.Element("score-timewise")
    timewise.append(partwise[0])
    bar = etree.SubElement(timewise, "measure", number="1")
    for part in partwise.findall("part"):
        new = etree.SubElement(bar, "part", id=str(part.get("id")))
        new.extend(list(part[0]))
    score_file = read(tmp_path, etree.tostring(timewise))
    assert [part.get("id") for part in score_file.root.findall("part")] == ["P1", "P2"]
    assert [step.text for step in score_file.root.iter("step")] == ["C", "E"]
    assert score_file.measure_numbers() == ["1"]


def test_references_of_mei_follow_a_renamed_note(tmp_path: Path) -> None:
    long = "note-" + "0" * 20
    music = (
        '<measure n="1"><staff n="1"><layer n="1">'
        f'<note xml:id="{long}" pname="c" oct="5" dur="4"/><note xml:id="b" pname="c" oct="5" dur="4"/>'
        f'</layer></staff><tie startid="#{long}" endid="#b"/></measure>'
    )
    score_file = read(tmp_path, MEI.format(music), "score.mei")
    assert score_file.kind == "mei"
    assert ids(score_file) == ["n1", "b"]
    (tie,) = score_file.root.iter("{*}tie")
    assert (tie.get("startid"), tie.get("endid")) == ("#n1", "#b")


BOMB = (
    '<!DOCTYPE score-partwise [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + "]>"
)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"   \n", "the file is empty"),
        (b"\x00\x01binary", "another file; expected a symbolic score"),
        (melody(2)[:400].encode(), "damaged XML"),
        (b"<html><body>hello</body></html>", "root <html>"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "expected a score"),
        (score([measure("", first=True)]).encode(), "no note with a pitch was found (0 unpitched)"),
        (melody(1).replace("<score-partwise", BOMB + "<score-partwise", 1).encode(), "declares XML entities"),
        (
            (
                BOMB
                + melody(1)
                .removeprefix("<?xml version='1.0' encoding='UTF-8'?>")
                .replace("<part-name>P1", "<part-name>&i;")
            ).encode(),
            "entity amplification",
        ),
    ],
)
def test_what_is_not_a_score_is_refused_in_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path, content)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_percussion_alone_is_refused_because_it_has_no_pitch(tmp_path: Path) -> None:
    hit = (
        "<note><unpitched><display-step>E</display-step><display-octave>4</display-octave></unpitched>"
        "<duration>2</duration><voice>1</voice><type>quarter</type></note>"
    )
    with pytest.raises(InputError, match=r"no note with a pitch was found \(2 unpitched\)"):
        read(tmp_path, score([measure(hit + hit, first=True)]))


@pytest.mark.parametrize("name", ["../outside.xml", "/etc/passwd", "a/../../b.xml", "..\\outside.xml"])
def test_an_mxl_that_climbs_out_of_its_archive_is_refused(tmp_path: Path, name: str) -> None:
    path = mxl(tmp_path, {"META-INF/container.xml": CONTAINER.format(name), name: melody(1)})
    with pytest.raises(InputError, match="points outside the archive"):
        read_score_file(path)


def test_a_zip_without_a_score_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="without a score inside"):
        read_score_file(mxl(tmp_path, {"readme.txt": "hello"}))


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    path = mxl(tmp_path, {"a.xml": melody(4)})
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match="damaged or encrypted MXL"):
        read_score_file(path)


@pytest.mark.parametrize("step", [7, 11])
def test_an_archive_with_any_damaged_byte_is_read_or_refused(tmp_path: Path, step: int) -> None:
    path = mxl(tmp_path, {"META-INF/container.xml": CONTAINER.format("a.xml"), "a.xml": melody(2)})
    whole = path.read_bytes()
    for place in range(2, len(whole), step):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with suppress(InputError):
            score_format(path)
            read_score_file(path)


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    path = mxl(tmp_path, {"a.xml": b"<score-partwise>" + b" " * (65 * 2**20)})
    assert path.stat().st_size < 2**20
    with pytest.raises(
        InputError, match=r"a\.xml: 68157456 bytes of a score, unpacked, expected at most 67108864"
    ):
        read_score_file(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.musicxml: not found; expected MusicXML"):
        read_score_file(tmp_path / "nowhere.musicxml")


def test_images_are_not_taken_for_scores(tmp_path: Path) -> None:
    (tmp_path / "page.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    assert not is_score_file(tmp_path / "page.png")
    assert not is_score_file(tmp_path)
    assert not is_score_file(tmp_path / "missing")


def test_safe_ids_are_what_xml_match_and_parangonada_take() -> None:
    assert all(map(is_safe_id, ["n1", "P1_n2", "_x", "a-b.c", "x" * 16]))
    assert not any(map(is_safe_id, ["", "1a", "a,b", "a#b", "a b", "ä", "n1\n", "x" * 17]))


@pytest.mark.parametrize("given", ["b", "two words", "a#b"])
def test_duplicate_or_malformed_mei_ids_are_replaced(tmp_path: Path, given: str) -> None:
    music = (
        f'<measure n="1"><staff n="1"><layer n="1"><note xml:id="{given}" pname="c" oct="5" dur="4"/>'
        '<note xml:id="b" pname="c" oct="5" dur="4"/></layer></staff></measure>'
    )
    found = ids(read(tmp_path, MEI.format(music), "score.mei"))
    assert len(set(found)) == 2
    assert all(map(is_safe_id, found))


def test_the_play_count_of_a_repeat_is_left_out(tmp_path: Path) -> None:
    repeat = "<barline location='right'><repeat direction='backward' times='1000000'/></barline>"
    score_file = read(tmp_path, score([measure(note("C5") + repeat, first=True)]))
    (found,) = score_file.root.iter("repeat")
    assert dict(found.attrib) == {"direction": "backward"}


def test_notes_may_cross_staves_only_where_a_part_has_several(tmp_path: Path) -> None:
    one = read(tmp_path, score([measure(note("G5"), 1, True)]))
    two = read(tmp_path, score([measure(note("G5") + note("C3", staff=2), 1, True, 2)]))
    assert (one.may_cross_staves, two.may_cross_staves) == (False, True)
    layer = '<measure n="1"><staff n="1"><layer n="1">{}</layer></staff></measure>'
    plain = '<note pname="c" oct="4" dur="2"/>'
    for crossing, crosses in ((plain, False), (plain.replace("/>", ' staff="2"/>'), True)):
        assert read(tmp_path, MEI.format(layer.format(crossing)), "a.mei").may_cross_staves is crosses
