from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fusili_mir.errors import InputError
from fusili_mir.pages.page_sources import ImagePage, PdfPage, find_page_sources


def ramp() -> Image.Image:
    """A page whose grey encodes the place: darker from left to right."""
    return Image.fromarray(np.tile(np.linspace(250, 5, 60).astype(np.uint8), (40, 1)))


def pdf_of(*objects: str, trailer: str = "") -> bytes:
    """A PDF with the given objects, numbered from 1; object 1 is the catalogue."""
    data = b"%PDF-1.4\n"
    offsets = []
    for number, content in enumerate(objects, 1):
        offsets.append(len(data))
        data += f"{number} 0 obj\n{content}\nendobj\n".encode()
    start = len(data)
    data += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    data += b"".join(f"{offset:010d} 00000 n \n".encode() for offset in offsets)
    return (
        data
        + f"trailer\n<</Size {len(objects) + 1}/Root 1 0 R{trailer}>>\nstartxref\n{start}\n%%EOF".encode()
    )


CATALOGUE = "<</Type/Catalog/Pages 2 0 R>>"


@pytest.mark.parametrize("name", ["page.png", "page.jpg", "page.tif", "page.webp"])
def test_common_image_files_are_read_as_grey(tmp_path: Path, name: str) -> None:
    ramp().convert("RGB").save(tmp_path / name)
    (source,) = find_page_sources(tmp_path / name)
    image = source.read()
    assert image.shape == (40, 60)
    assert image.dtype == np.uint8
    assert np.abs(image.astype(int) - np.asarray(ramp())).max() <= 12


@pytest.mark.parametrize("mode", ["1", "P", "LA", "RGBA", "CMYK", "I;16"])
def test_every_kind_of_pixel_becomes_the_same_grey(tmp_path: Path, mode: str) -> None:
    if mode == "I;16":
        wide = np.asarray(ramp()).astype(np.uint16) * 257
        Image.fromarray(wide).save(tmp_path / "page.png")
    else:
        suffix = "tif" if mode == "CMYK" else "png"
        ramp().convert(mode).save(tmp_path / f"page.{suffix}")
    (source,) = find_page_sources(next(tmp_path.iterdir()))
    image = source.read()
    assert image[:, :5].mean() > 215
    assert image[:, -5:].mean() < 40


def test_transparent_parts_are_paper(tmp_path: Path) -> None:
    Image.new("RGBA", (4, 4), (0, 0, 0, 0)).save(tmp_path / "clear.png")
    assert (ImagePage(tmp_path / "clear.png").read() == 255).all()


def test_a_photograph_is_rotated_as_its_exif_data_say(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned clockwise by 90 degrees
    ramp().save(tmp_path / "photo.jpg", exif=exif)
    assert ImagePage(tmp_path / "photo.jpg").read().shape == (60, 40)


def test_each_image_of_a_tiff_is_a_page(tmp_path: Path) -> None:
    pages = [Image.new("L", (5, 5), grey) for grey in (10, 20, 30)]
    pages[0].save(tmp_path / "scan.tif", save_all=True, append_images=pages[1:])
    assert [int(source.read()[0, 0]) for source in find_page_sources(tmp_path / "scan.tif")] == [10, 20, 30]


def test_the_pages_of_a_pdf_are_drawn_at_the_requested_resolution(tmp_path: Path) -> None:
    page = Image.new("L", (144, 72), 0)
    page.save(tmp_path / "score.pdf", save_all=True, append_images=[page], resolution=72)
    sources = find_page_sources(tmp_path / "score.pdf", dpi=36)
    assert [source.read().shape for source in sources] == [(36, 72), (36, 72)]
    assert isinstance(sources[1], PdfPage)
    assert sources[1].read().max() < 60


def test_the_images_of_a_folder_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for name in ("page-10.png", "page-9.png", "page-100.png", "notes.txt"):
        ramp().save(tmp_path / name, "PNG")
    (tmp_path / "elsewhere").mkdir()
    ramp().save(tmp_path / "elsewhere" / "page-1.png")
    names = [source.filename.name for source in find_page_sources(tmp_path)]
    assert names == ["page-9.png", "page-10.png", "page-100.png"]


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    ramp().save(tmp_path / "secret.png")
    (tmp_path / "book").mkdir()
    ramp().save(tmp_path / "book" / "page-1.png")
    (tmp_path / "book" / "page-2.png").symlink_to(tmp_path / "secret.png")
    assert [source.filename.name for source in find_page_sources(tmp_path / "book")] == ["page-1.png"]


def test_files_given_in_a_list_keep_their_order(tmp_path: Path) -> None:
    for name in ("b.png", "a.png"):
        ramp().save(tmp_path / name)
    sources = find_page_sources([tmp_path / "b.png", str(tmp_path / "a.png")])
    assert [source.filename.name for source in sources] == ["b.png", "a.png"]


def save(folder: Path, name: str, data: bytes) -> Path:
    (folder / name).write_bytes(data)
    return folder / name


def test_an_encrypted_pdf_says_what_to_do(tmp_path: Path) -> None:
    lock = f"<</Filter/Standard/V 1/R 2/P -44/O <{'41' * 32}>/U <{'42' * 32}>>>"
    data = pdf_of(
        CATALOGUE,
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>",
        lock,
        trailer=f"/Encrypt 4 0 R/ID[<{'43' * 16}><{'43' * 16}>]",
    )
    with pytest.raises(InputError, match="the PDF is encrypted; save a copy without a password"):
        find_page_sources(save(tmp_path, "locked.pdf", data))


def test_a_pdf_without_pages_is_refused(tmp_path: Path) -> None:
    data = pdf_of(CATALOGUE, "<</Type/Pages/Kids[]/Count 0>>")
    with pytest.raises(InputError, match="the PDF is damaged or has no pages"):
        find_page_sources(save(tmp_path, "empty.pdf", data))


def test_a_pdf_page_of_too_many_pixels_is_refused(tmp_path: Path) -> None:
    data = pdf_of(
        CATALOGUE,
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 14000 14000]>>",
    )
    (source,) = find_page_sources(save(tmp_path, "wall.pdf", data))
    with pytest.raises(InputError, match="a page of 38888 x 38888 pixels, expected at most 80 million"):
        source.read()


