"""Bundles whose embeddings are known by construction, and recordings that they understand.

Both graphs of the pitch bundle say which of the 17 naturals from A3 to C6 they see or hear, on axes of one
space, and have an axis for "nothing". The image graph matches the shapes of note heads (filled, hollow and
grace size; Verovio's Leipzig) at fixed heights of a staff strip with a treble clef, so that it reads engraved
melodies without accidentals. The audio graph measures the amplitude of each natural in each frame, so that it
hears tones without overtones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from fusili_mir.arrays import Bool, Float32
from fusili_mir.decoding.certainty import STOP_CLUES, Certainty, StopWeights
from fusili_mir.decoding.timing_law import TimingLaw
from fusili_mir.model.bundle import (
    AudioSpec,
    Bundle,
    ImageSpec,
    Manifest,
    load_bundle,
    save_bundle,
)

__all__ = [
    "NATURALS",
    "NOTHING",
    "melody_notes",
    "midi_pitch",
    "sine_recording",
    "write_ink_bundle",
    "write_pitch_bundle",
]


NATURALS = tuple(f"{step}{octave}" for octave in (3, 4, 5, 6) for step in "CDEFGAB")[5:22]
"""A3 to C6: the axes of the embedding, from 0; B4, the middle line of a staff, is 8."""
NOTHING = len(NATURALS)
"""The axis of columns without a note head and of frames without a tone."""

SPACE_PX, MARGIN_SPACES, STRIP_PX, COLUMN_PX = 8, 6, 128, 4
SAMPLE_RATE_HZ, FRAME_SAMPLES = 16_000, 640
FRAME_SEC = FRAME_SAMPLES / SAMPLE_RATE_HZ
AMPLITUDE = 0.4
ATTACK_SEC, RELEASE_SEC = 0.004, 0.03
_NO_CLUE = StopWeights(**dict.fromkeys((*STOP_CLUES, "base"), 0.0))
AT_ITS_WORD = Certainty(replace(_NO_CLUE, own=1.0), replace(_NO_CLUE, spread=1.0, base=1.0))
_CLEF_PX = 24  # at the left of every strip, not looked at


def midi_pitch(name: str) -> int:
    """Return the MIDI number of a natural such as "C4"."""
    return 12 * (int(name[-1]) + 1) + {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}[name[0]]


def melody_notes(
    pitches: Sequence[str], note_sec: float = 0.4, gap_sec: float = 0.08, start_sec: float = 0.0
) -> npt.NDArray[np.void]:
    """Give the notes of a melody played evenly, each followed by a gap, with the fields of partitura."""
    notes = np.zeros(len(pitches), [("onset_sec", "f4"), ("duration_sec", "f4"), ("pitch", "i4")])
    notes["onset_sec"] = start_sec + np.arange(len(pitches)) * note_sec
    notes["duration_sec"] = note_sec - gap_sec
    notes["pitch"] = [midi_pitch(name) for name in pitches]
    return notes


def sine_recording(
    notes: npt.NDArray[np.void], sample_rate_hz: int = SAMPLE_RATE_HZ, end_sec: float | None = None
) -> Float32:
    """Play notes as tones of one amplitude, faded in and out.

    Parameters
    ----------
    notes : structured array with onset_sec, duration_sec and pitch
        As of `melody_notes` or of a partitura `PerformedPart`.
    sample_rate_hz : int
    end_sec : float, optional
        Length of the recording; by default to the end of the last note.

    Returns
    -------
    np.ndarray [shape=(n,)], float32
    """
    offsets = notes["onset_sec"] + notes["duration_sec"]
    n_samples = round((end_sec or float(offsets.max())) * sample_rate_hz)
    samples = np.zeros(n_samples)
    for note in notes:
        start = round(float(note["onset_sec"]) * sample_rate_hz)
        stop = round(float(note["onset_sec"] + note["duration_sec"]) * sample_rate_hz)
        hertz = 440 * 2 ** ((int(note["pitch"]) - 69) / 12)
        since_sec = np.arange(max(stop - start, 0)) / sample_rate_hz
        left_sec = since_sec[::-1]
        fade = np.clip(np.minimum(since_sec / ATTACK_SEC, left_sec / RELEASE_SEC), 0.0, 1.0)  # no clicks
        tone = AMPLITUDE * fade * np.sin(2 * np.pi * hertz * (start / sample_rate_hz + since_sec))
        samples[start:stop] += tone[: max(n_samples - start, 0)]
    return samples.astype(np.float32)


def write_pitch_bundle(
    folder: Path,
    clip_sec: float | None = None,
    sample_rate_hz: int = SAMPLE_RATE_HZ,
    is_calibrated: bool = True,
) -> Bundle:
    """Write the bundle and load it.

    With `clip_sec` its recordings are cut into clips of that length. Unless it is not to be calibrated, what the
    timing model says of its stops passes for fitted probabilities.
    """
    image = ImageSpec(
        graph="image.onnx",
        sha256="",
        input="images",
        local_output="patches",
        global_output="image_embedding",
        segment="staff_strips",
        width_px=None,
        height_px=STRIP_PX,
        space_px=float(SPACE_PX),
        margin_spaces=float(MARGIN_SPACES),
        rows=1,
        patch_width_px=COLUMN_PX,
        patch_height_px=STRIP_PX,
    )
    audio = AudioSpec(
        graph="audio.onnx",
        sha256="",
        input="waveforms",
        local_output="frames",
        global_output="audio_embedding",
        sample_rate_hz=sample_rate_hz,
        clip_sec=clip_sec,
        frame_sec=FRAME_SEC,
        context_sec=0.08,
    )
    decoder = {"law": asdict(TimingLaw(certainty=AT_ITS_WORD, read_certainty=AT_ITS_WORD))}
    manifest = Manifest(
        "pitch",
        "tests",
        "fp32",
        NOTHING + 1,
        20.0,
        image,
        audio,
        licence="CC0-1.0",
        decoder=decoder if is_calibrated else {},
    )
    save_bundle(folder, manifest, pitch_image_graph(), pitch_audio_graph(sample_rate_hz))
    return load_bundle(folder)


def write_ink_bundle(folder: Path, clip_sec: float | None = 2.0) -> Bundle:
    """Write a bundle of squares, for tests of grids: it measures the ink of patches, and filters sound.

    A frame of its audio graph looks 0.24 s to either side, which is exactly what the manifest says.
    """
    image = ImageSpec(
        graph="image.onnx",
        sha256="",
        input="images",
        local_output="patches",
        global_output="image_embedding",
        segment="square",
        width_px=224,
        height_px=224,
        space_px=None,
        margin_spaces=None,
        rows=7,
        patch_width_px=32,
        patch_height_px=32,
    )
    audio = AudioSpec(
        graph="audio.onnx",
        sha256="",
        input="waveforms",
        local_output="frames",
        global_output="audio_embedding",
        sample_rate_hz=SAMPLE_RATE_HZ,
        clip_sec=clip_sec,
        frame_sec=FRAME_SEC,
        context_sec=6 * FRAME_SEC,
    )
    manifest = Manifest("ink", "tests", "fp32", 2, 1.0, image, audio, licence="CC0-1.0")
    save_bundle(folder, manifest, ink_graph(), filter_graph())
    return load_bundle(folder)


class GraphBuilder:
    """Puts an ONNX graph together, one operator after the other."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, value: npt.ArrayLike, dtype: npt.DTypeLike = np.float32) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def axes(self, *axes: int) -> str:
        return self.constant(axes, np.int64)

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        name = output or f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def to_float(self, tensor: str) -> str:
        return self.add("Cast", tensor, to=TensorProto.FLOAT)

    def dimension(self, tensor: str, axis: int) -> str:
        """One entry of a tensor's shape, as a vector of length 1."""
        return self.add("Shape", tensor, start=axis, end=axis + 1)

    def embed(self, found: str, local_output: str, global_output: str) -> None:
        """Add the axis of nothing to (B, L, 17) of 0 and 1; make both outputs."""
        nothing = self.add("Sub", self.constant(1), self.add("ReduceMax", found, self.axes(2)))
        self.unit_outputs(self.add("Concat", found, nothing, axis=2), local_output, global_output)

    def unit_outputs(self, tokens: str, local_output: str, global_output: str) -> None:
        """Make local and global embeddings of length 1 from (B, L, d)."""
        local = self.add("LpNormalization", tokens, output=local_output, axis=-1, p=2)
        mean = self.add("ReduceMean", local, self.axes(1), keepdims=0)
        self.add("LpNormalization", mean, output=global_output, axis=-1, p=2)

    def finish(self, input_name: str, n_axes: int, local_output: str, global_output: str) -> bytes:
        graph = helper.make_graph(
            self.nodes,
            "test",
            [helper.make_tensor_value_info(input_name, TensorProto.FLOAT, [None] * n_axes)],
            [
                helper.make_tensor_value_info(local_output, TensorProto.FLOAT, [None] * 3),
                helper.make_tensor_value_info(global_output, TensorProto.FLOAT, [None] * 2),
            ],
            self.constants,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
        onnx.checker.check_model(model)
        content: bytes = model.SerializeToString()
        return content


def pitch_image_graph() -> bytes:
    """Staff strips (B, S, 128, W) -> which naturals have a head in each column of 4 px (B, W / 4, 18)."""
    graph = GraphBuilder()
    width = graph.dimension("images", 3)
    shape = graph.add("Concat", graph.axes(-1, 1, STRIP_PX), width, axis=0)
    ink = graph.add("Sub", graph.constant(1), graph.add("Reshape", "images", shape))  # (B * S, 1, 128, W)
    one_to_width = graph.add(
        "Range", graph.constant(0, np.int64), graph.add("Squeeze", width), graph.constant(1, np.int64)
    )
    after_clef = graph.add("GreaterOrEqual", one_to_width, graph.constant(_CLEF_PX, np.int64))
    ink = graph.add("Mul", ink, graph.to_float(after_clef))

    kernels = graph.constant(
        np.stack([_filled_head(5.0, 3.6), _filled_head(3.4, 2.5), _hollow_head()])[:, None]
    )
    thresholds = graph.constant([-0.72, -0.7, -0.3])
    matches = graph.add("Conv", ink, kernels, thresholds, pads=[7, 8, 7, 8])
    best = graph.add("ReduceMax", matches, graph.axes(1))  # (B * S, 1, 128, W)
    heads = graph.to_float(graph.add("Greater", best, graph.constant(0)))
    wide = graph.add("MaxPool", heads, kernel_shape=[1, 9], pads=[0, 4, 0, 4])  # as wide as the heads are
    # The middle line lies between rows 63 and 64, and a step is 4 rows.
    rows = graph.add("Slice", wide, graph.axes(30), graph.axes(98), graph.axes(2))
    cells = graph.add("MaxPool", rows, kernel_shape=[4, COLUMN_PX], strides=[4, COLUMN_PX])

    n_staves, n_columns = graph.dimension("images", 1), graph.dimension(cells, 3)
    shape = graph.add("Concat", graph.axes(-1), n_staves, graph.axes(NOTHING), n_columns, axis=0)
    by_staff = graph.add("Reshape", cells, shape)  # (B, S, 17, columns), the highest note first
    system = graph.add("ReduceMax", by_staff, graph.axes(1), keepdims=0)
    upwards = graph.add(
        "Slice", system, graph.axes(-1), graph.axes(-NOTHING - 1), graph.axes(1), graph.axes(-1)
    )
    graph.embed(graph.add("Transpose", upwards, perm=[0, 2, 1]), "patches", "image_embedding")
    return graph.finish("images", 4, "patches", "image_embedding")


def pitch_audio_graph(sample_rate_hz: int = SAMPLE_RATE_HZ) -> bytes:
    """Waveforms (B, n) -> which naturals sound in each frame of 40 ms (B, frames, 18)."""
    frame_samples = round(FRAME_SEC * sample_rate_hz)
    graph = GraphBuilder()
    frames = graph.add("Reshape", "waveforms", graph.axes(0, -1, frame_samples))
    hertz = 440 * 2 ** ((np.array([midi_pitch(name) for name in NATURALS]) - 69) / 12)
    phases = 2 * np.pi * np.arange(frame_samples)[:, None] * hertz / sample_rate_hz  # (640, 17)
    powers = [
        graph.add("Mul", wave, wave)
        for wave in (
            graph.add("MatMul", frames, graph.constant(2 / frame_samples * basis))
            for basis in (np.cos(phases), np.sin(phases))
        )
    ]
    amplitudes = graph.add("Sqrt", graph.add("Add", *powers))  # (B, frames, 17)
    loudest = graph.add("ReduceMax", amplitudes, graph.axes(2))
    # A tone counts when it fills half of the frame; the next natural leaks at most half of its amplitude.
    level = graph.add("Max", graph.constant(AMPLITUDE / 2), graph.add("Mul", loudest, graph.constant(0.8)))
    graph.embed(graph.to_float(graph.add("GreaterOrEqual", amplitudes, level)), "frames", "audio_embedding")
    return graph.finish("waveforms", 2, "frames", "audio_embedding")


def ink_graph() -> bytes:
    """Squares (B, 1, 224, 224) -> the direction of (ink, 1) of each patch (B, 49, 2)."""
    graph = GraphBuilder()
    ink = graph.add("Sub", graph.constant(1), "images")
    mean = graph.add("AveragePool", ink, kernel_shape=[32, 32], strides=[32, 32])  # (B, 1, 7, 7)
    found = graph.add("Reshape", mean, graph.axes(0, -1, 1))
    one = graph.add("Add", graph.add("Mul", found, graph.constant(0)), graph.constant(1))
    graph.unit_outputs(graph.add("Concat", found, one, axis=2), "patches", "image_embedding")
    return graph.finish("images", 4, "patches", "image_embedding")


def filter_graph() -> bytes:
    """Waveforms (B, n) -> the direction of two filters over 13 frames around each frame (B, n / 640, 2)."""
    graph = GraphBuilder()
    kernels = np.random.default_rng(1).normal(size=(2, 1, 13 * FRAME_SAMPLES)) / 100
    waves = graph.add("Unsqueeze", "waveforms", graph.axes(1))
    margin = 6 * FRAME_SAMPLES
    filtered = graph.add(
        "Conv", waves, graph.constant(kernels), strides=[FRAME_SAMPLES], pads=[margin, margin]
    )
    graph.unit_outputs(graph.add("Transpose", filtered, perm=[0, 2, 1]), "frames", "audio_embedding")
    return graph.finish("waveforms", 2, "frames", "audio_embedding")


def _ellipse(width_px: float, height_px: float, angle_deg: float) -> Float32:
    """Distance from the middle of a window of 15 x 17 px; 1 on an ellipse that leans to the right."""
    y, x = np.mgrid[-7:8, -8:9].astype(np.float32)
    cos, sin = np.cos(np.deg2rad(angle_deg)), np.sin(np.deg2rad(angle_deg))
    distance: Float32 = np.hypot((x * cos - y * sin) / width_px, (x * sin + y * cos) / height_px)
    return distance


def _filled_head(width_px: float, height_px: float) -> Float32:
    """Ink inside an ellipse, less the ink around it: 1 for a perfect match."""
    distance = _ellipse(width_px, height_px, 25)
    return _mean_over(distance <= 1) - _mean_over((distance > 1.25) & (distance < 1.9))


def _hollow_head() -> Float32:
    """Ink between two ellipses, less the ink inside and around."""
    distance = _ellipse(5.34, 3.72, 14)
    hole = _ellipse(3.9, 1.9, 21) <= 1
    rim = _mean_over((distance <= 1) & ~hole)
    return rim - 0.9 * _mean_over((distance > 1.29) & (distance < 1.75)) - 0.75 * _mean_over(hole)


def _mean_over(where: Bool) -> Float32:
    return (where / where.sum()).astype(np.float32)
