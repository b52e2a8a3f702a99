"""Key signatures, read from the images of engraved pages."""

from pathlib import Path

import numpy as np
import pytest
from example_scores import note, score
from PIL import Image

from fusili_mir.pages.engraving import EngravingOptions
from fusili_mir.pages.key_signatures import read_key_signatures, signature_likelihoods
from fusili_mir.pages.pages import Pages, load_pages, render_pages

CLEFS = {"treble": ("G", 2, "B4"), "bass": ("F", 4, "D3"), "alto": ("C", 3, "C4")}


def page(folder: Path, fifths: int, clef: str = "treble", font: str = "Leipzig") -> Pages:
    """Engrave two measures in a key, and forget everything but their image."""
    sign, line, middle = CLEFS[clef]
    attributes = (
        f"<attributes><divisions>2</divisions><key><fifths>{fifths}</fifths></key><time><beats>2</beats>"
        f"<beat-type>4</beat-type></time><clef><sign>{sign}</sign><line>{line}</line></clef></attributes>"
    )
    bars = [
        f"<measure number='{n}'>{attributes if n == 1 else ''}{2 * note(middle)}</measure>" for n in (1, 2)
    ]
    (folder / "key.musicxml").write_text(score(bars))
    engraved = render_pages(folder / "key.musicxml", EngravingOptions(font=font))  # type: ignore[arg-type]
    Image.fromarray(engraved.images[0]).save(folder / "key.png")
    return load_pages(folder / "key.png")


@pytest.mark.parametrize("fifths", [-7, -4, -1, 0, 2, 5, 7])
def test_sharps_and_flats_are_counted(fifths: int, tmp_path: Path) -> None:
    assert read_key_signatures(page(tmp_path, fifths), np.array([0])).tolist() == [fifths]


@pytest.mark.parametrize(("clef", "fifths"), [("bass", -3), ("bass", 4), ("alto", -2), ("alto", 3)])
def test_every_usual_clef_has_its_own_places(clef: str, fifths: int, tmp_path: Path) -> None:
    assert read_key_signatures(page(tmp_path, fifths, clef), np.array([0])).tolist() == [fifths]


@pytest.mark.parametrize("font", ["Bravura", "Gootville", "Leland", "Petaluma"])
def test_other_fonts_are_read_too(font: str, tmp_path: Path) -> None:
    assert read_key_signatures(page(tmp_path, -5, font=font), np.array([0])).tolist() == [-5]


def test_empty_paper_has_no_key_signature() -> None:
    assert signature_likelihoods(np.zeros((128, 144))).argmax() == 7
