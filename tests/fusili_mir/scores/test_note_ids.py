from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import mido
import numpy as np
import partitura as pt
import pytest
import verovio
from example_scores import VOLTAS, measure, melody, note, score, song
from lxml import etree

from fusili_mir.pages.engraving_check import hidden_notes
from fusili_mir.pages.pages import Pages, render_pages
from fusili_mir.scores.loading import load_score
from fusili_mir.scores.note_ids import LONGEST_ID
from fusili_mir.scores.score_file import read_score_file
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


FILES = Path(__file__).parent / "files"
SCORES = sorted(path.name for path in FILES.iterdir() if path.name != "README.md")


def engraved_as_mei(name: str, folder: Path) -> Path:
    verovio.enableLog(verovio.LOG_OFF)
    toolkit = verovio.toolkit()
    assert toolkit.loadFile(str(FILES / name))
    (folder / f"{name}.mei").write_text(toolkit.getMEI(), encoding="utf-8")
    return folder / f"{name}.mei"


def with_ids(name: str, folder: Path) -> Path:
    """Give the notes of a score ids of their own."""
    root = read_score_file(FILES / name).root
    for number, each in enumerate(root.iter("note"), start=1):
        each.set("id", f"n{number}")
    (folder / f"{name}.musicxml").write_bytes(etree.tostring(root))
    return folder / f"{name}.musicxml"


def performed_as_midi(name: str, folder: Path) -> Path:
    """Play a score as a person does, a track a part: nothing lies on a beat."""
    rng = np.random.default_rng(0)
    file = mido.MidiFile(ticks_per_beat=480)
    for part in pt.load_score(str(FILES / name), quiet=True).parts:
        notes = part.note_array()
        onsets = 480 * notes["onset_quarter"] + rng.integers(0, 30, len(notes))
        ends = onsets + 480 * notes["duration_quarter"] * rng.uniform(0.7, 1.3, len(notes))
        events = [
            (round(tick), mido.Message(kind, note=int(pitch)))
            for kind, ticks in (("note_on", onsets), ("note_off", ends))
            for tick, pitch in zip(ticks, notes["pitch"], strict=True)
        ]
        track, now = mido.MidiTrack(), 0
        for tick, event in sorted(events, key=lambda each: each[0]):
            track.append(event.copy(time=tick - now))
            now = tick
        file.tracks.append(track)
    file.save(folder / f"{name}.mid")
    return folder / f"{name}.mid"


def test_scores_of_every_kind_are_joined() -> None:
    assert {Path(name).suffix for name in SCORES} == {".mxl", ".musicxml", ".krn"}
    assert len(SCORES) == 13


@pytest.mark.parametrize("name", SCORES)
def test_tables_join_with_partituras_note_arrays(name: str) -> None:
    check_that_tables_join(FILES / name)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (with_ids, "lc4985940.mxl"),
        (engraved_as_mei, "lc4985940.mxl"),
        (engraved_as_mei, "lc5846184.mxl"),
        (performed_as_midi, "lc4985940.mxl"),
    ],
)
def test_tables_join_with_note_arrays_of_the_same_music_in_another_format(
    make: Callable[[str, Path], Path], name: str, tmp_path: Path
) -> None:
    check_that_tables_join(make(name, tmp_path))


def check_that_tables_join(file: Path) -> None:
    """Every row of ours is partitura's, with its pitch; every note of partitura's that is printed has a row."""
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


def test_an_unfolded_song_has_the_ids_of_partitura() -> None:
    file = FILES / "lc5001870.mxl"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pages = render_pages(file, unfold="maximal")
    assert pages.score is not None
    names = {str(note.id) for part in pages.score.parts for note in part.notes}
    assert names == maximally_unfolded(file)
    assert any(name.endswith("-2") for name in names)
