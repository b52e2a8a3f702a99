"""Reading the notes of staves with a network that ships.

It leads from staff strips to what is written in each cell, a step of the scale high and a column wide.
`benchmarks/fit_reading_network.py` makes it. A pitch is what three readings have in common: which row has a head,
what the middle line means (the clef), and the alteration of the row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from fusili_mir.arrays import Float32
from fusili_mir.audio.onset_map import LOWEST_PITCH, N_PITCHES
from fusili_mir.errors import FusiliError
from fusili_mir.pages.score_axis import ScoreAxis
from fusili_mir.pages.segments import cut_segment, staff_strips
from fusili_mir.progress import progress_bar
from fusili_mir.scores.pitch_names import STEP_SEMITONES
from fusili_mir.sessions.runs_at_once import map_at_once

if TYPE_CHECKING:  # partitura, which pages need, is slow to import
    from fusili_mir.pages.pages import Pages

__all__ = [
    "ALTERATIONS",
    "COLUMN_PX",
    "LOWEST_MIDDLE",
    "MARGIN_SPACES",
    "N_MIDDLES",
    "N_ROWS",
    "READING_INPUT",
    "READING_OUTPUTS",
    "SPACE_PX",
    "STEP_PX",
    "ReadStaff",
    "ReadStrips",
    "pitches_on_axis",
]

SPACE_PX, MARGIN_SPACES = 8, 6.0
STEP_PX, COLUMN_PX = 4, 4
N_ROWS = 33
"""Number of rows, counted from the top. The middle row is the middle line; a row is one step of the scale."""
LOWEST_MIDDLE, N_MIDDLES = 12, 40
"""What the middle line may mean, in steps above C0: 34 (B4) with a treble clef, 22 (D3) with a bass clef."""
ALTERATIONS = (-2, -1, 0, 1, 2)

READING_INPUT = "strips"
"""Staff strips [shape=(B, 128, width)]; 0 is ink, 1 is paper."""
READING_OUTPUTS = ("heads", "struck", "middles", "alterations")
"""Logits of heads [shape=(B, C, 33)], of those that are struck and not tied to the one before [shape=(B, C, 33)],
of what the middle line means [shape=(B, C, 40)], and of alterations [shape=(B, C, 33, 5)]."""

_STEPS_PER_OCTAVE = 7
_MOST_COLUMNS = 4096  # of all strips that go through the graph at once: some 140 MB
_ROUNDING = 1e-2  # of places on pages, in columns
_LEAST = 1e-3  # probability of a middle line that is worth a look


@dataclass(frozen=True, eq=False)
class ReadStaff:
    """What is read in the cells of some staves, as probabilities.

    Attributes
    ----------
    struck : np.ndarray [shape=(S, C, 33)], float32
        That a head lies in a cell, and its note begins there.
    middles : np.ndarray [shape=(S, C, 40)], float32
        What the middle line means in each column.
    alterations : np.ndarray [shape=(S, C, 33, 5)], float32
        Of a head in each cell.
    """

    struck: Float32
    middles: Float32
    alterations: Float32

    @classmethod
    def from_logits(
        cls, heads: Float32, struck: Float32, middles: Float32, alterations: Float32
    ) -> ReadStaff:
        """Turn the outputs of the graph into probabilities."""
        return cls(_sigmoid(heads) * _sigmoid(struck), _softmax(middles), _softmax(alterations))

    def pitches(self) -> Float32:
        """Return how likely a note of each pitch begins in each column, on any staff [shape=(C, 88)]."""
        by_row = self.struck[..., None] * self.alterations  # (S, C, 33, 5)
        missing = np.ones((by_row.shape[1], N_PITCHES), np.float32)
        for staff, middles in zip(by_row, self.middles, strict=True):
            found = np.zeros_like(missing)
            for middle in np.flatnonzero(middles.max(axis=0) > _LEAST):
                _add_pitches(found, middles[:, middle, None, None] * staff, int(middle) + LOWEST_MIDDLE)
            missing *= 1 - np.minimum(found, 1.0)
        return 1 - missing


def _add_pitches(found: Float32, by_row: Float32, middle: int) -> None:
    """Add to the pitches [shape=(C, 88)] those of rows and alterations [shape=(C, 33, 5)] for one middle line."""
    for row in range(N_ROWS):
        octave, step = divmod(middle + N_ROWS // 2 - row, _STEPS_PER_OCTAVE)
        natural = 12 * (octave + 1) + _SEMITONES[step] - LOWEST_PITCH
        for place, alteration in enumerate(ALTERATIONS):
            if 0 <= natural + alteration < N_PITCHES:
                found[:, natural + alteration] += by_row[:, row, place]


ReadStrips: TypeAlias = Callable[[Float32], list[Float32]]
"""Runs strips through the graph, and returns its outputs."""


def pitches_on_axis(
    read_strips: ReadStrips,
    pages: Pages,
    axis: ScoreAxis,
    n_at_once: int = 1,
    progress: bool = False,
) -> Float32:
    """Read all systems of some pages.

    Parameters
    ----------
    read_strips : callable
        What runs strips through the graph.
    pages : Pages
    axis : ScoreAxis
        Their columns.
    n_at_once : int
        Number of systems that are read at the same time.
    progress : bool
        Whether to show progress on standard error.

    Returns
    -------
    np.ndarray [shape=(len(axis), 88)], float32
        Probability that a note of each pitch of a piano begins in each column.
    """
    pitches = np.zeros((len(axis), N_PITCHES), np.float32)
    columns = axis.columns
    systems = [system for system in pages.systems if (columns["system"] == system["system"]).any()]
    strips = (
        _strips(pages, int(system["system"]))
        for system in progress_bar(systems, "reading notes", shown=progress)
    )
    found = map_at_once(lambda some: _read(read_strips, some).pitches(), strips, n_at_once)
    for system, read in zip(systems, found, strict=True):
        own = np.flatnonzero(columns["system"] == system["system"])
        column_px = COLUMN_PX * float(system["space_px"]) / SPACE_PX  # on the page
        left = columns["x0"][own].astype(np.float64) - float(system["x0"])
        at = np.floor(left / column_px + _ROUNDING).astype(np.int64)
        is_shown = at < len(read)
        pitches[own] = np.maximum.reduceat(read, at.clip(0, len(read) - 1), axis=0) * is_shown[:, None]
    return pitches


def _strips(pages: Pages, system: int) -> Float32:
    """Return the staves of a system as the graph takes them, [shape=(S, 128, width)]."""
    segment = staff_strips(pages.systems, pages.staves, system, SPACE_PX, MARGIN_SPACES)
    image = cut_segment(segment, pages.images) / np.float32(255)
    strips = image.reshape(len(segment.pieces), -1, image.shape[1])
    lacking = -strips.shape[2] % COLUMN_PX
    return np.pad(strips, ((0, 0), (0, 0), (0, lacking)), constant_values=1.0)


def _read(read_strips: ReadStrips, strips: Float32) -> ReadStaff:
    n_at_once = max(1, _MOST_COLUMNS * COLUMN_PX // strips.shape[2])
    parts = [read_strips(strips[first : first + n_at_once]) for first in range(0, len(strips), n_at_once)]
    outputs = [np.concatenate(each) for each in zip(*parts, strict=True)]
    if not all(np.isfinite(output).all() for output in outputs):
        raise FusiliError("the network that reads notes fails on this device; choose cpu")
    return ReadStaff.from_logits(*outputs)


def _sigmoid(logits: Float32) -> Float32:
    return np.asarray(np.exp(-np.logaddexp(0, -logits)), dtype=np.float32)


def _softmax(logits: Float32) -> Float32:
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True), dtype=np.float32)


_SEMITONES = [STEP_SEMITONES[step] for step in "CDEFGAB"]
