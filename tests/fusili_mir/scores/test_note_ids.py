from __future__ import annotations

import warnings
from pathlib import Path

import partitura as pt
import pytest
from example_scores import VOLTAS, measure, melody, note, score, song

from fusili_mir.pages.engraving_check import hidden_notes
from fusili_mir.pages.pages import Pages, render_pages
from fusili_mir.scores.loading import load_score
from fusili_mir.scores.note_ids import LONGEST_ID
from fusili_mir.scores.score_warning import ScoreWarning


def write(folder: Path, content: str, name: str = "score.musicxml") -> Path:
    (folder / name).write_text(content)
    return folder / name


def partituras_ids(file: Path) -> list[str]:
    return [str(each.id) for part in pt.load_score(str(file), quiet=True).parts for each in part.notes]


def our_ids(file: Path) -> list[str]:
    return [str(each.id) for part in load_score(file).score.parts for each in part.notes]


@pytest.mark.parametrize("content", [melody(3), song(3), VOLTAS], ids=["one part", "two parts", "repeats"])
def test_notes_without_ids_are_named_as_partitura_names_them(tmp_path: Path, content: str) -> None:
    file = write(tmp_path, content)
    assert our_ids(file) == partituras_ids(file)
    assert our_ids(file)[0] == "p0n0"


@pytest.mark.parametrize(
    "given", ["a", "n1", "a,b", "a#b", "3rd", "with space", "ä", "x" * 21, "y" * LONGEST_ID, "p0n3", "n1-1"]
)
def test_an_id_of_the_file_is_kept_whatever_its_length_and_characters(tmp_path: Path, given: str) -> None:
    bar = measure(note("C5") + note("D5").replace("<note", f"<note id='{given}'"), first=True)
    file = write(tmp_path, score([bar]))
    pages = render_pages(file)
    assert our_ids(file) == partituras_ids(file) == pages.notes["id"].tolist() == ["p0n0", given]


def test_a_rest_counts_as_it_does_for_partitura(tmp_path: Path) -> None:
    rest = "<note><rest/><duration>2</duration><voice>1</voice><type>quarter</type></note>"
    file = write(tmp_path, score([measure(rest + note("C5"), first=True)]))
    assert our_ids(file) == partituras_ids(file) == ["p0n1"]


def test_an_id_may_be_written_in_capitals(tmp_path: Path) -> None:
    bar = measure(note("C5").replace("<note", "<note ID='old'") + note("D5"), first=True)
    file = write(tmp_path, score([bar]))
    assert our_ids(file) == partituras_ids(file) == ["old", "p0n1"]


def test_of_notes_with_the_same_id_the_first_keeps_it(tmp_path: Path) -> None:
    upper = [measure(note("C5", note_id="n1") + note("D5", note_id="n2"), first=True)]
    lower = [measure(note("C4", note_id="n1") + note("D4", note_id="n1_2"), first=True)]
    file = write(tmp_path, score(upper, lower))
    with pytest.warns(ScoreWarning, match=r"1 notes have the id of an earlier note \('n1', and now 'n1_3'"):
        assert our_ids(file) == ["n1", "n2", "n1_3", "n1_2"]


def test_an_id_too_long_for_note_arrays_is_dropped_with_a_warning(tmp_path: Path) -> None:
    bar = measure(note("C5", note_id="x" * (LONGEST_ID + 1)) + note("D5"), first=True)
    file = write(tmp_path, score([bar]))
    with pytest.warns(ScoreWarning, match="1 ids have more than 240 characters"):
        assert our_ids(file) == ["p0n0", "p0n1"]


def test_forced_ids_of_partitura_are_others(tmp_path: Path) -> None:
    file = write(tmp_path, melody(2).replace("<note>", "<note id='first'>", 1))
    forced = pt.load_score(str(file), force_note_ids=True, quiet=True)
    assert [each.id for each in forced[0].notes] == ["n0", "n1", "n2", "n3"]
    assert our_ids(file) == ["first", "p0n1", "p0n2", "p0n3"]  # join with load_score(file) as it is


