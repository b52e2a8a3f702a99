from __future__ import annotations

from pathlib import Path

import numpy as np
import partitura
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from fusili_mir.errors import InputError
from fusili_mir.pages.engraving import engrave
from fusili_mir.scores.score_file import read_score_file
from fusili_training.notation.written_ensembles import MOST_PARTS, write_ensemble
from fusili_training.sound.sounding_score import read_sounding_score


def _ensemble(seed: int, n_parts: int, n_measures: int = 5) -> etree._Element:
    return etree.fromstring(write_ensemble(n_measures, n_parts, np.random.default_rng(seed)))


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000), st.integers(1, MOST_PARTS))
def test_every_part_fills_every_measure_and_someone_plays(seed: int, n_parts: int) -> None:
    score = _ensemble(seed, n_parts)
    full = 24 * int(score.findtext(".//time/beats") or 0)
    parts = score.findall("part")
    assert len(parts) == n_parts
    for number in range(5):
        measures = [part.findall("measure")[number] for part in parts]
        for measure in measures:
            notes = [note for note in measure.iter("note") if note.find("chord") is None]
            assert sum(int(note.findtext("duration") or 0) for note in notes) == full
        assert any(measure.find("note/rest[@measure]") is None for measure in measures)


def test_cues_are_printed_and_do_not_sound(tmp_path: Path) -> None:
    path = tmp_path / "cued.musicxml"
    seed = next(s for s in range(50) if _ensemble(s, 4).find(".//cue") is not None)
    path.write_bytes(write_ensemble(5, 4, np.random.default_rng(seed)))
    root = etree.parse(path).getroot()
    heads = root.findall(".//note[pitch]")
    cues = [note for note in heads if note.find("cue") is not None]
    assert 0 < len(cues) < len(heads)
    score_file = read_score_file(path)
    assert len(read_sounding_score(score_file).notes) == len(heads) - len(cues)
    pages = engrave(score_file)
    assert len(pages.notes) >= len(heads) - len(cues)


@pytest.mark.parametrize("n_parts", [1, 7, MOST_PARTS])
def test_an_ensemble_is_engraved_with_a_staff_for_each_part(tmp_path: Path, n_parts: int) -> None:
    path = tmp_path / "ensemble.musicxml"
    path.write_bytes(write_ensemble(4, n_parts, np.random.default_rng(3)))
    pages = engrave(read_score_file(path))
    first = pages.staves[pages.staves["system"] == 0]
    assert len(first) == n_parts
    assert len(partitura.load_musicxml(path).parts) == n_parts


@pytest.mark.parametrize(("n_measures", "n_parts"), [(4, 0), (4, 13), (0, 3)])
def test_an_impossible_ensemble_is_refused(n_measures: int, n_parts: int) -> None:
    with pytest.raises(InputError, match="expected 1 to 12 parts, and at least one measure"):
        write_ensemble(n_measures, n_parts, np.random.default_rng(0))


def test_the_same_seed_gives_the_same_music() -> None:
    first, second, other = (write_ensemble(4, 5, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first == second
    assert first != other
