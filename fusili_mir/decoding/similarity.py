"""Comparing score and recording: cosines between image patches and audio frames.

Inference needs no Sinkhorn iteration: cosines are enough. All embeddings are unit vectors, so a dot product is a
cosine. Matrices are computed block by block, never whole, so memory does not grow with the recording.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from fusili_mir.argument_kinds import checked
from fusili_mir.arrays import Bool, Float32, Int64
from fusili_mir.decoding.course import Course
from fusili_mir.errors import InputError
from fusili_mir.short_repr import short_repr

__all__ = [
    "ChosenFrames",
    "CourseSimilarity",
    "FrameRows",
    "column_similarity",
    "frame_similarity",
    "log_mean_exp",
    "pool_frames",
    "unit_vectors",
]


_POOLED_ROWS = 2**14  # frames that are pooled at once
_BLOCK_CELLS = 2**22  # cells of one product: 16 MB
_HALVED = (2, 4, 8, 16)  # sizes of groups that are faster to halve than to reduce
_BLOCK_STOPS = 4096  # of one product: many frames by some stops are faster than a few frames by all


def unit_vectors(vectors: npt.ArrayLike) -> Float32:
    """Scale vectors [shape=(..., d)] to length 1; a zero vector stays zero."""
    vectors = np.asarray(vectors, dtype=np.float32)
    if vectors.ndim < 2 or not np.isfinite(vectors).all():
        raise InputError(f"embeddings of shape {vectors.shape}; expected finite vectors of shape (..., d)")
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(length, np.finfo(np.float32).tiny), dtype=np.float32)


@checked
def frame_similarity(patches: Float32, frames: Float32) -> Float32:
    """Compare every image patch with every audio frame.

    Parameters
    ----------
    patches : np.ndarray [shape=(N, d)]
        Projected patch embeddings, class token already removed.
    frames : np.ndarray [shape=(M, d)]
        Projected audio-frame embeddings.

    Returns
    -------
    np.ndarray [shape=(N, M)]
        Cosine similarities, the matrix F of the paper, within [-1, 1].

    Examples
    --------
    >>> patches = np.array([[1, 0], [0, 1]], np.float32)
    >>> frames = np.array([[0, 2], [3, 0], [1, 0]], np.float32)  # their lengths do not matter
    >>> frame_similarity(patches, frames).tolist()
    [[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]]
    """
    if patches.ndim != 2 or frames.ndim != 2 or patches.shape[1] != frames.shape[1]:
        raise InputError(
            f"patches {patches.shape} and frames {frames.shape}; expected (N, d) and (M, d) with the same d"
        )
    return np.clip(unit_vectors(patches) @ unit_vectors(frames).T, -1.0, 1.0)


@checked
def column_similarity(embeddings: Float32, mask: Bool, frames: Float32) -> Float32:
    """Compare every column of a score with every audio frame; the best patch of a column counts.

    Parameters
    ----------
    embeddings : np.ndarray [shape=(C, R, d)]
        Embeddings of the R patches of each column.
    mask : np.ndarray [shape=(C, R)]
        Patches that exist; at least one per column.
    frames : np.ndarray [shape=(M, d)]
        Embeddings of the frames.

    Returns
    -------
    np.ndarray [shape=(C, M)]
        Cosine similarities, within [-1, 1].
    """
    if embeddings.ndim != 3 or mask.shape != embeddings.shape[:2]:
        raise InputError(
            f"embeddings of shape {embeddings.shape} with a mask of shape {mask.shape}; expected (C, R, d) and "
            "(C, R)"
        )
    n_columns, n_rows, d = embeddings.shape
    similarity = frame_similarity(embeddings.reshape(-1, d), frames).T.reshape(-1, n_columns, n_rows)
    return _best_patch(similarity, mask).T


def log_mean_exp(nats: Float32, axis: int, scale: float = 1.0) -> Float32:
    """Return the logarithm of the mean of the exponentials of a matrix, times a scale, along an axis."""
    rows = nats if axis == 1 else nats.T
    result = np.empty(len(rows), dtype=np.float32)
    size = max(1, _BLOCK_CELLS // max(1, rows.shape[1]))
    for start in range(0, len(rows), size):
        some = rows[start : start + size] * np.float32(scale)
        top = some.max(axis=1, keepdims=True)
        result[start : start + size] = top[:, 0] + np.log(np.exp(some - top).mean(axis=1))
    return result


class ChosenFrames:
    """Some of the frames of a recording, gathered when they are asked for: a copy would be as large as all.

    Parameters
    ----------
    frames : np.ndarray [shape=(M, d)]
    chosen : np.ndarray of int [shape=(m,)]
        Places of those that count, in order.

    Examples
    --------
    >>> chosen = ChosenFrames(np.array([[1.0], [3.0], [5.0]], np.float32), np.array([0, 2]))
    >>> len(chosen), chosen[1:].tolist()
    (2, [[5.0]])
    """

    def __init__(self, frames: Float32, chosen: Int64) -> None:
        self._frames, self._chosen = frames, chosen

    def __len__(self) -> int:
        return len(self._chosen)

    def __getitem__(self, places: slice | Int64) -> Float32:
        return np.asarray(self._frames[self._chosen[places]])

    def __array__(self, dtype: npt.DTypeLike = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.asarray(self[:], dtype)


@overload
def pool_frames(frames: Float32, factor: int) -> Float32: ...
@overload
def pool_frames(frames: FrameRows, factor: int) -> FrameRows: ...
def pool_frames(frames: FrameRows, factor: int) -> FrameRows:
    """Average groups of `factor` successive frames [shape=(M, d)]; the last group may be smaller.

    The averages are not scaled to length 1: a dot product with one is the mean of the cosines.

    >>> pool_frames(np.array([[1.0], [3.0], [5.0]], np.float32), factor=2).tolist()
    [[2.0], [5.0]]
    """
    if factor == 1 or not len(frames):
        return frames
    means = []
    n_rows = max(1, _POOLED_ROWS // factor) * factor  # whole groups
    for start in range(0, len(frames), n_rows):
        some = frames[start : start + n_rows]
        first = np.arange(0, len(some), factor)
        sums = np.add.reduceat(some, first, axis=0)
        means.append(np.asarray(sums / np.diff(first, append=len(some))[:, None], dtype=np.float32))
    return np.concatenate(means)


FrameRows: TypeAlias = Float32 | ChosenFrames
"""Frames of a recording, or some of them [shape=(M, d)]."""


@short_repr
@dataclass(frozen=True)
class CourseSimilarity:
    """Similarity of the stops of a course and the frames of a recording, computed on demand.

    Attributes
    ----------
    embeddings : np.ndarray [shape=(C, R, d)]
        Unit vectors of the patches of each column.
    mask : np.ndarray [shape=(C, R)]
        Patches that exist.
    frames : np.ndarray or ChosenFrames [shape=(M, d)]
        Unit vectors of the frames, or averages of several; 0 in long silences.
    course : Course
        Course that says which columns each stop looks at; the best one counts.
    """

    embeddings: Float32
    mask: Bool
    frames: FrameRows
    course: Course

    def among(self, frames: Int64) -> CourseSimilarity:
        """Return the similarity of some of the frames, which are all frames of a recording so far."""
        if isinstance(self.frames, ChosenFrames):
            return replace(self, frames=self.frames[frames])
        return replace(self, frames=ChosenFrames(self.frames, frames))

    def block(self, frames: slice, stops: slice) -> Float32:
        """Return the similarity of some frames and stops [shape=(n_frames, n_stops)]."""
        first = self.course.first[stops.start : stops.stop + 1]
        columns = self.course.columns[first[0] : first[-1]]
        similarity = self._columns(columns, self.frames[frames])
        if len(columns) > len(first) - 1:
            similarity = np.maximum.reduceat(similarity, first[:-1] - first[0], axis=1)
        return similarity

    def pooled(self, stop_factor: int) -> Float32:
        """Return the similarity of all frames and groups of `stop_factor` stops [shape=(M, n_groups)]."""
        return self.grouped(np.arange(0, len(self.course), stop_factor))

    def grouped(self, starts: Int64) -> Float32:
        """Return the similarity of all frames and groups of stops that begin with some stops, from 0 on.

        The best stop of a group counts [shape=(M, n_groups)].
        """
        result = np.empty((len(self.frames), len(starts)), dtype=np.float32)
        borders = np.append(starts, len(self.course))
        first = 0
        while first < len(starts):
            end = int(np.searchsorted(borders, borders[first] + _BLOCK_STOPS, side="right")) - 1
            groups = slice(first, max(end, first + 1))
            stops = slice(int(borders[groups.start]), int(borders[groups.stop]))
            within = starts[groups] - stops.start
            for frames in self.frame_blocks(stops.stop - stops.start):
                similarity = self.block(frames, stops)
                if len(within) < similarity.shape[1]:
                    similarity = _best_of_groups(similarity, within)
                result[frames, groups] = similarity
            first = groups.stop
        return result

    def baseline(self, scale: float, n_columns: int = 1024) -> Float32:
        """Return how similar each frame is to columns in general: the log of the mean of ``exp(scale * cosine)``.

        Parameters
        ----------
        scale : float
            The bundle's scale of cosines.
        n_columns : int
            Largest number of columns to sample, evenly spaced.

        Returns
        -------
        np.ndarray [shape=(M,)]
            Baseline of each frame, in nats.
        """
        sample = _evenly_taken(n_columns, len(self.embeddings))
        result = np.zeros(len(self.frames), dtype=np.float32)
        for frames in self.frame_blocks(len(sample)):
            some = self.frames[frames]
            if some.any():  # the baseline of long silences is 0, as they are
                result[frames] = log_mean_exp(scale * self._columns(sample, some), axis=1)
        return result

    def prominence(self, scale: float, frame_baseline: Float32, n_frames: int = 1024) -> Float32:
        """Return how much more similar each stop is to frames in general than columns are.

        Parameters
        ----------
        scale : float
            The bundle's scale of cosines.
        frame_baseline : np.ndarray [shape=(M,)]
            Baseline of each frame, as `baseline` returns it.
        n_frames : int
            Largest number of frames to sample, evenly spaced.

        Returns
        -------
        np.ndarray [shape=(P,)]
            Prominence in nats. Stops far above 0 resemble every frame, those far below 0 resemble none.
        """
        sample = _evenly_taken(n_frames, len(self.frames))
        heard = replace(self, frames=self.frames[sample])
        result = np.empty(len(self.course), dtype=np.float32)
        size = max(16, _BLOCK_CELLS // (len(sample) * self.mask.shape[1]))
        for start in range(0, len(result), size):
            stops = slice(start, min(start + size, len(result)))
            nats = scale * heard.block(slice(0, len(sample)), stops) - frame_baseline[sample, None]
            result[stops] = log_mean_exp(nats, axis=0)
        return result

    def pairs(self, frames: Int64, stops: Int64) -> Float32:
        """Return the similarity of ``frames[i]`` and ``stops[i]`` for every i [shape=(n,)]."""
        result = np.empty(len(frames), dtype=np.float32)
        size = max(16, _BLOCK_CELLS // (self.embeddings.shape[1] * self.embeddings.shape[2]))
        for start in range(0, len(frames), size):
            some = slice(start, start + size)
            n_columns = np.diff(self.course.first)[stops[some]]
            pair = np.repeat(np.arange(len(n_columns)), n_columns)
            begin = np.cumsum(n_columns) - n_columns
            columns = self.course.columns[
                np.repeat(self.course.first[stops[some]] - begin, n_columns) + np.arange(len(pair))
            ]
            # n: pairs and columns, r: patches of a column, d: embedding
            cosines = np.einsum("nrd,nd->nr", self.embeddings[columns], self.frames[frames[some]][pair])
            best = np.where(self.mask[columns], cosines, -1.0).max(axis=1)
            result[some] = np.maximum.reduceat(best, begin)
        return result

    def stop_weights(self) -> Float32:
        """Return how much each stop counts where stops are counted [shape=(P,)].

        An onset counts as 1. A column counts by how much it differs from the previous one: a note head counts as
        one stop, however many columns wide it is, and so does the paper up to the next.
        """
        if not self.course.of_columns:
            return np.ones(len(self.course), dtype=np.float32)
        columns = self.course.columns
        return np.append(np.float32(0), np.maximum(1 - self.likeness(columns[1:], columns[:-1]), 0.0))

    def likeness(self, columns: Int64, others: Int64) -> Float32:
        """Return the mean cosine of the patches of ``columns[i]`` and ``others[i]`` for every i [shape=(n,)]."""
        result = np.empty(len(columns), dtype=np.float32)
        size = max(16, _BLOCK_CELLS // (self.embeddings.shape[1] * self.embeddings.shape[2]))
        for start in range(0, len(columns), size):
            here, there = columns[start : start + size], others[start : start + size]
            # n: columns, r: patches of a column, d: embedding
            cosines = np.einsum("nrd,nrd->nr", self.embeddings[here], self.embeddings[there])
            shown = self.mask[here] & self.mask[there]
            result[start : start + size] = (cosines * shown).sum(axis=1) / np.maximum(shown.sum(axis=1), 1)
        return result

    def frame_blocks(self, n_columns: int) -> Iterator[slice]:
        """Cut the frames into blocks small enough for a product with `n_columns` columns."""
        size = max(16, _BLOCK_CELLS // (n_columns * self.mask.shape[1]))
        for start in range(0, len(self.frames), size):
            yield slice(start, min(start + size, len(self.frames)))

    def _columns(self, columns: Int64, frames: Float32) -> Float32:
        """Return the similarity of some frames and columns [shape=(n_frames, n_columns)]."""
        some = _as_slice(columns)
        patches = self.embeddings[some]  # (n, R, d)
        n_columns, n_rows, d = patches.shape
        similarity = (frames @ patches.reshape(-1, d).T).reshape(-1, n_columns, n_rows)
        return _best_patch(similarity, self.mask[some])


def _as_slice(places: Int64) -> Int64 | slice:
    """Return successive places as a slice, whose rows need no copy; others as they are."""
    if len(places) and np.all(np.diff(places) == 1):
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def _evenly_taken(number: int, n_all: int) -> Int64:
    """Return at most `number` of `n_all` places, evenly spaced."""
    return np.unique(np.linspace(0, n_all - 1, min(number, n_all)).round().astype(np.int64))


def _best_of_groups(values: Float32, first: Int64) -> Float32:
    """Return the maxima of groups of columns that begin with some columns, from 0 on: (M, n) -> (M, n_groups)."""
    size = int(first[1]) if len(first) > 1 else values.shape[1]
    if size not in _HALVED or not np.array_equal(first, np.arange(0, values.shape[1], size)):
        return np.asarray(np.maximum.reduceat(values, first, axis=1))
    while size > 1:
        n_paired = values.shape[1] // 2 * 2
        paired = np.maximum(values[:, :n_paired:2], values[:, 1:n_paired:2])
        values, size = np.concatenate((paired, values[:, n_paired:]), axis=1), size // 2
    return values


def _best_patch(similarity: Float32, mask: Bool) -> Float32:
    """Take the best patch of each column: (M, C, R) and (C, R) -> (M, C)."""
    if mask.shape[1] == 1:
        return similarity[:, :, 0]
    return np.asarray(np.where(mask, similarity, -1.0).max(axis=2), dtype=np.float32)
