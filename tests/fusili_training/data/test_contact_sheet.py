from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fusili_mir.errors import OutputError
from fusili_training.data.contact_sheet import draw_pair, save_contact_sheet
from fusili_training.data.shard_folder import ShardFolder


def test_early_notes_are_blue_and_late_ones_red(rendered: Path) -> None:
    folder = ShardFolder(rendered)
    pair = next(p for p in map(folder.read, folder.entries) if len(p.truth) > 6)
    image = np.asarray(draw_pair(pair)).astype(int)
    coloured = np.ptp(image, axis=2) > 120
    blue, red = coloured & (image[..., 2] > 150), coloured & (image[..., 0] > 150)
    assert blue.any()
    assert red.any()
    assert np.nonzero(blue)[1].mean() < np.nonzero(red)[1].mean()


def test_a_sheet_holds_all_pairs_that_there_are(rendered: Path, tmp_path: Path) -> None:
    save_contact_sheet(rendered, tmp_path / "two.png", "train", n_pairs=2)
    save_contact_sheet(rendered, tmp_path / "four.png", "train", n_pairs=4)
    with Image.open(tmp_path / "two.png") as two, Image.open(tmp_path / "four.png") as four:
        assert two.width == four.width
        assert two.height < four.height


def test_a_place_that_cannot_be_written_is_one_line(rendered: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be written"):
        save_contact_sheet(rendered, tmp_path / "file" / "sheet.png", "train", n_pairs=1)
