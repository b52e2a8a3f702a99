from __future__ import annotations

import warnings
from pathlib import Path

import mido
import partitura as pt
import pytest
from example_scores import VOLTAS, song

from fusili_mir.errors import InputError
from fusili_mir.output.score_with_ids import save_score_with_ids
from fusili_mir.pages.pages import load_pages, render_pages

KERN = "**kern\t**kern\n*clefF4\t*clefG2\n*M2/4\t*M2/4\n=1\t=1\n4C\t4c 4e\n4D\t8d\n.\t8e\n=\t=\n*-\t*-\n"
ABC = "X:1\nM:2/4\nL:1/4\nK:C\nCD|EF|\n"


def midi(file: Path) -> None:
    track = mido.MidiTrack()
    for pitch in (72, 74, 76, 77):
        track += [
            mido.Message("note_on", note=pitch, time=0),
            mido.Message("note_off", note=pitch, time=480),
        ]
    mido.MidiFile(ticks_per_beat=480, tracks=[track]).save(file)


def sounding(score: pt.score.Score) -> list[tuple[str, float, int]]:
    return sorted(
        (str(row["id"]), round(float(row["onset_quarter"]), 4), int(row["pitch"]))
        for part in score.parts
        for row in part.note_array()
    )


@pytest.mark.parametrize("name", ["score.musicxml", "score.krn", "score.abc", "score.mid"])
def test_a_written_score_has_the_ids_of_the_results(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    content = {".musicxml": song(3), ".krn": KERN, ".abc": ABC}.get(file.suffix)
    midi(file) if content is None else file.write_text(content)  # type: ignore[func-returns-value]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pages = render_pages(file)
        save_score_with_ids(pages, tmp_path / "out" / "score.musicxml")
        written = pt.load_score(str(tmp_path / "out" / "score.musicxml"), quiet=True)
    assert pages.score is not None
    assert sounding(written) == sounding(pages.score)


def test_ids_that_were_implied_are_written_down(tmp_path: Path) -> None:
    (tmp_path / "voltas.musicxml").write_text(VOLTAS)
    save_score_with_ids(tmp_path / "voltas.musicxml", tmp_path / "named.musicxml")
    content = (tmp_path / "named.musicxml").read_text()
    assert [f'id="p0n{number}"' in content for number in range(6)] == [True] * 6
    assert "<repeat" in content  # as notated


def test_other_files_in_the_folder_stay(tmp_path: Path) -> None:
    (tmp_path / "voltas.musicxml").write_text(VOLTAS)
    save_score_with_ids(tmp_path / "voltas.musicxml", tmp_path / "named.musicxml")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["named.musicxml", "voltas.musicxml"]


def test_images_have_no_notes_to_write(tmp_path: Path) -> None:
    (tmp_path / "voltas.musicxml").write_text(VOLTAS)
    pages = load_pages(render_pages(tmp_path / "voltas.musicxml").images[0])
    with pytest.raises(InputError, match="a score of images has no notes"):
        save_score_with_ids(pages, tmp_path / "out" / "score.musicxml")
    assert not (tmp_path / "out").exists()
