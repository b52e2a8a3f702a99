"""What an alignment was made from and with: files, model, options and versions."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from fusili_mir import __version__
from fusili_mir.alignment.fitted_decoding import is_calibrated
from fusili_mir.audio.recording import Recording
from fusili_mir.boundary import file_name
from fusili_mir.model.bundle import Bundle
from fusili_mir.pages.original_pages import page_origin
from fusili_mir.pages.pages import Pages

__all__ = ["FileOrigin", "ModelOrigin", "Provenance", "find_provenance"]

_PACKAGES = ("partitura", "verovio", "onnxruntime", "onnxruntime-gpu", "numpy")
_BLOCK_BYTES = 2**20


@dataclass(frozen=True)
class FileOrigin:
    """A file, by its name without folders and its content.

    Attributes
    ----------
    name : str
    sha256 : str or None
        Checksum of the file; None for what was given in memory or read from a stream.
    """

    name: str
    sha256: str | None


@dataclass(frozen=True)
class ModelOrigin:
    """The bundle that encoded score and recording.

    Attributes
    ----------
    name, made_by, precision, licence : str
        As in the manifest.
    image_sha256, audio_sha256 : str
        Checksums of the two graphs.
    is_calibrated : bool
        Whether probabilities and intervals were fitted for it.
    """

    name: str
    made_by: str
    precision: str
    licence: str
    image_sha256: str
    audio_sha256: str
    is_calibrated: bool


@dataclass(frozen=True)
class Provenance:
    """What an alignment was made from and with.

    Attributes
    ----------
    score : tuple of FileOrigin
        File of a symbolic score, or files of its page images in reading order.
    recording : FileOrigin
    sample_rate_hz : int
        Sampling rate of the recording.
    model : ModelOrigin
    options : dict
        Options of the alignment.
    versions : dict
        Package -> version; also of Python.
    """

    score: tuple[FileOrigin, ...]
    recording: FileOrigin
    sample_rate_hz: int
    model: ModelOrigin
    options: dict[str, Any]
    versions: dict[str, str]


def find_provenance(pages: Pages, recording: Recording, bundle: Bundle) -> Provenance:
    """Collect what an alignment is made from and with; of its options, only the excerpt is known here.

    Parameters
    ----------
    pages : Pages
    recording : Recording
        The opened recording.
    bundle : Bundle

    Returns
    -------
    Provenance
    """
    excerpt = {
        name: getattr(recording, name) for name in ("start_sec", "end_sec") if hasattr(recording, name)
    }
    whole = getattr(recording, "recording", recording) if excerpt else recording
    manifest = bundle.manifest
    return Provenance(
        score=tuple(_score_files(pages)),
        recording=_file(recording.name, getattr(whole, "filename", None)),
        sample_rate_hz=recording.sample_rate_hz,
        model=ModelOrigin(
            manifest.name,
            manifest.made_by,
            manifest.precision,
            manifest.licence,
            manifest.image.sha256,
            manifest.audio.sha256,
            is_calibrated(bundle),
        ),
        options=excerpt,
        versions=_versions(),
    )


def _score_files(pages: Pages) -> Iterable[FileOrigin]:
    if pages.score is not None:
        return [_file(pages.filename, pages.filename)]
    files = [page_origin(pages, page).filename for page in range(len(pages.images))]
    known = dict.fromkeys(file for file in files if file is not None)
    return [_file(str(file), file) for file in known] or [_file(pages.filename, None)]


def _file(name: str, filename: str | Path | None) -> FileOrigin:
    try:
        sha256 = None if filename is None else _sha256(Path(filename))
    except (OSError, ValueError):  # gone meanwhile, or never a file
        sha256 = None
    return FileOrigin(file_name(name), sha256)


def _sha256(filename: Path) -> str:
    digest = hashlib.sha256()
    with filename.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version(), "fusili-mir": __version__}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions
