from __future__ import annotations

import builtins
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_performances import PITCHES, tune
from PIL import Image

from fusili_mir.errors import InputError, MissingExtraError
from fusili_mir.pages.engraving import EngravingOptions
from fusili_mir.pages.heif import is_heif
from fusili_mir.pages.pages import load_pages, render_pages

PHOTO = Path(__file__).with_name("page.heic")
"""The tune of `example_performances` in the format of phones, engraved with `OPTIONS`."""
OPTIONS = EngravingOptions(page_width_mm=150, page_height_mm=80, staff_space_px=8)


def test_a_photograph_of_a_phone_is_the_page_that_it_shows(tmp_path: Path) -> None:
    (tmp_path / "tune.musicxml").write_text(tune(PITCHES))
    engraved, photographed = render_pages(tmp_path / "tune.musicxml", OPTIONS), load_pages(PHOTO)
    assert np.abs(engraved.images[0].astype(int) - photographed.images[0]).mean() < 5
    assert len(photographed.systems) == len(engraved.systems)


def test_a_folder_of_photographs_is_a_score(tmp_path: Path) -> None:
    for name in ("IMG_2.HEIC", "IMG_10.HEIC"):
        shutil.copy(PHOTO, tmp_path / name)
    pages = load_pages(tmp_path)
    assert len(pages.images) == 2


def test_without_the_extra_a_photograph_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def without_heif(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "pi_heif":
            raise ImportError(name)
        return load(name, *arguments, **options)

    monkeypatch.delitem(sys.modules, "pi_heif", raising=False)
    monkeypatch.setattr(builtins, "__import__", without_heif)
    with pytest.raises(MissingExtraError, match=r"install 'fusili-mir\[photos\]'; or save it as JPEG"):
        load_pages(PHOTO)


def test_a_damaged_photograph_is_refused(tmp_path: Path) -> None:
    (tmp_path / "half.heic").write_bytes(PHOTO.read_bytes()[:2000])
    with pytest.raises(InputError, match=r"half\.heic"):
        load_pages(tmp_path / "half.heic")


def test_other_images_are_no_heif(tmp_path: Path) -> None:
    Image.new("L", (9, 9)).save(tmp_path / "page.png")
    assert is_heif(PHOTO)
    assert not is_heif(tmp_path / "page.png")
