from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fusili_mir.errors import InputError
from fusili_mir.pages.page_sources import GivenPage, ImagePage, PdfPage, find_page_sources
from fusili_mir.scores.score_formats import score_format


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
    names = [Path(source.name).name for source in find_page_sources(tmp_path)]
    assert names == ["page-9.png", "page-10.png", "page-100.png"]


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    ramp().save(tmp_path / "secret.png")
    (tmp_path / "book").mkdir()
    ramp().save(tmp_path / "book" / "page-1.png")
    (tmp_path / "book" / "page-2.png").symlink_to(tmp_path / "secret.png")
    assert [Path(source.name).name for source in find_page_sources(tmp_path / "book")] == ["page-1.png"]


def test_files_given_in_a_list_keep_their_order(tmp_path: Path) -> None:
    for name in ("b.png", "a.png"):
        ramp().save(tmp_path / name)
    sources = find_page_sources([tmp_path / "b.png", str(tmp_path / "a.png")])
    assert [Path(source.name).name for source in sources] == ["b.png", "a.png"]


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


def test_a_damaged_page_of_a_pdf_is_named(tmp_path: Path) -> None:
    page = "<</Type/{}/Parent 2 0 R/MediaBox[0 0 99 99]>>"
    data = pdf_of(
        CATALOGUE, "<</Type/Pages/Kids[3 0 R 4 0 R]/Count 2>>", page.format("Page"), page.format("Font")
    )
    whole, damaged = find_page_sources(save(tmp_path, "half.pdf", data))
    assert whole.read().shape == (275, 275)
    with pytest.raises(InputError, match=r"half\.pdf: page 2 of the PDF is damaged; leave it out"):
        damaged.read()


def test_a_damaged_pdf_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the PDF is damaged"):
        find_page_sources(save(tmp_path, "torn.pdf", b"%PDF-1.4 torn"))


def test_a_huge_image_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    import struct
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    for side, said in ((30_000, "30000 x 30000 pixels"), (12_000, "12000 x 12000 pixels")):
        header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
        png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 9))
        path = save(tmp_path, f"{side}.png", png + chunk(b"IEND", b""))
        with pytest.raises(InputError, match=said):
            find_page_sources(path)[0].read()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "the file is empty"),
        (b"RIFF....WAVEfmt ", "a recording, not a score; expected PDF"),
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
    with pytest.raises(InputError, match=r"gone\.png: not found; expected a score image"):
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
    assert [Path(source.name).name for source in find_page_sources(tmp_path)] == ["page-1.png"]


def numbered(n_pages: int) -> list[Image.Image]:
    """Pages of one grey each: 10, 20, 30, ..."""
    return [Image.new("L", (72, 72), 10 * (number + 1)) for number in range(n_pages)]


def greys(*given: object, **options: object) -> list[int]:
    sources = find_page_sources(*given, **options)  # type: ignore[arg-type]
    return [10 * round(float(source.read()[30:40, 30:40].mean()) / 10) for source in sources]


def test_a_range_selects_pages_of_a_pdf_a_tiff_and_a_folder(tmp_path: Path) -> None:
    pages = numbered(5)
    pages[0].save(tmp_path / "scan.pdf", save_all=True, append_images=pages[1:], resolution=72)
    pages = numbered(5)
    pages[0].save(tmp_path / "scan.tif", save_all=True, append_images=pages[1:])
    (tmp_path / "folder").mkdir()
    for number, page in enumerate(numbered(5)):
        page.save(tmp_path / "folder" / f"{number}.png")
    for name in ("scan.pdf", "scan.tif", "folder"):
        assert greys(f"{tmp_path / name}#2-4") == [20, 30, 40]
        assert greys(tmp_path / f"{name}#1,5") == [10, 50]
        assert greys(tmp_path / name, pages="3") == [30]
        with pytest.raises(InputError, match=rf"page 9 does not exist: .*{name} has 5 pages"):
            find_page_sources(tmp_path / f"{name}#2-9")
        with pytest.raises(InputError, match=rf"page 6 does not exist: .*{name} has 5 pages"):
            find_page_sources(tmp_path / name, pages="6")


def test_a_range_over_several_files_counts_all_their_pages(tmp_path: Path) -> None:
    pages = numbered(3)
    pages[0].save(tmp_path / "scan.tif", save_all=True, append_images=pages[1:])
    Image.new("L", (72, 72), 90).save(tmp_path / "last.png")
    both = [tmp_path / "scan.tif#2-3", tmp_path / "last.png"]
    assert greys(both) == [20, 30, 90]
    assert greys(both, pages="2-3") == [30, 90]
    with pytest.raises(InputError, match="page 4 does not exist: the score has 3 pages"):
        find_page_sources(both, pages="4")


