"""Similarity matrices of any other system, read from .npy files.

A file holds one matrix [shape=(N, M)], patches by frames, and is named after its pair: ``KEY.npy`` for local
alignment, ``IMAGE_KEY@AUDIO_KEY.npy`` for every two segments of a piece in point-and-retrieve. A stack of
cross-attentions [shape=(layers, heads, N, M)] is averaged over decoder layers 7 to 9 and all heads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from fusili_mir.arrays import Float32, Float64
from fusili_mir.boundary import reason
from fusili_mir.errors import InputError, option

__all__ = ["ATTENTION_LAYERS", "MatrixFiles", "average_attention", "parse_grid", "read_matrix"]

ATTENTION_LAYERS = (7, 8, 9)
"""Decoder layers that the paper averages, counted from 1."""


class MatrixFiles:
    """Matrices by name, each read when it is needed.

    Parameters
    ----------
    paths : iterable of Path
        Files, or folders of files.
    n_patches : int
        Number of patches N, the same in every matrix.
    """

    def __init__(self, paths: Iterable[Path], n_patches: int) -> None:
        self._n_patches = n_patches
        self._files: dict[str, Path] = {}
        for path in paths:
            files = sorted(path.glob("*.npy")) if path.is_dir() else [path]
            if path.is_dir() and not files:
                raise InputError(f"{path}: no .npy files in it; expected matrices named after pairs")
            for file in files:
                if file.suffix != ".npy" or not file.is_file():
                    found = "not a .npy file" if file.exists() else "not found"
                    raise InputError(f"{file}: {found}; expected a matrix of patches by frames")
                self._files[file.stem] = file

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def __len__(self) -> int:
        return len(self._files)

    def read(self, name: str) -> Float32:
        """Return a matrix [shape=(N, M)]."""
        matrix = read_matrix(self._files[name])
        if len(matrix) != self._n_patches:
            raise InputError(
                f"{self._files[name]}: {matrix.shape[0]} patches by {matrix.shape[1]} frames; the grid has "
                f"{self._n_patches} patches, row by row ({option('--grid', 'grid')})"
            )
        return matrix


def read_matrix(filename: Path) -> Float32:
    """Read a matrix; a stack of cross-attentions is averaged.

    Parameters
    ----------
    filename : Path
        An array [shape=(N, M)] or [shape=(layers, heads, N, M)].

    Returns
    -------
    np.ndarray [shape=(N, M)]
    """
    try:
        array = np.load(filename, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(
            f"{filename}: cannot be read ({reason(error)}); expected a .npy file of numbers"
        ) from error
    if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        raise InputError(f"{filename}: an array of {array.dtype}, not all finite; expected finite numbers")
    try:
        matrix = average_attention(array.astype(np.float64)) if array.ndim == 4 else array
        if matrix.ndim != 2 or 0 in matrix.shape:
            raise InputError(
                f"shape {array.shape}; expected (patches, frames) or (layers, heads, patches, frames)"
            )
    except InputError as error:
        raise InputError(f"{filename}: {error}") from error
    return np.asarray(matrix, dtype=np.float32)


def average_attention(attention: Float64, layers: tuple[int, ...] = ATTENTION_LAYERS) -> Float64:
    """Average cross-attentions over some layers and all heads.

    Parameters
    ----------
    attention : np.ndarray [shape=(layers, heads, N, M)]
        Cross-attentions of all decoder layers, or of exactly those wanted.
    layers : tuple of int
        The layers wanted, counted from 1.

    Returns
    -------
    np.ndarray [shape=(N, M)]
    """
    if len(attention) != len(layers):
        if len(attention) < max(layers):
            raise InputError(
                f"{len(attention)} layers; expected {len(layers)}, or all of at least {max(layers)}"
            )
        attention = attention[np.array(layers) - 1]
    return np.asarray(attention.mean(axis=(0, 1)))


def parse_grid(text: str) -> tuple[int, int]:
    """Return the numbers of rows and columns in ROWSxCOLS."""
    match = re.fullmatch(r"(\d+)x(\d+)", text)
    if match is None or not int(match[1]) or not int(match[2]):
        raise InputError(f"a grid of {text!r}; expected ROWSxCOLS such as 7x7")
    return int(match[1]), int(match[2])
