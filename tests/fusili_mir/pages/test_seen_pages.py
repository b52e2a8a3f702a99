from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from example_performances import tune

import fusili_mir as fm
from fusili_mir.pages.seen_pages import open_seen_pages


def test_a_score_looks_the_same_without_its_notes(tmp_path: Path) -> None:
    (tmp_path / "tune.musicxml").write_text(tune(["C4", "E4", "G4", "B4"] * 12))
    whole, seen = fm.open_pages(tmp_path / "tune.musicxml"), open_seen_pages(tmp_path / "tune.musicxml")
    assert all(np.array_equal(*images) for images in zip(whole.images, seen.images, strict=True))
    for boxes in ("systems", "staves", "measures"):
        assert np.array_equal(getattr(whole, boxes), getattr(seen, boxes))
    assert (len(whole.notes), len(seen.notes), seen.score) == (48, 0, None)


def test_what_cannot_be_engraved_as_it_is_is_opened_as_ever(tmp_path: Path) -> None:
    (tmp_path / "tune.krn").write_text("**kern\n*clefG2\n*M4/4\n=1\n4c\n4d\n4e\n4f\n==\n*-\n")
    assert len(open_seen_pages(tmp_path / "tune.krn").notes) == 4
    (tmp_path / "bad.mxl").write_text("no score at all")
    with pytest.raises(fm.InputError, match="not a score that can be read"):
        open_seen_pages(tmp_path / "bad.mxl")
