"""`fusili-mir info`: what a bundle is, and what this machine can run it on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fusili_mir.bundle import TOWERS, AudioSpec, Bundle, ImageSpec, default_bundle, load_bundle
from fusili_mir.errors import InputError, MissingExtraError
from fusili_mir.sessions import available_devices, default_threads, onnxruntime_version, open_session

__all__ = ["command"]


@click.command(name="info")
@click.argument("bundle", required=False, type=click.Path(path_type=Path))
def command(bundle: Path | None) -> None:
    """Describe BUNDLE, by default the one that is installed, and the devices that it can run on.

    The checksums of its graphs are compared, and both graphs are opened.
    """
    try:
        loaded = load_bundle(bundle) if bundle is not None else default_bundle()
    except InputError as error:
        if bundle is not None:
            raise
        loaded = None
        _say("bundle", str(error))
    if loaded is not None:
        _describe(loaded)
    _describe_machine(loaded)


def _describe(bundle: Bundle) -> None:
    manifest = bundle.manifest
    _say("bundle", f"{manifest.name} ({manifest.precision}, format {manifest.format})")
    _say("folder", str(bundle.folder))
    _say("made by", manifest.made_by)
    _say("licence", manifest.licence)
    _say("image", _image(bundle.image))
    _say("audio", _audio(bundle.audio))
    _say("embeddings", f"{manifest.embedding_dim} dimensions, scale {manifest.scale:g}")
    for tower in TOWERS:
        spec = bundle.spec(tower)
        n_bytes = len(bundle.read_graph(tower))
        _say("graph", f"{spec.graph}, {n_bytes / 1e6:.1f} MB, checksum {spec.sha256[:12]} is right")
    for title, content in (("training data", manifest.training_data), ("quality", manifest.quality)):
        for key, value in content.items():
            _say(title, f"{key}: {_short(value)}")


def _describe_machine(bundle: Bundle | None) -> None:
    try:
        version, devices = onnxruntime_version(), available_devices()
    except MissingExtraError as error:
        _say("onnxruntime", str(error))
        return
    _say("onnxruntime", f"{version}, built for {', '.join(devices)}")
    if bundle is not None:
        sessions = [open_session(bundle.read_graph(tower)) for tower in TOWERS]
        _say("auto", f"runs on {sessions[0].device}, {default_threads()} threads")


def _image(spec: ImageSpec) -> str:
    if spec.segment == "staff_strips":
        return (
            f"staff strips {spec.height_px} px high, staff lines {spec.space_px:g} px apart, "
            f"a column every {spec.patch_width_px} px"
        )
    return (
        f"squares of {spec.width_px} x {spec.height_px} px, "
        f"patches of {spec.patch_width_px} x {spec.patch_height_px} px"
    )


def _audio(spec: AudioSpec) -> str:
    length = "clips of any length" if spec.clip_sec is None else f"clips of {spec.clip_sec:g} s"
    return f"{spec.sample_rate_hz} Hz, {length}, a frame every {1000 * spec.frame_sec:g} ms"


def _short(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _say(title: str, text: str) -> None:
    click.echo(f"{title:<14} {text}")
