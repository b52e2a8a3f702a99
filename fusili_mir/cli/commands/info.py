"""`fusili-mir info`: describe a bundle, and the devices of this machine that can run it."""

from __future__ import annotations

import shutil
import sys
import textwrap
from pathlib import Path
from typing import Any

import click

from fusili_mir.audio.ffmpeg_file import pyav_version
from fusili_mir.audio.soundfonts import find_fluidsynth, find_soundfonts
from fusili_mir.cli.verbosity import say
from fusili_mir.errors import InputError, MissingExtraError
from fusili_mir.hearing.networks import NETWORKS, find_network
from fusili_mir.model.bundle import TOWERS, AudioSpec, Bundle, ImageSpec, as_bundle
from fusili_mir.sessions.graph_session import available_devices, onnxruntime_version, open_session

__all__ = ["command"]

_INDENT = 15  # width of the titles, in columns of the terminal


@click.command(name="info")
@click.argument("bundle", required=False, type=click.Path(path_type=Path))
def command(bundle: Path | None) -> None:
    """Describe BUNDLE, by default the installed one, the devices that it can run on, and what can be read here.

    The checksums of its graphs are verified, and all of them are opened.
    """
    try:
        loaded = as_bundle(bundle)
    except InputError as error:
        if bundle is not None:
            raise
        loaded = None
        _say("bundle", str(error))
    if loaded is not None:
        _describe(loaded)
    _describe_networks()
    _describe_recordings()
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
        _say_graph(spec.graph, n_bytes, spec.sha256)
    for title, content in (("training data", manifest.training_data), ("quality", manifest.quality)):
        for key, value in content.items():
            for each in value if isinstance(value, list) else [value]:
                _say(title, f"{key}: {_plain(each)}")


def _say_graph(name: str, n_bytes: int, sha256: str) -> None:
    _say("graph", f"{name}, {n_bytes / 1e6:.1f} MB, checksum {sha256[:12]} is correct")


def _describe_networks() -> None:
    """Describe the networks that ship beside any bundle."""
    for name in NETWORKS:
        network = find_network(name)
        _say_graph(network.file.name, len(network.read()), network.sha256)
        _say(name, f"{network.licence}, {_plain(network.origin)}")


def _describe_recordings() -> None:
    """Say which recordings this machine reads."""
    import soundfile

    version = pyav_version()
    more = (
        f"what ffmpeg reads (PyAV {version})"
        if version
        else "no more; fusili-mir[audio] adds M4A, MP4 and video"
    )
    _say("recordings", f"what libsndfile {soundfile.__libsndfile_version__} reads, and {more}")
    try:
        find_fluidsynth()
        _say("MIDI", f"played with the soundfont {find_soundfonts()[0].name}")
    except MissingExtraError as error:
        _say("MIDI", str(error))


def _describe_machine(bundle: Bundle | None) -> None:
    try:
        version, devices = onnxruntime_version(), available_devices()
    except MissingExtraError as error:
        _say("onnxruntime", str(error))
        return
    _say("onnxruntime", f"{version}, built for {', '.join(devices)}")
    if bundle is not None:
        graphs = [bundle.read_graph(tower) for tower in TOWERS]
        graphs += [find_network(name).read() for name in NETWORKS]
        sessions = [open_session(graph) for graph in graphs]
        _say("auto", f"runs on {sessions[0].device}, {sessions[0].n_at_once} batches at once")


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


def _plain(value: Any) -> str:
    """Format a JSON value for reading, in full."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(each)}" for key, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _say(title: str, text: str) -> None:
    """Print a title and a text on one line, wrapped between words on a narrower terminal."""
    lines = [" ".join(text.split())]
    if sys.stdout is not None and sys.stdout.isatty():
        width = max(shutil.get_terminal_size().columns - _INDENT, _INDENT)
        lines = textwrap.wrap(lines[0], width, break_long_words=False, break_on_hyphens=False)
    say(f"{title:<{_INDENT}}" + f"\n{'':<{_INDENT}}".join(lines))
