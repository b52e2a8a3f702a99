"""The manifest of a bundle: the inputs and outputs of its two graphs, its origin and its measured quality.

`docs/bundle.md` describes every field. A manifest is checked as a whole when it is made, whether read from a file
or assembled by the exporter; code that holds one need not check it again.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from fusili_mir.boundary import reading
from fusili_mir.dataclass_tables import read_table
from fusili_mir.errors import InputError
from fusili_mir.geometry import strip_height_px
from fusili_mir.limits import check_limit
from fusili_mir.short_repr import short_repr
from fusili_mir.untrusted_json import read_json

__all__ = ["BUNDLE_FORMAT", "AudioSpec", "ImageSpec", "Manifest", "SegmentShape", "read_manifest"]

BUNDLE_FORMAT = 1
"""Version of the bundle format; raised whenever a reader of the old format would go wrong."""

SegmentShape = Literal["square", "staff_strips"]

_MAX_NUMBER = 1e7
_FITTED = ("law", "law_fitted_on", "certainty_fitted_on", "piece_fitted_on")
_GRAPH_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.onnx")


@dataclass(frozen=True)
class ImageSpec:
    """Inputs and outputs of the image graph.

    Attributes
    ----------
    graph, sha256 : str
        File name of the graph, and the checksum of the file.
    input, local_output, global_output : str
        Names in the graph: images [shape=(B, S, height, width)], patches [shape=(B, N, d)] in row-major order,
        one embedding per image [shape=(B, d)].
    segment : "square" or "staff_strips"
        What an image shows: a part of a system as printed, or its staves as strips of one staff size.
    width_px : int or None
        Width of an image; None: any multiple of `patch_width_px`.
    height_px : int
        Height of an image; for staff strips, of one strip.
    space_px, margin_spaces : float or None
        Distance between staff lines, and the margin above and below the staves in staff spaces. Required for
        staff strips; in squares without a `space_px`, a system fills the width.
    rows : int
        Rows of patches; 1 for staff strips, whose staves are fused in the graph.
    patch_width_px, patch_height_px : int
        Size of a patch.
    """

    graph: str
    sha256: str
    input: str
    local_output: str
    global_output: str
    segment: SegmentShape
    width_px: int | None
    height_px: int
    space_px: float | None
    margin_spaces: float | None
    rows: int
    patch_width_px: int
    patch_height_px: int

    def __post_init__(self) -> None:
        _check_graph_name("image", self.graph)
        if self.segment not in get_args(SegmentShape):
            raise InputError(f"image.segment is {self.segment!r}, expected 'square' or 'staff_strips'")
        for name in ("width_px", "height_px", "space_px", "rows", "patch_width_px", "patch_height_px"):
            _check_positive("image", name, getattr(self, name))
        check_limit("segment_pixels", self.height_px * (self.width_px or 1), "image.height_px and width_px")
        if self.margin_spaces is not None and not 0 <= self.margin_spaces <= 100:
            raise InputError(f"image.margin_spaces is {self.margin_spaces}, expected 0 to 100")
        if self.width_px is not None and self.width_px % self.patch_width_px:
            raise InputError(
                f"image.width_px is {self.width_px}, expected a multiple of patch_width_px,"
                f" {self.patch_width_px}"
            )
        if self.segment == "square":
            self._check_square()
        else:
            self._check_staff_strips()

    def _check_square(self) -> None:
        if self.width_px is None:
            raise InputError("image.width_px is null, expected a width: the segments are squares")
        if self.rows * self.patch_height_px != self.height_px:
            raise InputError(
                f"image has {self.rows} rows of {self.patch_height_px} px, expected {self.height_px} px in all"
            )

    def _check_staff_strips(self) -> None:
        if self.space_px is None or self.margin_spaces is None:
            raise InputError("image.space_px or image.margin_spaces is null, expected both for staff strips")
        strip_px = strip_height_px(self.space_px, self.margin_spaces)
        if self.height_px != strip_px:
            raise InputError(
                f"image.height_px is {self.height_px}, expected {strip_px}: a staff with spaces of"
                f" {self.space_px:g} px and {self.margin_spaces:g} of them above and below"
            )
        if self.rows != 1:
            raise InputError(f"image.rows is {self.rows}, expected 1: the graph fuses the staves")


@dataclass(frozen=True)
class AudioSpec:
    """Inputs and outputs of the audio graph.

    Attributes
    ----------
    graph, sha256 : str
        File name of the graph, and the checksum of the file.
    input, local_output, global_output : str
        Names in the graph: waveforms [shape=(B, n_samples)], frames [shape=(B, M, d)], one embedding per clip
        [shape=(B, d)].
    sample_rate_hz : int
        Sampling rate of the waveforms.
    clip_sec : float or None
        Length of a waveform; None: any whole number of frames.
    frame_sec : float
        Time from one frame to the next; a whole number of samples.
    context_sec : float
        Context of a frame on either side. Clips overlap by twice as much, so that every frame that is kept has
        the context that it would have in one long pass.
    """

    graph: str
    sha256: str
    input: str
    local_output: str
    global_output: str
    sample_rate_hz: int
    clip_sec: float | None
    frame_sec: float
    context_sec: float

    def __post_init__(self) -> None:
        _check_graph_name("audio", self.graph)
        for name in ("sample_rate_hz", "clip_sec", "frame_sec"):
            _check_positive("audio", name, getattr(self, name))
        check_limit("sample_rate_hz", self.sample_rate_hz, "audio.sample_rate_hz")
        clip_sec = max(self.clip_sec or 0.0, 8 * self.context_sec)
        check_limit("clip_samples", clip_sec * self.sample_rate_hz, "audio.clip_sec and context_sec")
        if not 0 <= self.context_sec <= 60:
            raise InputError(f"audio.context_sec is {self.context_sec}, expected 0 to 60")
        samples = self.frame_sec * self.sample_rate_hz
        if self.frame_samples < 1 or abs(samples - self.frame_samples) > 1e-6 * samples:
            raise InputError(
                f"audio.frame_sec is {self.frame_sec:g}, {samples:g} samples; expected a whole number of samples"
            )
        if self.clip_frames is not None and self.clip_sec is not None:
            if abs(self.clip_frames * self.frame_sec - self.clip_sec) > 1e-6 * self.clip_sec:
                raise InputError(f"audio.clip_sec is {self.clip_sec:g}, expected a multiple of frame_sec")
            if self.clip_frames <= 2 * self.context_frames:
                raise InputError(
                    f"audio.clip_sec is {self.clip_sec:g}, expected more than twice context_sec"
                    f" ({self.context_sec:g})"
                )

    @property
    def frame_samples(self) -> int:
        """Samples from one frame to the next."""
        return round(self.frame_sec * self.sample_rate_hz)

    @property
    def clip_frames(self) -> int | None:
        """Frames of a clip; None: any number."""
        return None if self.clip_sec is None else round(self.clip_sec / self.frame_sec)

    @property
    def context_frames(self) -> int:
        """Number of frames that cover the context on one side."""
        return math.ceil(self.context_sec / self.frame_sec - 1e-6)


@short_repr
@dataclass(frozen=True)
class Manifest:
    """Everything that is known about a bundle.

    Attributes
    ----------
    name, made_by : str
        Name of the bundle, and program and version that wrote it.
    precision : str
        Precision of the weights: "fp32", "fp16", "int8", or that of each graph: "fp16 image, fp32 audio".
    embedding_dim : int
        Dimension d of all embeddings.
    scale : float
        The bundle's scale of cosines, a learned factor: cosines times the scale are logits.
    image, audio : ImageSpec, AudioSpec
        The two graphs.
    licence : str
        Licence of the weights.
    recipe, training_data, quality : dict
        How it was trained, on what, and what was measured on which data.
    parity : list
        Differences from the checkpoint that it was exported from, one row per output and batch.
    decoder : dict
        What was fitted for decoding with this bundle, and on what: `law` (see `TimingLaw`), `law_fitted_on`,
        `certainty_fitted_on`, `piece_fitted_on`. May be empty.
    format : int
        `BUNDLE_FORMAT`.
    """

    name: str
    made_by: str
    precision: str
    embedding_dim: int
    scale: float
    image: ImageSpec
    audio: AudioSpec
    licence: str
    recipe: dict[str, Any] = field(default_factory=dict)
    training_data: dict[str, Any] = field(default_factory=dict)
    quality: dict[str, Any] = field(default_factory=dict)
    parity: list[Any] = field(default_factory=list)
    decoder: dict[str, Any] = field(default_factory=dict)
    format: int = BUNDLE_FORMAT

    def __post_init__(self) -> None:
        _check_positive("the manifest", "embedding_dim", self.embedding_dim)
        check_limit("embedding_dim", self.embedding_dim, "the manifest")
        _check_positive("the manifest", "scale", self.scale)
        unknown = sorted(self.decoder.keys() - _FITTED)
        if unknown:
            raise InputError(
                f"decoder has {', '.join(unknown)}, expected only {', '.join(_FITTED)}: export the bundle again"
            )
        if self.image.graph == self.audio.graph:
            raise InputError(f"both graphs are {self.image.graph}, expected two files")

    def to_json(self) -> str:
        """Return the text of `manifest.json`."""
        content = asdict(self)
        return json.dumps({"format": content.pop("format"), **content}, indent=1, ensure_ascii=False) + "\n"


def read_manifest(filename: str | Path) -> Manifest:
    """Read and check `manifest.json`.

    Parameters
    ----------
    filename : str or Path

    Returns
    -------
    Manifest
    """
    filename = Path(filename)
    expected = "expected the manifest of a bundle, in JSON"
    content = read_json(filename, expected)
    with reading(filename, expected):
        try:
            return _manifest(content)
        except InputError as error:
            raise InputError(f"{filename}: {error}") from error


def _manifest(content: Any) -> Manifest:
    if not isinstance(content, dict) or "format" not in content:
        raise InputError("not a bundle manifest; expected an object with a 'format'")
    if content["format"] != BUNDLE_FORMAT:
        way_out = (
            "a newer fusili-mir"
            if isinstance(content["format"], int) and content["format"] > BUNDLE_FORMAT
            else "another export"
        )
        raise InputError(f"bundle format {content['format']!r}, expected {BUNDLE_FORMAT}: use {way_out}")
    return read_table(Manifest, {"decoder": {}, **content}, name="the manifest", complete=True)


def _check_graph_name(where: str, name: str) -> None:
    if not _GRAPH_NAME.fullmatch(name):
        raise InputError(
            f"{where}.graph is {name!r}, expected the plain name of an .onnx file in the bundle's folder"
        )


def _check_positive(where: str, name: str, value: float | None) -> None:
    if value is not None and not 0 < value < _MAX_NUMBER:
        raise InputError(f"{where}: {name} is {value}, expected a number above 0 and below {_MAX_NUMBER:g}")
