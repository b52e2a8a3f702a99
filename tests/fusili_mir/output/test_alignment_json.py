from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from fusili_mir.alignment.results import Alignment
from fusili_mir.output.alignment_json import (
    ALIGNMENT_FORMAT,
    alignment_schema,
    alignment_to_json,
    save_alignment_json,
)

ALL = ("repeated", "cut_short", "duet", "of_images", "of_tilted_images")


@pytest.fixture
def alignment(request: pytest.FixtureRequest) -> Alignment:
    result: Alignment = request.getfixturevalue(request.param)
    return result


def read(alignment: Alignment, folder: Path) -> dict[str, Any]:
    save_alignment_json(alignment, folder / "alignment.json")
    content: dict[str, Any] = json.loads((folder / "alignment.json").read_text(encoding="utf-8"))
    return content


@pytest.mark.parametrize("alignment", ALL, indirect=True)
def test_the_file_follows_its_schema(alignment: Alignment, tmp_path: Path) -> None:
    schema = alignment_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    content = read(alignment, tmp_path)
    jsonschema.validate(content, schema)
    for name in ("systems", "measures", "notes", "frames"):
        assert len({len(column) for column in content[name].values()}) == 1
    jsonschema.validate(alignment_to_json(replace(alignment, made_with=None)), schema)


def test_the_schema_refuses_another_format_and_unknown_names(repeated: Alignment) -> None:
    content = alignment_to_json(repeated)
    changes: list[dict[str, Any]] = [{"format": 1}, {"extra": 0}, {"reliability": 1.5}, {"pages": []}]
    for wrong in changes:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**content, **wrong}, alignment_schema())
    assert alignment_schema()["properties"]["format"]["const"] == ALIGNMENT_FORMAT == 2


def test_notes_measures_and_frames_are_those_of_the_result(repeated: Alignment, tmp_path: Path) -> None:
    content = read(repeated, tmp_path)
    assert content["unfold"] == "maximal"
    assert content["is_reliable"] is True
    assert content["notes"]["id"] == repeated.notes["id"].tolist()
    assert content["notes"]["onset_sec"] == pytest.approx(repeated.notes["onset_sec"].tolist(), abs=1e-4)
    assert content["measures"]["measure"] == [0, 1, 2, 1, 3]  # what was played, in this order
    assert content["measures"]["number"] == ["0", "1", "2", "1", "3"]
    assert len(content["frames"]["x"]) == len(repeated.frames)


def test_files_model_and_options_are_named(repeated: Alignment, tmp_path: Path) -> None:
    content = read(repeated, tmp_path)
    score = Path(repeated.pages.filename)
    assert content["score"] == {
        "name": "voltas.musicxml",
        "kind": "symbolic",
        "files": [{"name": "voltas.musicxml", "sha256": hashlib.sha256(score.read_bytes()).hexdigest()}],
    }
    recording = score.with_name("voltas.wav")
    assert content["recording"]["sha256"] == hashlib.sha256(recording.read_bytes()).hexdigest()
    assert content["recording"]["sample_rate_hz"] == 16_000
    assert content["recording"]["duration_sec"] == pytest.approx(repeated.grid.end_sec, abs=1e-6)
    assert content["model"]["name"] == "pitch"
    assert content["options"] == {
        "repeats": "auto",
        "cuts": False,
        "transpose": None,
        "a4_hz": None,
        "dpi": 200.0,
        "pages": None,
        "start_sec": 0.0,
        "end_sec": None,
        "anchors": [],
    }
    assert {"fusili-mir", "partitura", "verovio", "onnxruntime"} <= set(content["versions"])


def test_what_is_in_memory_has_no_checksum(duet: Alignment) -> None:
    assert alignment_to_json(duet)["recording"]["sha256"] is None


def test_pages_have_their_size_and_systems_follow_their_tilt(
    of_tilted_images: Alignment, tmp_path: Path
) -> None:
    content = read(of_tilted_images, tmp_path)
    height_px, width_px = of_tilted_images.pages.images[0].shape
    (page,) = content["pages"]
    assert (page["file"], page["width_px"], page["height_px"]) == ("scan.png", width_px, height_px)
    assert page["skew_deg"] == pytest.approx(1.3, abs=0.05)
    (left, top), (right, right_top), *_ = content["systems"]["corners"][0]
    assert (top - right_top) / (right - left) == pytest.approx(0.0227, abs=0.001)  # tan 1.3 degrees
    assert content["systems"]["y0"][0] == pytest.approx(right_top, abs=0.01)


def test_json_has_null_where_nothing_is_known(cut_short: Alignment, tmp_path: Path) -> None:
    content = read(cut_short, tmp_path)
    assert content["notes"]["onset_sec"][10:] == [None] * 6
