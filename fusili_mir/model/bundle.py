"""Bundles: a trained model as a folder of `manifest.json`, `image.onnx` and `audio.onnx`.

The format is described in `docs/bundle.md`. A bundle may come from anywhere: nothing outside its folder is
opened, and a graph is used only if its checksum matches the manifest.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from fusili_mir.boundary import reading, refuse_address
from fusili_mir.errors import InputError, option
from fusili_mir.model.manifest import BUNDLE_FORMAT, AudioSpec, ImageSpec, Manifest, read_manifest
from fusili_mir.sessions.graph_files import read_graph_file, refuse_external_data
from fusili_mir.short_repr import short_repr
from fusili_mir.staging import staged_folder

__all__ = [
    "BUNDLE_FORMAT",
    "TOWERS",
    "AudioSpec",
    "Bundle",
    "ImageSpec",
    "Manifest",
    "Tower",
    "as_bundle",
    "default_bundle",
    "load_bundle",
    "save_bundle",
]

Tower = Literal["image", "audio"]
TOWERS: tuple[Tower, ...] = ("image", "audio")

_MANIFEST = "manifest.json"
_DEFAULT_FOLDER = Path(__file__).parents[1] / "models" / "small"


@short_repr
@dataclass(frozen=True)
class Bundle:
    """A bundle on disk: its folder and its manifest, already checked."""

    folder: Path
    manifest: Manifest

    @property
    def image(self) -> ImageSpec:
        """Specification of the image graph."""
        return self.manifest.image

    @property
    def audio(self) -> AudioSpec:
        """Specification of the audio graph."""
        return self.manifest.audio

    def spec(self, tower: Tower) -> ImageSpec | AudioSpec:
        """Return the specification of a graph."""
        return self.image if tower == "image" else self.audio

    def graph_path(self, tower: Tower) -> Path:
        """Return the path of a graph, after checking that it lies in the bundle's folder."""
        path = self.folder / self.spec(tower).graph
        if not path.is_file():
            raise InputError(f"{path}: the {tower} graph of the bundle is missing; copy the whole folder")
        if path.resolve().parent != self.folder.resolve():
            raise InputError(f"{path}: a link that leaves the bundle's folder; copy the file into it")
        return path

    def read_graph(self, tower: Tower) -> bytes:
        """Read a graph, which must match its checksum in the manifest and contain all its weights."""
        return read_graph_file(self.graph_path(tower), self.spec(tower).sha256)


def load_bundle(folder: str | Path) -> Bundle:
    """Load a bundle.

    Parameters
    ----------
    folder : str or Path
        Folder with `manifest.json` and two graphs.

    Returns
    -------
    Bundle
        Its manifest has been checked and the graphs exist; they are read and checked when they are used.
    """
    folder = Path(folder)
    with reading(folder, "expected a bundle, the folder that `fusili-mir export` writes"):
        return _load(folder)


def _load(folder: Path) -> Bundle:
    refuse_address(folder, "download the bundle and give the name of its folder")
    if not (folder / _MANIFEST).is_file():
        found = (
            "a folder without manifest.json"
            if folder.is_dir()
            else "a file"
            if folder.exists()
            else "not found"
        )
        raise InputError(f"{folder}: {found}; expected a bundle, the folder that `fusili-mir export` writes")
    bundle = Bundle(folder, read_manifest(folder / _MANIFEST))
    for tower in TOWERS:
        bundle.graph_path(tower)
    return bundle


def default_bundle() -> Bundle:
    """Load the bundle that is installed with the package."""
    if not _DEFAULT_FOLDER.is_dir():
        raise InputError(
            "no model comes with this installation; give one with "
            f"{option('--model FOLDER', 'model=FOLDER')}, or "
            "install a release of fusili-mir"
        )
    return load_bundle(_DEFAULT_FOLDER)


def as_bundle(model: str | os.PathLike[str] | Bundle | None) -> Bundle:
    """Return a bundle as a user names it: its folder, itself or, for None, the one installed with the package."""
    if isinstance(model, Bundle):
        return model
    if model is not None and not isinstance(model, str | os.PathLike):
        raise InputError(f"the model: {type(model).__name__}, expected the folder of a bundle, or None")
    return default_bundle() if model is None else load_bundle(Path(model))


def save_bundle(
    out: str | Path,
    manifest: Manifest,
    image_graph: bytes,
    audio_graph: bytes,
    force: bool = False,
) -> None:
    """Write a bundle; it appears under its name only when it is complete.

    Parameters
    ----------
    out : str or Path
        The folder.
    manifest : Manifest
        Its checksums are replaced by those of the graphs.
    image_graph, audio_graph : bytes
        Contents of ONNX files that contain all their weights.
    force : bool
        Whether files in the folder may be replaced.
    """
    graphs = {"image": image_graph, "audio": audio_graph}
    specs = {}
    for tower, graph in graphs.items():
        spec = getattr(manifest, tower)
        refuse_external_data(spec.graph, graph)
        specs[tower] = replace(spec, sha256=hashlib.sha256(graph).hexdigest())
    with staged_folder(out, force) as folder:
        for tower, graph in graphs.items():
            (folder / specs[tower].graph).write_bytes(graph)
        text = replace(manifest, image=specs["image"], audio=specs["audio"]).to_json()
        (folder / _MANIFEST).write_text(text, encoding="utf-8")
