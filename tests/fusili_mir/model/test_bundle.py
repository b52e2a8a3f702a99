from __future__ import annotations

import json
from pathlib import Path

import pytest
from example_bundles import pitch_audio_graph, pitch_image_graph, write_pitch_bundle

from fusili_mir.errors import InputError, OutputError
from fusili_mir.model import bundle as bundle_module
from fusili_mir.model.bundle import default_bundle, load_bundle, save_bundle


def test_a_saved_bundle_loads_and_returns_its_graphs(tmp_path: Path) -> None:
    write_pitch_bundle(tmp_path / "pitch")
    assert sorted(file.name for file in (tmp_path / "pitch").iterdir()) == [
        "audio.onnx",
        "image.onnx",
        "manifest.json",
    ]
    bundle = load_bundle(tmp_path / "pitch")
    assert bundle.read_graph("image") == pitch_image_graph()
    assert bundle.read_graph("audio") == pitch_audio_graph()


def test_a_changed_graph_is_refused_by_its_checksum(tmp_path: Path) -> None:
    bundle = write_pitch_bundle(tmp_path / "pitch")
    graph = bytearray(bundle.read_graph("audio"))
    graph[-1] ^= 1
    (tmp_path / "pitch" / "audio.onnx").write_bytes(graph)
    with pytest.raises(InputError, match=r"audio.onnx: sha256 .* as recorded beside it; the file is damaged"):
        bundle.read_graph("audio")
    assert bundle.read_graph("image")


def test_a_missing_graph_is_named(tmp_path: Path) -> None:
    write_pitch_bundle(tmp_path / "pitch")
    (tmp_path / "pitch" / "image.onnx").unlink()
    with pytest.raises(InputError, match=r"image.onnx: the image graph of the bundle is missing"):
        load_bundle(tmp_path / "pitch")


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    write_pitch_bundle(tmp_path / "pitch")
    graph = tmp_path / "pitch" / "image.onnx"
    graph.rename(tmp_path / "elsewhere.onnx")
    graph.symlink_to(tmp_path / "elsewhere.onnx")
    with pytest.raises(InputError, match="a link that leaves the bundle's folder"):
        load_bundle(tmp_path / "pitch")


def test_a_path_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    write_pitch_bundle(tmp_path / "pitch")
    manifest = json.loads((tmp_path / "pitch" / "manifest.json").read_text())
    manifest["image"]["graph"] = "../pitch/image.onnx"
    (tmp_path / "pitch" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="expected the plain name"):
        load_bundle(tmp_path / "pitch")


def test_the_error_says_what_is_there_instead_of_a_bundle(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name, found in (("", "a folder without manifest.json"), ("file", "a file"), ("none", "not found")):
        with pytest.raises(InputError, match=f"{found}; expected a bundle"):
            load_bundle(tmp_path / name)


def test_without_an_installed_model_the_error_says_what_to_do(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(bundle_module, "_DEFAULT_FOLDER", tmp_path / "small")
    with pytest.raises(InputError, match="give one with model=FOLDER"):
        default_bundle()
    write_pitch_bundle(tmp_path / "small")
    assert default_bundle().manifest.name == "pitch"


def test_an_existing_bundle_is_replaced_only_by_force(tmp_path: Path) -> None:
    bundle = write_pitch_bundle(tmp_path / "pitch")
    graphs = bundle.read_graph("image"), bundle.read_graph("audio")
    with pytest.raises(OutputError, match="not empty"):
        save_bundle(tmp_path / "pitch", bundle.manifest, *graphs)
    save_bundle(tmp_path / "pitch", bundle.manifest, *graphs, force=True)
    with pytest.raises(InputError, match="keeps weights in another file"):
        save_bundle(tmp_path / "other", bundle.manifest, b"\x08location", graphs[1])
    assert not (tmp_path / "other").exists()
