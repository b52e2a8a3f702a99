from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from example_scores import piano
from PIL import Image

from fusili_mir.pages.engraving import EngravingOptions
from fusili_mir.pages.original_pages import original_image, original_size_px, page_origin, rgb_image
from fusili_mir.pages.pages import Pages, load_pages, render_pages


@pytest.fixture(scope="module")
def engraved(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    file = tmp_path_factory.mktemp("score") / "piano.musicxml"
    file.write_text(piano(8))
    return render_pages(file, EngravingOptions(dpi=150))


def on_blue_paper(engraved: Pages) -> Image.Image:
    grey = np.asarray(engraved.images[0])
    return Image.fromarray(np.stack([grey // 2, grey // 2, grey], axis=-1))


def test_a_tilted_page_in_colour_is_given_back_as_it_is_in_the_file(tmp_path: Path, engraved: Pages) -> None:
    image = on_blue_paper(engraved).rotate(1.3, Image.Resampling.BICUBIC, fillcolor=(127, 127, 255))
    image.save(tmp_path / "scan.png", dpi=(300, 300))
    pages = load_pages(tmp_path / "scan.png")
    assert pages.skews[0].angle_deg == pytest.approx(1.3, abs=0.05)
    assert np.array_equal(np.asarray(original_image(pages, 0)), np.asarray(image))
    assert original_size_px(pages, 0) == image.size
    origin = page_origin(pages, 0)
    assert (origin.filename, origin.index, origin.dpi) == (
        tmp_path / "scan.png",
        0,
        pytest.approx(300, abs=0.1),
    )


def test_a_photograph_is_turned_as_its_camera_says(tmp_path: Path, engraved: Pages) -> None:
    image = on_blue_paper(engraved)
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees clockwise to view
    image.rotate(90, expand=True).save(tmp_path / "photo.png", exif=exif)
    assert original_image(load_pages(tmp_path / "photo.png"), 0).size == image.size


def test_a_pdf_is_drawn_in_colour_at_its_resolution(tmp_path: Path, engraved: Pages) -> None:
    on_blue_paper(engraved).save(tmp_path / "scan.pdf", resolution=150)
    pages = load_pages(tmp_path / "scan.pdf", dpi=200)
    image = np.asarray(original_image(pages, 0)).astype(int)
    assert image.shape[:2] == pages.images[0].shape
    assert np.median(image[..., 2] - image[..., 0]) > 100
    assert page_origin(pages, 0).dpi == 200


def test_an_engraved_page_is_grey_and_has_no_file(engraved: Pages) -> None:
    assert np.array_equal(np.asarray(original_image(engraved, 0)), engraved.images[0])
    assert original_size_px(engraved, 0) == engraved.images[0].shape[::-1]
    origin = page_origin(engraved, 0)
    assert (origin.filename, origin.dpi) == (None, pytest.approx(150))


@pytest.mark.parametrize("mode", ["1", "L", "P", "LA", "RGBA", "CMYK", "I;16", "F"])
def test_any_kind_of_image_becomes_colours_with_paper_white(mode: str) -> None:
    grey = np.full((4, 6), 255, np.uint8)
    grey[1, 2] = 0
    if mode == "I;16":
        image = Image.fromarray(grey.astype(np.uint16) * 257)
    elif mode == "F":
        image = Image.fromarray(grey.astype(np.float32))
    else:
        image = Image.fromarray(grey).convert("RGB" if mode in ("CMYK", "RGBA") else "L").convert(mode)
    pixels = np.asarray(rgb_image(image))
    assert pixels.shape == (4, 6, 3)
    assert pixels[0, 0].tolist() == [255, 255, 255]
    assert pixels[1, 2].max() < 5


def test_transparent_parts_are_paper() -> None:
    pixels = np.asarray(rgb_image(Image.new("RGBA", (2, 2), (0, 0, 0, 0))))
    assert pixels.min() == 255
