"""Reading untrusted XML: plain, or compressed as MXL; without entities, without network, up to a size limit."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path, PurePosixPath

from lxml import etree

from fusili_mir.boundary import printable, read_limited, reading
from fusili_mir.errors import InputError
from fusili_mir.limits import check_limit, limit
from fusili_mir.scores.score_formats import SCORE_FORMATS

__all__ = ["parse_xml", "read_bytes", "read_mxl"]

_SMALL_BYTES = 10**6  # whatever its ratio, a member of this size harms nobody
_CONTAINER = "META-INF/container.xml"
_ID_ERRORS = {
    "DTD_ID_REDEFINED",
    "DTD_XMLID_VALUE",
}  # duplicate or malformed xml:ids: they are replaced


def read_bytes(filename: str | Path) -> bytes:
    """Return the content of a score, if it is neither empty nor too large."""
    data = read_limited(Path(filename), "score_bytes", f"expected {SCORE_FORMATS}")
    if not data.strip():
        raise InputError(f"{filename}: the file is empty; expected {SCORE_FORMATS}")
    return data


def read_mxl(data: bytes, filename: str) -> bytes:
    """Return the score inside an MXL archive; the archive's container file names it."""
    with (
        reading(filename, "export the score again", "a damaged or encrypted MXL archive"),
        zipfile.ZipFile(io.BytesIO(data)) as archive,
    ):
        names = archive.namelist()
        check_limit("zip_members", len(names), filename)
        if _CONTAINER in names:
            container = parse_xml(_read_member(archive, _CONTAINER, filename), filename)
            rootfile = next(container.iter("{*}rootfile"), None)
            name = rootfile.get("full-path", "") if rootfile is not None else ""
        else:
            scores = [n for n in names if "/" not in n and n.endswith((".xml", ".musicxml", ".mei"))]
            name = scores[0] if scores else ""
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name:
            raise InputError(f"{filename}: its container points outside the archive ({name!r}); refused")
        if name not in names:
            raise InputError(f"{filename}: a zip archive without a score inside; expected an MXL file")
        return _read_member(archive, name, filename)


def _read_member(archive: zipfile.ZipFile, name: str, filename: str) -> bytes:
    """Read one member of an archive up to the size limit, whatever size its header claims."""
    where = f"{filename}: {printable(name)}"
    info = archive.getinfo(name)
    check_limit("score_bytes", info.file_size, where)
    if info.file_size > _SMALL_BYTES:
        check_limit("zip_ratio", info.file_size / max(1, info.compress_size), where)
    most = int(limit("score_bytes"))
    with archive.open(name) as member:
        data = member.read(most + 1)
    check_limit("score_bytes", len(data), where)
    return data


def parse_xml(data: bytes, filename: str) -> etree._Element:
    """Parse untrusted XML: no entities, no network, no DTD."""
    parser = _parser(recover=False)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        if not {entry.type_name for entry in parser.error_log} <= _ID_ERRORS:
            raise InputError(
                f"{filename}: damaged XML ({' '.join(error.msg.split())}); export the score again"
            ) from error
        root = etree.fromstring(data, _parser(recover=True))
    document_type = root.getroottree().docinfo.internalDTD
    if document_type is not None and document_type.entities():
        raise InputError(f"{filename}: declares XML entities, which no score needs; refused")
    return root


def _parser(recover: bool) -> etree.XMLParser[etree._Element]:
    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        recover=recover,
    )