def joined(pages: Pages, score: pt.score.Score) -> None:
    """Check that each row of partitura's note array has heads, of the same pitch and at the same time."""
    assert pages.score is not None
    rows = {row["id"]: row for part in score.parts for row in part.note_array(include_grace_notes=True)}
    ours = {row["id"]: row for part in pages.score.parts for row in part.note_array(include_grace_notes=True)}
    assert ours.keys() == rows.keys() == set(pages.notes["id"].tolist())
    for name in ("pitch", "onset_beat", "duration_beat"):
        assert all(ours[each][name] == rows[each][name] for each in rows)


def test_tables_join_with_note_arrays_of_several_parts(tmp_path: Path) -> None:
    file = write(tmp_path, song(4))
    pages = render_pages(file)
    joined(pages, pt.load_score(str(file), quiet=True))
    assert pages.score is not None
    rows = pages.score.note_array(unique_id_per_part=False)
    assert set(rows["id"].tolist()) == set(pages.notes["id"].tolist())


def maximally_unfolded(file: Path) -> set[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ties that partitura cuts
        loaded = pt.load_score(str(file), quiet=True)
        unfolded = [pt.score.unfold_part_maximal(part, ignore_leaps=False) for part in loaded.parts]
    return {str(note.id) for part in unfolded for note in part.notes}


def test_an_unfolded_score_has_the_suffixes_of_partitura(tmp_path: Path) -> None:
    file = write(tmp_path, VOLTAS)
    pages = render_pages(file, unfold="maximal")
    assert pages.score is not None
    names = {str(note.id) for part in pages.score.parts for note in part.notes}
    assert names == maximally_unfolded(file)
    rows = {"p0n0-1", "p0n1-1", "p0n2-1", "p0n4-1", "p0n1-2", "p0n2-2", "p0n5-1"}  # p0n3 is the end of a tie
    assert set(pages.notes["id"].tolist()) == rows


CORPUS = Path(__file__).parents[4] / "shared"
with_corpus = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="the corpus is not beside the checkout (../shared)"
)


def corpus_files() -> list[str]:
    lines = Path(__file__).with_name("joined_corpus_files.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@with_corpus
def test_thirty_files_of_the_corpus_are_joined() -> None:
    assert len(set(corpus_files())) == 30


@with_corpus
@pytest.mark.parametrize("name", corpus_files())
def test_tables_join_with_partituras_note_arrays(name: str) -> None:
    """Every row of ours is partitura's, with its pitch; every note of partitura's that is printed has a row."""
    file = CORPUS / name
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pages, reference = render_pages(file), pt.load_score(str(file), quiet=True)
    assert pages.score is not None
    assert pages.score_file is not None
    theirs, ours = pitches(reference), pitches(pages.score)
    located = set(pages.notes["notated_id"].tolist())
    if file.suffix == ".krn":  # partitura gives the notes of a chord the same id
        ours, located = {name: ours[name] for name in ours if "_" not in name}, located & theirs.keys()
        assert ours.keys() == theirs.keys()
    else:
        assert ours == theirs
        assert set(pages.notes["id"].tolist()) <= {
            str(row["id"]) for part in reference.parts for row in part.note_array(include_grace_notes=True)
        }
    if file.suffix != ".mid":  # notes of MIDI files are tied anew where they cannot be written
        assert theirs.keys() - located <= hidden_notes(pages.score_file.unpack())


def pitches(score: pt.score.Score) -> dict[str, int]:
    return {str(note.id): note.midi_pitch for part in score.parts for note in part.notes}


@with_corpus
def test_an_unfolded_song_of_the_corpus_has_the_ids_of_partitura() -> None:
    file = CORPUS / "data/scores/openscore_lieder/lc5001870.mxl"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pages = render_pages(file, unfold="maximal")
    assert pages.score is not None
    names = {str(note.id) for part in pages.score.parts for note in part.notes}
    assert names == maximally_unfolded(file)
    assert any(name.endswith("-2") for name in names)
