"""What a viewer page knows about a result: pages, places and times as values that JSON can represent.

The page is a program of its own, so everything it needs is worked out here in the terms in which it draws:
pixels of the user's own pages and seconds of the recording. `page/result.js` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fusili_mir.alignment.results import Alignment
from fusili_mir.arrays import Bool, Table
from fusili_mir.boundary import file_name
from fusili_mir.pages.original_pages import original_size_px
from fusili_mir.pages.original_pixels import box_corners_in_original, places_to_original
from fusili_mir.viewer.embedded import Embedded
from fusili_mir.viewer.listening_copy import ListeningCopy, listening_copy
from fusili_mir.viewer.page_pictures import page_picture

__all__ = ["VIEW_FORMAT", "ViewedResult", "result_tables", "view_result"]

VIEW_FORMAT = 1
"""Version of the data inside a page; raised whenever an older page could not show it."""

_BOX = ("x0", "y0", "x1", "y1")


@dataclass(frozen=True)
class ViewedResult:
    """A result for a page.

    Attributes
    ----------
    data : dict
        Tables, names and sizes. Pictures and sounds are named by their keys.
    pictures : tuple of Embedded
        The pages.
    sound : Embedded, optional
        The recording, if it is known.
    """

    data: dict[str, Any]
    pictures: tuple[Embedded, ...]
    sound: Embedded | None


def view_result(alignment: Alignment) -> ViewedResult:
    """Collect what a page shows of a result.

    Parameters
    ----------
    alignment : Alignment

    Returns
    -------
    ViewedResult
    """
    pages = alignment.pages
    pictures = tuple(page_picture(pages, page) for page in range(len(pages.images)))
    copy = None if alignment.recording is None else listening_copy(alignment.recording)
    data = {
        "format": VIEW_FORMAT,
        "title": _title(alignment),
        "score": file_name(pages.filename),
        "recording": _recording(alignment, copy),
        "pages": [_page(alignment, page, picture) for page, picture in enumerate(pictures)],
        "systems": _systems(alignment),
        "anchors": [anchor.to_json() for anchor in alignment.anchors],
        **result_tables(alignment),
    }
    return ViewedResult(data, pictures, None if copy is None else copy.sound)


def result_tables(alignment: Alignment) -> dict[str, Any]:
    """Return the part of the data of a result that changes when it is corrected."""
    return {
        "reliability": round(alignment.reliability, 3),
        "isReliable": bool(alignment.is_reliable),
        "measures": _measures(alignment),
        "notes": _notes(alignment),
        "places": _places(alignment),
        "frames": _frames(alignment),
        "elsewhere": _spans(alignment, alignment.path.is_filler),
    }


def _title(alignment: Alignment) -> str:
    """Return the title and composer of a score, or the name of its file."""
    score = alignment.pages.score
    names = [getattr(score, name, None) for name in ("movement_title", "work_title", "title")]
    title = next((str(name) for name in names if name), None)
    composer = getattr(score, "composer", None)
    if title is None:
        return Path(alignment.pages.filename).stem
    return f"{composer}: {title}" if composer else title


def _recording(alignment: Alignment, copy: ListeningCopy | None) -> dict[str, Any]:
    made_with = alignment.made_with
    name = "recording" if made_with is None else made_with.recording.name
    grid = alignment.grid
    if copy is None:
        start_sec, duration_sec = grid.audio_start_sec, grid.end_sec - grid.audio_start_sec
        return {"name": name, "sound": None, "peaks": "", **_stretch(start_sec, duration_sec)}
    sound = {"key": copy.sound.key, "type": copy.sound.media_type}
    return {
        "name": name,
        "sound": sound,
        "peaks": copy.peaks,
        **_stretch(copy.start_sec, copy.duration_sec),
    }


def _stretch(start_sec: float, duration_sec: float) -> dict[str, float]:
    return {"startSec": round(start_sec, 6), "durationSec": round(duration_sec, 6)}


def _page(alignment: Alignment, page: int, picture: Embedded) -> dict[str, Any]:
    width_px, height_px = original_size_px(alignment.pages, page)
    return {"width": width_px, "height": height_px, "picture": picture.key, "type": picture.media_type}


def _systems(alignment: Alignment) -> list[dict[str, Any]]:
    """Return the systems; corners run from the top left one clockwise, and follow the tilt of the page."""
    systems = alignment.pages.systems
    corners = box_corners_in_original(alignment.pages.skews, systems)
    return [
        {
            "page": int(system["page"]),
            "corners": np.round(at, 1).tolist(),
            "space": round(float(system["space_px"]), 2),
        }
        for system, at in zip(systems, corners, strict=True)
    ]


def _measures(alignment: Alignment) -> dict[str, list[Any]]:
    """Return the measures that were heard, in playing order, with the number of times each has been played."""
    heard = alignment.measures[np.isfinite(alignment.measures["start_sec"])]
    times_played: dict[int, int] = {}
    passes = []
    for row in alignment.measures:
        times_played[int(row["measure"])] = times_played.get(int(row["measure"]), 0) + 1
        if np.isfinite(row["start_sec"]):
            passes.append(times_played[int(row["measure"])])
    return {
        "number": [str(number) for number in heard["number"]],
        "pass": passes,
        "system": heard["system"].tolist(),
        "page": heard["page"].tolist(),
        "box": _boxes(heard),
        "beat": _rounded(heard["start_beat"], 4),
        "endBeat": _rounded(heard["end_beat"], 4),
        "start": _rounded(heard["start_sec"], 4),
        "end": _rounded(heard["end_sec"], 4),
        "confidence": _rounded(heard["confidence"], 3),
    }


def _notes(alignment: Alignment) -> dict[str, list[Any]]:
    """Return the notes that were heard and are printed, by onset."""
    notes = alignment.notes
    notes = notes[np.isfinite(notes["onset_sec"]) & (notes["page"] >= 0)]
    notes = notes[np.argsort(notes["onset_sec"], kind="stable")]
    return {
        "id": [str(note_id) for note_id in notes["id"]],
        "system": notes["system"].tolist(),
        "page": notes["page"].tolist(),
        "box": _boxes(notes),
        "beat": _rounded(notes["onset_beat"], 4),
        "start": _rounded(notes["onset_sec"], 4),
        "end": _rounded(notes["offset_sec"], 4),
        "confidence": _rounded(notes["confidence"], 3),
    }


def _places(alignment: Alignment) -> dict[str, list[Any]]:
    """Return the places that begin to sound, if only images are known: the ends of each across its system."""
    moments = alignment.moments
    if moments is None:
        return {"system": [], "ends": [], "start": []}
    heard = np.isfinite(moments.seconds)
    system = moments.system[heard]
    boxes = alignment.pages.systems[system]
    middle = (boxes["y0"] + boxes["y1"]) / 2
    skews = alignment.pages.skews
    left = np.stack(places_to_original(skews, boxes["page"], moments.x0[heard], middle), axis=1)
    right = np.stack(places_to_original(skews, boxes["page"], moments.x1[heard], middle), axis=1)
    return {
        "system": system.tolist(),
        "ends": np.round(np.concatenate((left, right), axis=1), 1).tolist(),
        "start": _rounded(moments.seconds[heard], 4),
    }


def _frames(alignment: Alignment) -> dict[str, Any]:
    frames, grid = alignment.frames, alignment.grid
    return {
        "start": round(grid.start_sec, 6),
        "step": grid.frame_sec,
        "system": frames["system"].tolist(),
        "x": _rounded(frames["x"], 1),
        "y": _rounded(frames["y"], 1),
        "confidence": _rounded(frames["confidence"], 2),
    }


def _spans(alignment: Alignment, inside: Bool) -> list[list[float]]:
    """Return from when to when frames are marked, in seconds."""
    grid = alignment.grid
    edges = np.flatnonzero(np.diff(inside.astype(np.int8), prepend=0, append=0))
    seconds = grid.within(grid.start_sec + edges * grid.frame_sec).round(3)
    return [[float(start), float(end)] for start, end in seconds.reshape(-1, 2)]


def _boxes(table: Table) -> list[list[float]]:
    return [_rounded(box, 1) for box in np.stack([table[name] for name in _BOX], axis=-1)]


def _rounded(values: npt.ArrayLike, decimals: int) -> list[Any]:
    """Round numbers; None where they are not known."""
    rounded = np.asarray(values, np.float64).round(decimals)
    return [value if np.isfinite(value) else None for value in rounded.tolist()]
