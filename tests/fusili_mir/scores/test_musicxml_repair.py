from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from example_scores import measure, note, piano, score, song
from lxml import etree

from fusili_mir.pages.engraving import EngravingOptions, engrave
from fusili_mir.pages.engraving_check import heads_off_staff
from fusili_mir.pages.pages import Pages, render_pages
from fusili_mir.scores.musicxml_repair import repaired_musicxml
from fusili_mir.scores.printed_parts import left_out_parts, part_name, tablature_staves
from fusili_mir.scores.score_file import ScoreFile, parse_score
from fusili_mir.scores.score_warning import ScoreWarning

BACKUP = "<backup><duration>{}</duration></backup>"
STAVES = "<staves>2</staves>"


def engraved(folder: Path, content: str) -> Pages:
    file = folder / "score.musicxml"
    file.write_text(content)
    return render_pages(file, EngravingOptions(breaks="none"))


class AsItIs(ScoreFile):
    """A score that is engraved without repair."""

    def to_engrave(self) -> bytes:
        return self.to_bytes()


def low_piano() -> str:
    """Both staves without clefs and without their number, as partitura 0.2 wrote them; the left hand is low."""
    content = piano(4).replace(STAVES, "").replace("<octave>3<", "<octave>1<")
    tree = etree.fromstring(content.encode())
    for clef in list(tree.iter("clef")):
        clef.getparent().remove(clef)  # type: ignore[union-attr]
    return etree.tostring(tree, encoding="unicode")


def test_without_repair_two_staves_that_are_not_declared_are_drawn_as_one() -> None:
    tree = parse_score(low_piano().encode(), "low")
    before = engrave(AsItIs(tree.filename, tree.kind, tree.root))
    after = engrave(tree)
    assert before.systems["n_staves"].tolist() == [1]
    assert heads_off_staff(before.notes, before.staves).max() > 8
    assert after.systems["n_staves"].tolist() == [2]
    assert heads_off_staff(after.notes, after.staves).max() < 5


def test_two_staves_that_are_not_declared_are_engraved_as_if_they_were(tmp_path: Path) -> None:
    plain, declared = (engraved(tmp_path, each) for each in (piano(4).replace(STAVES, ""), piano(4)))
    assert "<staves>" not in piano(4).replace(STAVES, "")
    assert np.array_equal(plain.notes, declared.notes)
    assert np.array_equal(plain.staves, declared.staves)


def test_staves_without_clefs_get_the_one_that_suits_their_notes() -> None:
    root = repaired_musicxml(etree.fromstring(low_piano().encode()))
    assert [(c.get("number"), c.findtext("sign")) for c in root.iter("clef")] == [("1", "G"), ("2", "F")]
    assert [element.tag for element in next(root.iter("attributes"))] == [
        "divisions",
        "key",
        "time",
        "staves",
        "clef",
        "clef",
    ]


def test_the_tree_that_is_repaired_stays_as_it_was() -> None:
    root = etree.fromstring(low_piano().encode())
    before = etree.tostring(root)
    repaired_musicxml(root)
    assert etree.tostring(root) == before


def columns(pages: Pages) -> list[list[str]]:
    """Ids of the heads that stand above each other, from left to right."""
    middle = (pages.notes["x0"] + pages.notes["x1"]) / 2
    width = float(np.median(pages.notes["x1"] - pages.notes["x0"]))
    found: list[tuple[float, list[str]]] = []
    for row in np.argsort(middle):
        if not found or middle[row] - found[-1][0] > width:
            found.append((middle[row], []))
        found[-1][1].append(str(pages.notes["id"][row]))
    return [sorted(names) for _, names in found]


@pytest.mark.parametrize("voice", ["", "<voice>1</voice>"], ids=["no voices", "the same voice"])
def test_notes_on_top_of_each_other_are_drawn_so_whatever_their_voices(tmp_path: Path, voice: str) -> None:
    bar = note("E5") + note("F5") + BACKUP.format(4) + note("C4") + note("D4")
    pages = engraved(tmp_path, score([measure(bar.replace("<voice>1</voice>", voice), first=True)]))
    assert columns(pages) == [["p0n0", "p0n1"], ["p0n2", "p0n3"]]  # partitura counts by onset


