from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_bundles import write_pitch_bundle
from example_scores import melody

from fusili_mir.audio.attack_map import N_PITCHES, pitch_index
from fusili_mir.errors import InputError
from fusili_mir.model.bundle import Bundle, default_bundle, load_bundle, save_bundle
from fusili_mir.model.encoder import Encoder
from fusili_mir.model.pitch_reader import PitchReader
from fusili_mir.pages.pages import render_pages

WEIGHTS = np.random.default_rng(0).normal(size=(19, N_PITCHES)).astype(np.float32)
"""The pitch bundle has embeddings of 18 numbers."""


def npy(weights: Any, allow_pickle: bool = False) -> bytes:
    file = io.BytesIO()
    np.save(file, weights, allow_pickle=allow_pickle)
    return file.getvalue()


def npz(weights: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, weights)
    return file.getvalue()


def bundle_with(folder: Path, content: bytes, **spec: str) -> Bundle:
    """The pitch bundle, with `pitches.npy` and what its manifest says about it."""
    write_pitch_bundle(folder)
    (folder / "pitches.npy").write_bytes(content)
    said = {"file": "pitches.npy", "sha256": hashlib.sha256(content).hexdigest(), **spec}
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["decoder"] = {"pitch_reader": said}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return load_bundle(folder)


def test_a_bundle_without_weights_reads_no_pitches(tmp_path: Path) -> None:
    bundle = write_pitch_bundle(tmp_path / "pitch")
    assert PitchReader.of(bundle) is None
    assert Encoder(bundle).pitch_reader is None


def test_a_bundle_is_saved_with_its_weights_or_not_at_all(tmp_path: Path) -> None:
    given = write_pitch_bundle(tmp_path / "given")
    graphs = given.read_graph("image"), given.read_graph("audio")
    save_bundle(tmp_path / "saved", given.manifest, *graphs, pitch_weights=WEIGHTS)
    saved = load_bundle(tmp_path / "saved")
    reader = PitchReader.of(saved)
    assert reader is not None
    assert reader.weights.tolist() == WEIGHTS.tolist()
    with pytest.raises(InputError, match="names a reader of pitches; expected its weights"):
        save_bundle(tmp_path / "again", saved.manifest, *graphs)
    assert not (tmp_path / "again").exists()


def test_weights_are_read_as_they_were_written(tmp_path: Path) -> None:
    for name, weights in (("single", WEIGHTS), ("double", WEIGHTS.astype(np.float64))):
        reader = PitchReader.of(bundle_with(tmp_path / name, npy(weights)))
        assert reader is not None
        assert reader.weights.dtype == np.float32
        assert reader.weights.tolist() == WEIGHTS.tolist()


