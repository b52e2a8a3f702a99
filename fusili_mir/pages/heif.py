"""Photographs in HEIF (.heic), as phones take them: Pillow opens them with a package of the extra photos."""

from __future__ import annotations

from pathlib import Path

from fusili_mir.errors import MissingExtraError

__all__ = ["HEIF_SUFFIXES", "is_heif", "prepare_heif"]

HEIF_SUFFIXES = (".heic", ".heif", ".hif")

_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")


def is_heif(filename: Path) -> bool:
    """Return whether a file is a photograph in HEIF. AVIF, its sibling, is none: Pillow itself opens that."""
    with filename.open("rb") as file:
        start = file.read(64)
    return start[4:8] == b"ftyp" and start[8:12] in _BRANDS and b"avif" not in start


def prepare_heif(filename: Path) -> None:
    """Let Pillow open photographs in HEIF.

    Raises
    ------
    MissingExtraError
        If the package for that is not installed.
    """
    try:
        import pi_heif
    except ImportError as error:
        raise MissingExtraError(
            f"{filename}: a HEIC photograph, which needs the extra photos: pip install 'fusili-mir[photos]'; or "
            "save it as JPEG"
        ) from error
    pi_heif.register_heif_opener(thumbnails=False)