def test_a_gap_after_a_backup_is_kept(tmp_path: Path) -> None:
    low = "<forward><duration>2</duration></forward>" + note("D4").replace("<voice>1", "<voice>2")
    pages = engraved(tmp_path, score([measure(note("E5") + note("F5") + BACKUP.format(4) + low, first=True)]))
    assert columns(pages) == [["p0n0"], ["p0n1", "p0n2"]]


def test_a_measure_of_grace_notes_alone_is_engraved(tmp_path: Path) -> None:
    graces = note("D5", "eighth", "<grace/>") + note("E5", "eighth", "<grace/>")
    pages = engraved(
        tmp_path,
        score([measure(note("C5") * 2, first=True), measure(graces, 2), measure(note("F5") * 2, 3)]),
    )
    assert len(pages.notes) == 6
    assert pages.notes["measure"].tolist() == [0, 0, 1, 1, 2, 2]


TAB = "<clef number='{}'><sign>TAB</sign><line>5</line></clef>"
DRUM = (
    "<note><unpitched><display-step>E</display-step><display-octave>4</display-octave></unpitched>"
    "<duration>4</duration><voice>1</voice><type>half</type></note>"
)


def with_drums(n_measures: int = 2) -> str:
    drums = [measure(DRUM, i + 1, first=i == 0) for i in range(n_measures)]
    tune = [measure(note("C5") + note("D5"), i + 1, first=i == 0) for i in range(n_measures)]
    return score(drums, tune)


def test_percussion_is_left_out_and_said(tmp_path: Path) -> None:
    with pytest.warns(ScoreWarning, match=r"left out P1 \(percussion\)"):
        pages = engraved(tmp_path, with_drums())
    assert pages.systems["n_staves"].tolist() == [1]
    assert pages.notes["id"].tolist() == ["p1n0", "p1n1", "p1n2", "p1n3"]  # the second part, as for partitura


def test_a_part_in_tablature_is_left_out_and_said(tmp_path: Path) -> None:
    tab = [measure(note("C4") + note("D4"), 1, first=True)]
    treble = "<clef number='1'><sign>G</sign><line>2</line></clef>"
    content = score([measure(note("C5") + note("D5"), first=True)], [tab[0].replace(treble, TAB.format(1))])
    with pytest.warns(ScoreWarning, match=r"left out P2 \(tablature\)"):
        pages = engraved(tmp_path, content)
    assert pages.notes["id"].tolist() == ["p0n0", "p0n1"]


def test_of_a_staff_and_its_tablature_the_staff_is_engraved(tmp_path: Path) -> None:
    bass = "<clef number='2'><sign>F</sign><line>4</line></clef>"
    with pytest.warns(ScoreWarning, match=r"left out a staff of P1 \(tablature\)"):
        pages = engraved(tmp_path, piano(2).replace(bass, TAB.format(2)))
    assert pages.systems["n_staves"].tolist() == [1]
    assert len(pages.notes) == 4


def test_what_is_left_out_is_read_from_clefs_and_pitches() -> None:
    drums = etree.fromstring(with_drums().encode())
    assert left_out_parts(drums) == {"P1": "percussion"}
    assert part_name(drums, "P1") == "P1"
    tab = etree.fromstring(piano(2).replace("<sign>F</sign>", "<sign>TAB</sign>").encode())
    assert left_out_parts(tab) == {}
    assert tablature_staves(tab.find("part")) == {2}  # type: ignore[arg-type]


def test_a_song_without_staves_is_repaired_part_by_part(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ScoreWarning)
        pages = engraved(tmp_path, song(2).replace(STAVES, ""))
    assert pages.systems["n_staves"].tolist() == [3]
