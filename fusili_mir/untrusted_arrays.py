"""Reading arrays from files of strangers: no objects, no compression, nothing larger than the file itself.

`np.savez` stores arrays as they are. A member that is compressed, or that declares more than it holds, is none of
ours, and is refused before anything is allocated for it.
"""

from __future__ import annotations

import io
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fusili_mir.boundary import check_regular, reason
from fusili_mir.errors import InputError

__all__ = ["read_array", "read_arrays"]


def read_arrays(filename: Path) -> dict[str, npt.NDArray[Any]]:
    """Read what `np.savez` has written.

    Parameters
    ----------
    filename : Path

    Returns
    -------
    dict from str to np.ndarray

    Raises
    ------
    InputError
        With what is wrong, in a few words: the caller says which file it is and what to do.
    """
    try:
        check_regular(filename, "expected arrays")
        with zipfile.ZipFile(filename) as archive:
            return {
                member.filename.removesuffix(".npy"): _read(archive, member) for member in archive.infolist()
            }
    except InputError:
        raise
    except Exception as error:  # zipfile, zlib and numpy have no base in common for damaged files
        raise InputError(f"no arrays ({reason(error)})") from error


def read_array(content: bytes, name: str, expected: str) -> npt.NDArray[Any]:
    """Read what `np.save` has written; messages name it, and end with what was expected."""
    try:
        return _parse(content, name)
    except Exception as error:  # numpy raises whatever a damaged header makes it trip over
        raise InputError(f"{name} is not an array; {expected}") from error


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> npt.NDArray[Any]:
    if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size:
        raise InputError(f"{member.filename[:40]!r} is compressed")
    return _parse(archive.read(member), member.filename[:40])


def _parse(content: bytes, name: str) -> npt.NDArray[Any]:
    stream = io.BytesIO(content)
    headers: Any = np.lib.format  # has no types
    version = headers.read_magic(stream)
    read_header = {(1, 0): headers.read_array_header_1_0, (2, 0): headers.read_array_header_2_0}[version]
    shape, _, dtype = read_header(stream)
    held = len(content) - stream.tell()
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != held:
        raise InputError(f"{name!r} declares {shape} of {dtype}, and holds {held} bytes")
    stream.seek(0)
    array: npt.NDArray[Any] = np.load(stream, allow_pickle=False)
    return array