def test_a_damaged_pdf_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the PDF is damaged"):
        find_page_sources(save(tmp_path, "torn.pdf", b"%PDF-1.4 torn"))


def test_a_huge_image_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    import struct
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    for side, said in ((30_000, "far more than 80 million pixels"), (12_000, "12000 x 12000 pixels")):
        header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
        png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 9))
        path = save(tmp_path, f"{side}.png", png + chunk(b"IEND", b""))
        with pytest.raises(InputError, match=said):
            find_page_sources(path)[0].read()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "the file is empty"),
        (b"RIFF....WAVEfmt ", "not a score that can be read"),
        (b"\x00" * 99, "not a score"),
    ],
)
def test_a_file_that_is_not_an_image_is_refused(tmp_path: Path, data: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        find_page_sources(save(tmp_path, "thing.png", data))


def test_a_truncated_image_is_refused(tmp_path: Path) -> None:
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (300, 300), np.uint8)).save(
        tmp_path / "cut.png"
    )
    data = (tmp_path / "cut.png").read_bytes()
    (source,) = find_page_sources(save(tmp_path, "cut.png", data[: len(data) // 2]))
    with pytest.raises(InputError, match="a damaged image"):
        source.read()


def test_missing_files_and_folders_without_images_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.png: cannot be read"):
        find_page_sources(tmp_path / "gone.png")
    with pytest.raises(InputError, match="a folder without images"):
        find_page_sources(tmp_path)
    with pytest.raises(InputError, match="no page was given"):
        find_page_sources([])
    with pytest.raises(InputError, match="dpi is 5, expected 20 to 1200"):
        find_page_sources(tmp_path, dpi=5)


def test_a_damaged_tiff_is_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    pages = [Image.fromarray(rng.integers(0, 255, (200, 200), np.uint8)) for _ in range(3)]
    pages[0].save(tmp_path / "torn.tif", save_all=True, append_images=pages[1:])
    data = (tmp_path / "torn.tif").read_bytes()
    for share in (0.3, 0.5, 0.9):
        path = save(tmp_path, "torn.tif", data[: int(share * len(data))])
        with pytest.raises(InputError, match=r"a damaged image|not a score"):
            [source.read() for source in find_page_sources(path)]


def test_white_notes_on_black_paper_become_black_on_white(tmp_path: Path) -> None:
    negative = np.zeros((40, 60), np.uint8)
    negative[20] = 255
    Image.fromarray(negative).save(tmp_path / "film.png")
    image = ImagePage(tmp_path / "film.png").read()
    assert (image[20] == 0).all()
    assert (image[:20] == 255).all()


def test_hidden_files_of_a_folder_are_left_out(tmp_path: Path) -> None:
    ramp().save(tmp_path / "page-1.png")
    (tmp_path / "._page-1.png").write_bytes(b"resource fork")
    assert [source.filename.name for source in find_page_sources(tmp_path)] == ["page-1.png"]
