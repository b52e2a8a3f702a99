"""What has happened to files since they were indexed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from fusili_mir.boundary import check_regular
from fusili_mir.collection.index_files import IndexedPiece
from fusili_mir.errors import InputError

__all__ = ["FileState", "file_state", "is_gone", "piece_id", "sha256_of"]

_BLOCK_BYTES = 2**20


@dataclass(frozen=True)
class FileState:
    """Size and time of change of a file."""

    path: Path
    size: int
    mtime_ns: int

    def is_as_indexed(self, piece: IndexedPiece) -> bool:
        """Return whether a file has not changed; it is read only if its time of change is another."""
        if self.size != piece.size:
            return False
        return self.mtime_ns == piece.mtime_ns or sha256_of(self.path) == piece.sha256


def file_state(path: Path) -> FileState:
    """Look at a file without reading it."""
    check_regular(path, "expected a score or a recording")
    try:
        status = path.stat()
        str(path).encode()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeEncodeError as error:
        raise InputError(f"{path}: its name is not valid Unicode, which an index needs; rename it") from error
    return FileState(path, status.st_size, status.st_mtime_ns)


def is_gone(path: Path) -> bool:
    """Return whether there is nothing under a name; what is only locked is not gone."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def piece_id(path: Path) -> str:
    """Return the name that a piece has in an index."""
    return hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:24]


def sha256_of(path: Path) -> str:
    """Return a checksum of the content of a file."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                digest.update(block)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    return digest.hexdigest()