def test_images_in_memory_are_pages(tmp_path: Path) -> None:
    array = np.asarray(ramp())
    exif = Image.Exif()
    exif[0x0112] = 6
    ramp().save(tmp_path / "photo.jpg", exif=exif)
    with Image.open(tmp_path / "photo.jpg") as photo:
        sources = find_page_sources([ramp(), array, array / 255, photo, tmp_path / "photo.jpg"])
    assert [source.read().shape for source in sources] == [(40, 60)] * 3 + [(60, 40)] * 2
    for source in sources[:3]:
        assert np.array_equal(source.read(), array)
    assert isinstance(sources[1], GivenPage)
    assert [source.name for source in sources[1:4]] == ["image 2", "image 3", str(tmp_path / "photo.jpg")]
    assert find_page_sources(np.stack([array] * 3, axis=2))[0].read().shape == (40, 60)


def test_an_image_opened_from_a_tiff_has_all_its_pages(tmp_path: Path) -> None:
    pages = numbered(3)
    pages[0].save(tmp_path / "scan.tif", save_all=True, append_images=pages[1:])
    with Image.open(tmp_path / "scan.tif") as scan:
        scan.seek(1)
        assert greys(scan) == [10, 20, 30]


def test_a_huge_image_in_memory_is_refused() -> None:
    with pytest.raises(
        InputError, match="image 1: a page of 9000 x 9000 pixels, expected at most 80 million"
    ):
        find_page_sources(np.broadcast_to(np.uint8(255), (9000, 9000)))


@pytest.mark.parametrize("given", [None, 5, b"page.png", {"page": 1}, object(), [None], [3.5], ["", "a.png"]])
def test_what_is_not_an_image_is_one_line(given: object) -> None:
    with pytest.raises(InputError, match=r"score image 1: |an empty name") as error:
        find_page_sources(given)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_further_pictures_of_a_photograph_and_of_an_animation_are_not_pages(tmp_path: Path) -> None:
    pages = [page.convert("RGB") for page in numbered(2)]
    pages[0].save(tmp_path / "camera.jpg", "MPO", save_all=True, append_images=pages[1:])
    frames = numbered(3)
    frames[0].save(tmp_path / "moving.gif", save_all=True, append_images=frames[1:])
    assert greys(tmp_path / "camera.jpg") == [10]
    assert len(find_page_sources(tmp_path / "moving.gif")) == 1


def test_thumbnails_in_a_tiff_are_not_pages(tmp_path: Path) -> None:
    page, thumbnail = Image.new("L", (72, 72), 10), Image.new("L", (72, 72), 20)
    thumbnail.encoderinfo = {"tiffinfo": {254: 1}}  # a reduced image of the page before it
    page.save(tmp_path / "scan.tif", save_all=True, append_images=[thumbnail])
    with Image.open(tmp_path / "scan.tif") as image:
        image.seek(1)
        assert image.tag_v2[254] == 1  # type: ignore[attr-defined]
    assert greys(tmp_path / "scan.tif") == [10]


def drawn_pdf(content: str, media_box: str, extra: str = "") -> bytes:
    """A PDF of one page that draws, as notation programs write it."""
    return pdf_of(
        CATALOGUE,
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        f"<</Type/Page/Parent 2 0 R/MediaBox[{media_box}]{extra}/Contents 4 0 R/Resources<<>>>>",
        f"<</Length {len(content)}>>stream\n{content}\nendstream",
    )


def test_a_pdf_of_lines_is_drawn(tmp_path: Path) -> None:
    path = save(tmp_path, "drawn.pdf", drawn_pdf("0 g 20 60 80 10 re f", "0 0 200 100"))
    (source,) = find_page_sources(path, dpi=72)
    page = source.read()
    assert page.shape == (100, 200)
    assert (page[32:38, 22:98] == 0).all()  # y counts from the bottom in a PDF
    assert (page[:28] == 255).all()
    assert (page[:, 102:] == 255).all()


@pytest.mark.parametrize(
    ("rotate", "shape", "ink"),
    [(90, (200, 100), (slice(22, 98), slice(62, 68))), (180, (100, 200), (slice(62, 68), slice(102, 178)))],
)
def test_a_pdf_page_is_turned_as_it_says(
    tmp_path: Path, rotate: int, shape: tuple[int, int], ink: tuple[slice, slice]
) -> None:
    content = drawn_pdf("0 g 20 60 80 10 re f", "0 0 200 100", f"/Rotate {rotate}")
    (source,) = find_page_sources(save(tmp_path, "turned.pdf", content), dpi=72)
    page = source.read()
    assert page.shape == shape
    assert (page[ink] == 0).all()
    assert np.asarray(source.original()).shape == (*shape, 3)


def test_a_pdf_page_is_cropped_as_it_says(tmp_path: Path) -> None:
    content = drawn_pdf("0 g 20 60 80 10 re f", "0 0 200 100", "/CropBox[10 50 110 80]")
    (source,) = find_page_sources(save(tmp_path, "cropped.pdf", content), dpi=72)
    assert source.read().shape == (30, 100)


def test_a_name_that_is_too_long_is_one_line() -> None:
    with pytest.raises(InputError, match=r"cannot be read .*; expected a score image"):
        find_page_sources("x" * 5000)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "page.png")
    assert score_format(tmp_path / "page.png") is None
    with pytest.raises(InputError, match=r"page\.png: not a regular file; expected a score image"):
        find_page_sources(tmp_path / "page.png")
