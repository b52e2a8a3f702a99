"""Labels for stretches of a recording: measures where they are known, systems otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fusili_mir.alignment.results import Alignment

__all__ = ["RecordingLabel", "recording_labels"]


@dataclass(frozen=True)
class RecordingLabel:
    """A stretch of a recording, and what is played in it."""

    start_sec: float
    end_sec: float
    text: str


def recording_labels(alignment: Alignment) -> list[RecordingLabel]:
    """Label the measures of a recording or, where only systems are known, its systems."""
    return list(_measures(alignment) if len(alignment.measures) else _systems(alignment))


def _measures(alignment: Alignment) -> Iterator[RecordingLabel]:
    for measure in alignment.measures[np.isfinite(alignment.measures["start_sec"])]:
        span = float(measure["start_sec"]), float(measure["end_sec"])
        yield RecordingLabel(*span, f"measure {measure['number']}")


def _systems(alignment: Alignment) -> Iterator[RecordingLabel]:
    """Yield a label for each stretch of frames in one system in which music is heard."""
    frames = alignment.frames[~alignment.path.is_filler]
    if not len(frames):
        return
    names = alignment.axis.system_names()
    starts = np.concatenate(([0], np.flatnonzero(np.diff(frames["system"])) + 1))
    for first, stop in zip(starts, [*starts[1:], len(frames)], strict=True):
        start_sec, end_sec = frames["onset_sec"][first], frames["onset_sec"][stop - 1]
        end_sec = alignment.grid.within(end_sec + alignment.grid.frame_sec)
        yield RecordingLabel(float(start_sec), float(end_sec), names[int(frames["system"][first])])
