from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from example_bundles import write_pitch_bundle

from fusili_mir.errors import InputError
from fusili_mir.model.manifest import read_manifest

IMAGE = {
    "graph": "image.onnx",
    "sha256": "0",
    "input": "images",
    "local_output": "patches",
    "global_output": "image_embedding",
    "segment": "square",
    "width_px": 224,
    "height_px": 224,
    "space_px": None,
    "margin_spaces": None,
    "rows": 7,
    "patch_width_px": 32,
    "patch_height_px": 32,
}
STRIPS = {
    **IMAGE,
    "segment": "staff_strips",
    "width_px": None,
    "height_px": 128,
    "space_px": 8.0,
    "margin_spaces": 6.0,
    "rows": 1,
    "patch_width_px": 4,
    "patch_height_px": 128,
}
AUDIO = {
    "graph": "audio.onnx",
    "sha256": "0",
    "input": "waveforms",
    "local_output": "frames",
    "global_output": "audio_embedding",
    "sample_rate_hz": 48000,
    "clip_sec": 10.0,
    "frame_sec": 0.3125,
    "context_sec": 0.5,
}
MANIFEST = {
    "format": 1,
    "name": "clip-clap",
    "made_by": "fusili-mir 0.1.0",
    "precision": "fp32",
    "embedding_dim": 512,
    "scale": 20.0,
    "image": IMAGE,
    "audio": AUDIO,
    "licence": "CC0-1.0",
    "recipe": {},
    "training_data": {},
    "quality": {},
    "parity": [],
}


def read(tmp_path: Path, **changes: Any):
    content = {**MANIFEST, **changes}
    (tmp_path / "manifest.json").write_text(json.dumps({k: v for k, v in content.items() if v is not ...}))
    return read_manifest(tmp_path / "manifest.json")


def test_a_manifest_gives_the_grids_in_samples_and_frames(tmp_path: Path) -> None:
    audio = read(tmp_path).audio
    assert (audio.frame_samples, audio.clip_frames, audio.context_frames) == (15000, 32, 2)


def test_what_is_written_reads_back_the_same(tmp_path: Path) -> None:
    manifest = read(tmp_path, image=STRIPS, quality={"median_ms": 33})
    (tmp_path / "again.json").write_text(manifest.to_json())
    assert read_manifest(tmp_path / "again.json") == manifest
    written = write_pitch_bundle(tmp_path / "bundle").manifest
    assert read_manifest(tmp_path / "bundle" / "manifest.json") == written


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "bundle format 2, expected 1: use a newer fusili-mir"),
        ({"format": "0"}, "bundle format '0', expected 1: use another export"),
        ({"format": ...}, "not a bundle manifest"),
        ({"licence": ...}, "the manifest lacks licence"),
        ({"extra": 1}, "unknown key extra; the manifest has name"),
        ({"decoder": {"reading": {}, "attacks": {}}}, "decoder has attacks, reading, expected only law"),
        ({"embedding_dim": "512"}, "embedding_dim is '512'; expected a whole number"),
        ({"embedding_dim": True}, "embedding_dim is True; expected a whole number"),
        ({"embedding_dim": 10**400}, "expected a number above 0 and below"),
        ({"scale": float("nan")}, "scale is nan"),
        ({"image": []}, "image is []; expected a table"),
        ({"image": {**IMAGE, "graph": "../image.onnx"}}, "expected the plain name of an .onnx file"),
        ({"image": {**IMAGE, "graph": "/etc/x.onnx"}}, "expected the plain name of an .onnx file"),
        ({"image": {**IMAGE, "graph": "a\\..\\x.onnx"}}, "expected the plain name of an .onnx file"),
        ({"image": {**IMAGE, "graph": "audio.onnx"}}, "both graphs are audio.onnx"),
        ({"image": {**IMAGE, "segment": "circle"}}, "image.segment is 'circle'"),
        ({"image": {**IMAGE, "rows": 6}}, "6 rows of 32 px, expected 224 px in all"),
        ({"image": {**IMAGE, "width_px": 225}}, "multiple of patch_width_px, 32"),
        ({"image": {**IMAGE, "width_px": None}}, "the segments are squares"),
        ({"image": {**STRIPS, "height_px": 120}}, "image.height_px is 120, expected 128"),
        ({"image": {**STRIPS, "space_px": None}}, "expected both for staff strips"),
        ({"image": {**STRIPS, "rows": 2}}, "expected 1: the graph fuses the staves"),
        ({"image": {**STRIPS, "margin_spaces": -1}}, "expected 0 to 100"),
        ({"audio": {**AUDIO, "frame_sec": 0.00001}}, "expected a whole number of samples"),
        ({"audio": {**AUDIO, "frame_sec": 0.30001}}, "expected a whole number of samples"),
        ({"audio": {**AUDIO, "clip_sec": 10.1}}, "expected a multiple of frame_sec"),
        ({"audio": {**AUDIO, "context_sec": 5}}, "expected more than twice context_sec"),
        ({"audio": {**AUDIO, "context_sec": -1}}, "expected 0 to 60"),
        ({"audio": {**AUDIO, "sample_rate_hz": 0}}, "sample_rate_hz is 0"),
    ],
)
def test_an_invalid_manifest_is_refused_in_one_line(tmp_path: Path, changes, message) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path, **changes)
    assert message in str(error.value)
    assert str(tmp_path / "manifest.json") in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe", b"[" * 100_000])
def test_a_file_that_is_not_a_manifest_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(InputError, match=r"cannot be read|not a"):
        read_manifest(tmp_path / "manifest.json")


def test_a_missing_or_enormous_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not found; expected the manifest of a bundle"):
        read_manifest(tmp_path / "none.json")
    (tmp_path / "big.json").write_bytes(b" " * 10_000_001)
    with pytest.raises(InputError, match=r"10000001 bytes of a manifest .*, expected at most 10000000"):
        read_manifest(tmp_path / "big.json")
