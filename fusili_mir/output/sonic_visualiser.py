"""Layers for Sonic Visualiser, as it exports them itself (`.svl`): time instants, and notes.

Times are sample frames of the recording, at its own sampling rate.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from lxml import etree

from fusili_mir.alignment.results import Alignment
from fusili_mir.output.recording_labels import RecordingLabel
from fusili_mir.output.sounding_pitch import sounding_pitch

__all__ = ["save_instants_svl", "save_notes_svl"]

_DEFAULT_RATE_HZ = 44_100  # for a result that does not know its recording
_COLOURS = {"Purple": "#c832ff", "Blue": "#1f49c8"}


def save_instants_svl(
    alignment: Alignment, labels: Iterable[RecordingLabel], name: str, filename: str | Path
) -> None:
    """Write labels as a layer of time instants.

    Parameters
    ----------
    alignment : Alignment
        Alignment that the labels belong to.
    labels : iterable of RecordingLabel
    name : str
        Name of the layer.
    filename : str or Path
    """
    rate_hz = _rate_hz(alignment)
    points = [{"frame": str(round(label.start_sec * rate_hz)), "label": label.text} for label in labels]
    model = {"dimensions": "1"}
    layer = {"type": "timeinstants", "name": name, "plotStyle": "0", "colourName": "Purple"}
    _save(filename, rate_hz, alignment.grid.end_sec, model, points, layer)


def save_notes_svl(alignment: Alignment, filename: str | Path) -> None:
    """Write the notes that were heard as a layer of notes: pitches as MIDI numbers, ids as labels."""
    rate_hz = _rate_hz(alignment)
    heard = alignment.notes[np.isfinite(alignment.notes["onset_sec"])]
    heard = heard[np.argsort(heard["onset_sec"], kind="stable")]
    pitches = sounding_pitch(alignment, heard)
    points = [
        {
            "frame": str(round(float(note["onset_sec"]) * rate_hz)),
            "value": str(int(pitch)),
            "duration": str(round(float(note["offset_sec"] - note["onset_sec"]) * rate_hz)),
            "level": f"{float(note['confidence']):.3f}",
            "label": str(note["id"]),
        }
        for note, pitch in zip(heard, pitches, strict=True)
    ]
    model = {
        "dimensions": "3",
        "subtype": "note",
        "valueQuantization": "0",
        "minimum": str(int(pitches.min(initial=127))),
        "maximum": str(int(pitches.max(initial=0))),
        "units": "MIDI Pitch",
    }
    layer = {"type": "notes", "name": "notes", "verticalScale": "0", "colourName": "Blue"}
    _save(filename, rate_hz, alignment.grid.end_sec, model, points, layer)


def _rate_hz(alignment: Alignment) -> int:
    return _DEFAULT_RATE_HZ if alignment.made_with is None else alignment.made_with.sample_rate_hz


def _save(
    filename: str | Path,
    rate_hz: int,
    end_sec: float,
    model: dict[str, str],
    points: Iterable[dict[str, str]],
    layer: dict[str, str],
) -> None:
    root = etree.Element("sv")
    data = etree.SubElement(root, "data")
    described: dict[str, str] = {
        "id": "1",
        "name": layer["name"],
        "sampleRate": str(rate_hz),
        "start": "0",
        "end": str(round(end_sec * rate_hz)),
        "type": "sparse",
        **model,
        "resolution": "1",
        "notifyOnAdd": "true",
        "dataset": "0",
    }
    etree.SubElement(data, "model", described)
    dataset = etree.SubElement(data, "dataset", {"id": "0", "dimensions": model["dimensions"]})
    for point in points:
        etree.SubElement(dataset, "point", point)
    display = etree.SubElement(root, "display")
    shown: dict[str, str] = {
        "id": "2",
        **layer,
        "model": "1",
        "colour": _COLOURS[layer["colourName"]],
        "darkBackground": "false",
    }
    etree.SubElement(display, "layer", shown)
    content = etree.tostring(
        etree.ElementTree(root),
        encoding="UTF-8",
        xml_declaration=True,
        pretty_print=True,
        doctype="<!DOCTYPE sonic-visualiser>",
    )
    Path(filename).write_bytes(content)  # lxml raises an error of its own if the disk is full
