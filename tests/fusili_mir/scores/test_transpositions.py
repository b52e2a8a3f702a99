"""Written and sounding pitch of transposing instruments."""

from pathlib import Path

from fusili_mir.pages.pages import render_pages
from fusili_mir.scores.score_file import read_score_file
from fusili_mir.scores.transpositions import read_transpositions

NOTE = '<note id="{id}"><pitch><step>C</step><octave>5</octave></pitch><duration>4</duration>{staff}</note>'


def musicxml(*parts: str) -> str:
    listed = "".join(
        f'<score-part id="P{n}"><part-name>P</part-name></score-part>' for n, _ in enumerate(parts)
    )
    written = "".join(f'<part id="P{n}">{part}</part>' for n, part in enumerate(parts))
    return f'<score-partwise version="4.0"><part-list>{listed}</part-list>{written}</score-partwise>'


def measure(number: int, note_id: str, transpose: str = "", staff: str = "") -> str:
    attributes = (
        "<attributes><divisions>1</divisions><time><beats>4</beats><beat-type>4</beat-type></time>"
        f"<clef><sign>G</sign><line>2</line></clef>{transpose}</attributes>"
        if number == 1 or transpose
        else ""
    )
    return f'<measure number="{number}">{attributes}{NOTE.format(id=note_id, staff=staff)}</measure>'


def transpose(chromatic: int, octaves: int = 0) -> str:
    return (
        f"<transpose><chromatic>{chromatic}</chromatic><octave-change>{octaves}</octave-change></transpose>"
    )


def read(folder: Path, text: str) -> dict[str, int]:
    file = folder / "score.xml"
    file.write_text(text)
    return read_transpositions(read_score_file(file))


def test_a_clarinet_sounds_lower_until_the_player_takes_another(tmp_path: Path) -> None:
    clarinet = (
        measure(1, "in-b", transpose(-2)) + measure(2, "still-in-b") + measure(3, "in-a", transpose(-3))
    )
    piano = measure(1, "c1") + measure(2, "c2") + measure(3, "c3")
    assert read(tmp_path, musicxml(clarinet, piano)) == {"in-b": -2, "still-in-b": -2, "in-a": -3}


def test_octaves_count(tmp_path: Path) -> None:
    assert read(tmp_path, musicxml(measure(1, "guitar", transpose(0, -1)))) == {"guitar": -12}
    assert read(tmp_path, musicxml(measure(1, "bass-clarinet", transpose(-2, -1)))) == {"bass-clarinet": -14}


def test_a_transposition_of_one_staff_leaves_the_others_alone(tmp_path: Path) -> None:
    second = transpose(-12).replace("<transpose>", '<transpose number="2">')
    first_staff = measure(1, "upper", second, "<staff>1</staff>")
    second_staff = measure(2, "lower", staff="<staff>2</staff>")
    assert read(tmp_path, musicxml(first_staff + second_staff)) == {"lower": -12}


def test_mei_says_it_of_staves(tmp_path: Path) -> None:
    text = """<mei xmlns="http://www.music-encoding.org/ns/mei"><music><body><mdiv><score><scoreDef><staffGrp>
        <staffDef n="1" lines="5" trans.semi="-9"/><staffDef n="2" lines="5"/></staffGrp></scoreDef><section>
        <measure xml:id="m1"><staff n="1"><layer><note xml:id="sax" pname="c" oct="5" dur="1"/></layer></staff>
        <staff n="2"><layer><note xml:id="voice" pname="c" oct="5" dur="1"/></layer></staff></measure>
        </section></score></mdiv></body></music></mei>"""
    assert read(tmp_path, text) == {"sax": -9}


def test_pages_know_the_transpositions_of_their_heads(tmp_path: Path) -> None:
    file = tmp_path / "clarinet.xml"
    file.write_text(musicxml(measure(1, "in-b", transpose(-2))))
    pages = render_pages(file)
    assert pages.transpositions == {"in-b": -2}
    assert pages.notes["notated_id"].tolist() == ["in-b"]
