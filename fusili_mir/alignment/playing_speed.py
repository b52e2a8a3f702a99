"""Aligning a recording at the speed at which it was read.

A recording that is read at another pitch is read faster or slower, too. It is decoded at that speed, at which its
frames are as long as those of other recordings, and which is the true one if a machine ran too fast or too slow.
Then all times go back to the recording's own seconds.
"""

from __future__ import annotations

from dataclasses import replace

from fusili_mir.alignment.intervals import INTERVAL_NAMES
from fusili_mir.alignment.results import Alignment
from fusili_mir.arrays import Float64, Table
from fusili_mir.geometry import FrameGrid
from fusili_mir.model.encoded import EncodedAudio

__all__ = ["audio_at_speed", "result_at_own_speed"]


def audio_at_speed(audio: EncodedAudio, frame_sec: float) -> EncodedAudio:
    """Play an encoded recording faster or slower, so that its frames last `frame_sec`."""
    factor = frame_sec / audio.grid.frame_sec
    if factor == 1.0:
        return audio
    return replace(
        audio,
        grid=_scaled(audio.grid, factor),
        onsets=replace(audio.onsets, step_sec=audio.onsets.step_sec * factor),
        envelope=replace(audio.envelope, step_sec=audio.envelope.step_sec * factor),
    )


def result_at_own_speed(alignment: Alignment, grid: FrameGrid) -> Alignment:
    """Return the times of a result to the recording's own seconds, in which its frames are those of `grid`."""
    start_sec = grid.audio_start_sec
    factor = grid.frame_sec / alignment.grid.frame_sec
    if factor == 1.0:
        return alignment

    def own(seconds: Float64) -> Float64:
        return grid.within(start_sec + (seconds - start_sec) * factor)

    def scaled(table: Table, names: tuple[str, ...]) -> Table:
        table = table.copy()
        for name in names:
            table[name] = own(table[name])
        return table

    moments = alignment.moments
    return replace(
        alignment,
        grid=grid,
        frames=scaled(alignment.frames, ("onset_sec", *INTERVAL_NAMES)),
        notes=scaled(alignment.notes, ("onset_sec", "offset_sec", *INTERVAL_NAMES)),
        measures=scaled(alignment.measures, ("start_sec", "end_sec", *INTERVAL_NAMES)),
        moments=None
        if moments is None
        else replace(moments, seconds=own(moments.seconds), margin_sec=factor * moments.margin_sec),
    )


def _scaled(grid: FrameGrid, factor: float) -> FrameGrid:
    """Stretch a grid around the start of its audio."""
    return replace(
        grid,
        frame_sec=grid.frame_sec * factor,
        start_sec=grid.audio_start_sec + (grid.start_sec - grid.audio_start_sec) * factor,
        audio_sec=None if grid.audio_sec is None else grid.audio_sec * factor,
    )
