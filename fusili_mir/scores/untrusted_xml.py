"""Reading untrusted XML: plain, or compressed as MXL; without entities, without network, up to a size limit."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path, PurePosixPath

from lxml import etree

from fusili_mir.errors import InputError
from fusili_mir.scores.score_formats import DAMAGED_ARCHIVE, SCORE_FORMATS

__all__ = ["MAX_SCORE_BYTES", "parse_xml", "read_bytes", "read_mxl"]

MAX_SCORE_BYTES = 64 * 2**20
"""Size limit of a score, uncompressed. The longest operas in MusicXML stay below it."""

_CONTAINER = "META-INF/container.xml"
_ID_ERRORS = {
    "DTD_ID_REDEFINED",
    "DTD_XMLID_VALUE",
}  # duplicate or malformed xml:ids: they are replaced


def read_bytes(filename: str | Path) -> bytes:
    """Return the content of a score, if it is neither empty nor too large."""
    try:
        with Path(filename).open("rb") as file:
            data = file.read(MAX_SCORE_BYTES + 1)
    except OSError as error:
        raise InputError(f"{filename}: cannot be read ({error.strerror})") from error
    if not data.strip():
        raise InputError(f"{filename}: the file is empty, expected {SCORE_FORMATS}")
    if len(data) > MAX_SCORE_BYTES:
        raise InputError(f"{filename}: more than {MAX_SCORE_BYTES >> 20} MB, expected a smaller score")
    return data


def read_mxl(data: bytes, filename: str) -> bytes:
    """Return the score inside an MXL archive; the archive's container file names it."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
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
                raise InputError(f"{filename}: a zip archive without a score inside, expected an MXL file")
            return _read_member(archive, name, filename)
    except InputError:
        raise
    except DAMAGED_ARCHIVE as error:
        raise InputError(f"{filename}: a damaged or encrypted MXL archive ({error})") from error


def _read_member(archive: zipfile.ZipFile, name: str, filename: str) -> bytes:
    """Read one member of an archive up to the size limit, whatever size its header claims."""
    with archive.open(name) as member:
        data = member.read(MAX_SCORE_BYTES + 1)
    if len(data) > MAX_SCORE_BYTES:
        raise InputError(f"{filename}: {name} unpacks to more than {MAX_SCORE_BYTES >> 20} MB; refused")
    return data


def parse_xml(data: bytes, filename: str) -> etree._Element:
    """Parse untrusted XML: no entities, no network, no DTD."""
    parser = _parser(recover=False)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        if not {entry.type_name for entry in parser.error_log} <= _ID_ERRORS:
            raise InputError(
                f"{filename}: not well-formed XML, expected {SCORE_FORMATS} ({' '.join(error.msg.split())})"
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
