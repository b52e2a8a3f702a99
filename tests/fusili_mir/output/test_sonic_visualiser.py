"""Layers have what the reader of Sonic Visualiser asks for: a model, its dataset, and a layer of the model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from lxml import etree

from fusili_mir.alignment.results import Alignment
from fusili_mir.output.label_files import save_sonic_visualiser
from fusili_mir.output.recording_labels import recording_labels


def read_layer(file: Path) -> tuple[etree._Element, list[dict[str, str]], etree._Element]:
    """The model, its points and the layer that shows it."""
    tree = etree.parse(file)
    assert file.read_text().splitlines()[1] == "<!DOCTYPE sonic-visualiser>"
    model, dataset, layer = (next(tree.getroot().iter(tag)) for tag in ("model", "dataset", "layer"))
    assert layer.get("model") == model.get("id")
    assert model.get("dataset") == dataset.get("id")
    assert model.get("dimensions") == dataset.get("dimensions")
    assert model.get("type") == "sparse"
    assert int(model.get("resolution", "")) == 1
    return model, [dict(point.attrib) for point in dataset], layer


def test_measures_are_time_instants_in_frames_of_the_recording(repeated: Alignment, tmp_path: Path) -> None:
    save_sonic_visualiser(repeated, tmp_path)
    model, points, layer = read_layer(tmp_path / "measures.svl")
    assert (layer.get("type"), model.get("dimensions")) == ("timeinstants", "1")
    assert model.get("sampleRate") == "16000"
    assert [point["label"] for point in points] == [f"measure {number}" for number in (0, 1, 2, 1, 3)]
    seconds = [int(point["frame"]) / 16_000 for point in points]
    assert seconds == pytest.approx(repeated.measures["start_sec"].tolist(), abs=1e-4)
    assert int(model.get("end", "")) == pytest.approx(repeated.grid.end_sec * 16_000, abs=1)


def test_notes_are_a_note_layer(cut_short: Alignment, tmp_path: Path) -> None:
    save_sonic_visualiser(cut_short, tmp_path)
    model, points, layer = read_layer(tmp_path / "notes.svl")
    assert (layer.get("type"), model.get("dimensions"), model.get("subtype")) == ("notes", "3", "note")
    heard = cut_short.notes[np.isfinite(cut_short.notes["onset_sec"])]
    assert [int(point["value"]) for point in points] == heard["pitch"].tolist()
    assert [point["label"] for point in points] == heard["id"].tolist()
    lengths = heard["offset_sec"] - heard["onset_sec"]
    assert [int(point["duration"]) / 16_000 for point in points] == pytest.approx(lengths.tolist(), abs=1e-4)


def test_images_without_measures_have_their_systems(of_images: Alignment, tmp_path: Path) -> None:
    save_sonic_visualiser(of_images, tmp_path)
    _, points, layer = read_layer(tmp_path / "systems.svl")
    assert layer.get("name") == "systems"
    assert [point["label"] for point in points] == [label.text for label in recording_labels(of_images)]
    assert not (tmp_path / "notes.svl").exists()


def test_without_a_known_recording_frames_are_those_of_44100_hz(repeated: Alignment, tmp_path: Path) -> None:
    save_sonic_visualiser(replace(repeated, made_with=None), tmp_path)
    assert read_layer(tmp_path / "notes.svl")[0].get("sampleRate") == "44100"