NOT_FINITE = np.where(np.arange(N_PITCHES) == 5, np.float32(np.nan), WEIGHTS)
OBJECTS = npy(np.array([{"a": 1}], dtype=object), allow_pickle=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (npy(WEIGHTS[:-1]), r"pitches.npy has float32 values of shape \(18, 88\); expected .* \(19, 88\)"),
        (npy(WEIGHTS[:, 0]), r"pitches.npy has float32 values of shape \(19,\); expected .* \(19, 88\)"),
        (npy(NOT_FINITE), r"pitches.npy has float32 values of shape \(19, 88\); expected finite numbers"),
        (npy(np.full((19, 88), "a")), r"pitches.npy has <U1 values of shape .*; expected finite numbers"),
        (OBJECTS, "pitches.npy is not an array; export it again"),
        (npz(WEIGHTS), "pitches.npy is not an array; export it again"),
        (b"", "pitches.npy is not an array; export it again"),
        (b"PK\x03\x04 nonsense", "pitches.npy is not an array; export it again"),
        (npy(WEIGHTS)[:-100], "pitches.npy is not an array; export it again"),
    ],
    ids=["too few rows", "one pitch", "NaN", "text", "pickled", "zipped", "empty", "no zip", "cut off"],
)
def test_what_are_not_weights_of_the_bundle_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    bundle = bundle_with(tmp_path / "pitch", content)
    with pytest.raises(InputError, match=message) as caught:
        PitchReader.of(bundle)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"sha256": "0" * 64}, r"pitches.npy: sha256 .*, expected 000000000000... as in the manifest"),
        ({"file": "../pitches.npy"}, "expected the plain name of a file in the bundle's folder"),
        ({"file": "/etc/hostname"}, "expected the plain name of a file in the bundle's folder"),
        ({"file": ".."}, "expected the plain name of a file in the bundle's folder"),
        ({"file": "link.npy"}, "expected the plain name of a file in the bundle's folder"),
        ({"file": "other.npy"}, "other.npy: cannot be read .No such file"),
    ],
)
def test_weights_of_another_bundle_or_elsewhere_are_refused(
    tmp_path: Path, spec: dict[str, str], message: str
) -> None:
    bundle = bundle_with(tmp_path / "pitch", npy(WEIGHTS), **spec)
    (tmp_path / "pitches.npy").write_bytes(npy(WEIGHTS))
    (tmp_path / "pitch" / "link.npy").symlink_to(tmp_path / "pitches.npy")
    with pytest.raises(InputError, match=message):
        PitchReader.of(bundle)


def test_a_manifest_that_does_not_name_a_file_is_refused(tmp_path: Path) -> None:
    manifest = write_pitch_bundle(tmp_path / "pitch").manifest
    for spec in ("pitches.npy", {"file": "pitches.npy"}):
        manifest.decoder["pitch_reader"] = spec
        with pytest.raises(InputError, match=r"decoder.pitch_reader is .*; expected file and sha256"):
            PitchReader.of(Bundle(tmp_path / "pitch", manifest))


def test_probabilities_are_logistic_in_the_best_patch_of_a_column() -> None:
    weights = np.zeros((3, N_PITCHES), np.float32)
    weights[:, 10] = [2.0, 0.0, -1.0]  # the last is the intercept
    weights[:, 11] = [0.0, 3.0, 0.5]
    columns = np.array([[[1, 0], [0, 1]], [[-1, 0], [0, -1]]], np.float32)  # (C=2, R=2, d=2)
    read = PitchReader(weights).read(columns)
    assert read.shape == (2, N_PITCHES)
    logistic = [
        [1 / (1 + np.exp(-1.0)), 1 / (1 + np.exp(-3.5))],
        [1 / (1 + np.exp(1.0)), 1 / (1 + np.exp(-0.5))],
    ]
    assert read[:, 10:12] == pytest.approx(np.array(logistic), rel=1e-5)
    assert read[:, 12].tolist() == [0.5, 0.5]


def test_weights_that_are_very_sure_give_0_and_1() -> None:
    weights = np.zeros((2, N_PITCHES), np.float32)
    weights[0, :2] = [1000.0, -1000.0]
    read = PitchReader(weights).read(np.ones((1, 1, 1), np.float32))
    assert read[0, :3] == pytest.approx([1.0, 0.0, 0.5])


def test_the_shipped_bundle_reads_the_pitch_of_a_head_rather_than_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "melody.musicxml").write_text(melody(8))
    pages = render_pages(tmp_path / "melody.musicxml")
    score = Encoder(default_bundle()).encode_pages(pages)
    assert score.pitches is not None
    assert score.pitches.shape == (len(score.axis), N_PITCHES)
    heads = pages.notes
    columns = score.axis.index_in_system(heads["system"], (heads["x0"].astype(float) + heads["x1"]) / 2)
    written = pitch_index([72, 74, 76, 77] * 4)  # C5 D5 | E5 F5
    naturals = pitch_index([67, 69, 71, 72, 74, 76, 77, 79, 81])  # G4 to A5
    read = naturals[score.pitches[columns][:, naturals].argmax(axis=1)]
    assert np.mean(read == written) > 0.9
