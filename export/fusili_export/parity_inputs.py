"""Inputs for the comparison of graphs: noise and music, in sizes that no graph was traced with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

import fusili_mir
from fusili_mir.arrays import Float32
from fusili_mir.model.bundle import AudioSpec, ImageSpec
from fusili_mir.model.score_segments import cut_image, segment_pages
from fusili_mir.pages.pages import open_pages

__all__ = ["ParityCase", "audio_cases", "image_cases"]

_EXAMPLE_SCORE = Path(fusili_mir.__file__).parent / "demo" / "files" / "hensel_bitte.mxl"
_NOISE_BATCHES = (1, 3, 8)
_CHORDS = ((60, 64, 67), (57, 60, 65), (59, 62, 67), (48, 64, 72))  # MIDI pitches
_CHORD_SEC = 0.6
_PEAK, _QUIET = 0.3, 1e-3


@dataclass(frozen=True)
class ParityCase:
    """A batch that both torch and onnxruntime run.

    Attributes
    ----------
    kind : str
        Name of the kind of input, for the table.
    inputs : np.ndarray, float32
        Images [shape=(B, S, height, width)] or waveforms [shape=(B, n_samples)].
    """

    kind: str
    inputs: Float32


def image_cases(spec: ImageSpec) -> Iterator[ParityCase]:
    """Yield noise and systems of an engraved song, some of them padded with paper.

    Parameters
    ----------
    spec : ImageSpec
        Spec of the graph. Widths and numbers of staves that it leaves free differ from case to case.
    """
    rng = np.random.default_rng(0)
    for number, batch in enumerate(_NOISE_BATCHES):
        n_staves = 1 if spec.segment == "square" else 1 + number
        width_px = spec.width_px or spec.patch_width_px * (17 + 30 * number)
        yield ParityCase("noise", rng.random((batch, n_staves, spec.height_px, width_px), dtype=np.float32))
    engraved = _engraved_segments(spec, n_segments=3)
    yield ParityCase("engraved", engraved)
    padded = engraved[:1].copy()
    padded[:, 1:] = 1
    padded[..., padded.shape[3] // 2 :] = 1
    yield ParityCase("paper-padded", np.concatenate([padded, engraved[1:2]]))


def audio_cases(spec: AudioSpec) -> Iterator[ParityCase]:
    """Yield noise and chords: unchanged, padded with zeros, quiet, and loud.

    Parameters
    ----------
    spec : AudioSpec
        Spec of the graph. If it leaves the length free, the length differs from case to case.
    """
    rng = np.random.default_rng(0)
    for number, batch in enumerate(_NOISE_BATCHES):
        n_samples = _length(spec, 41 + 50 * number)
        yield ParityCase("noise", np.float32(0.1) * rng.standard_normal((batch, n_samples), dtype=np.float32))
    music = _chords(spec.sample_rate_hz, _length(spec, 75))
    yield ParityCase("chords", music[None])
    padded = np.stack([music, music, np.zeros_like(music)])
    padded[0, len(music) // 2 :] = 0
    padded[1, 7 * len(music) // 8 :] = 0
    yield ParityCase("zero-padded", padded)
    yield ParityCase("quiet", _QUIET * music[None])
    yield ParityCase("loud", np.clip(10 * music[None], -1, 1))


def _engraved_segments(spec: ImageSpec, n_segments: int) -> Float32:
    """Return the first segments of a song [shape=(n_segments, S, height, width)], padded with paper."""
    pages = open_pages(_EXAMPLE_SCORE)
    cut = [cut_image(segment, pages.images) for segment in islice(segment_pages(pages, spec), n_segments)]
    width_px = spec.width_px or max(image.shape[2] for image in cut)
    images = np.ones((len(cut), cut[0].shape[0], spec.height_px, width_px), np.float32)
    for canvas, image in zip(images, cut, strict=True):
        canvas[:, :, : image.shape[2]] = image
    return images


def _length(spec: AudioSpec, n_frames: int) -> int:
    """Return the number of samples of a clip; `n_frames` applies if the length is free."""
    return (spec.clip_frames or n_frames) * spec.frame_samples


def _chords(sample_rate_hz: int, n_samples: int) -> Float32:
    """Return decaying chords with overtones [shape=(n_samples,)]."""
    chord_samples = round(_CHORD_SEC * sample_rate_hz)
    seconds = np.arange(chord_samples) / sample_rate_hz
    sounds = [
        sum(
            np.sin(2 * np.pi * 440 * 2 ** ((pitch - 69) / 12) * overtone * seconds) / overtone
            for pitch in chord
            for overtone in (1, 2, 3, 4)
        )
        * np.exp(-3 * seconds)
        for chord in _CHORDS
    ]
    music = np.resize(np.concatenate(sounds), n_samples)
    return np.asarray(_PEAK * music / np.abs(music).max(), np.float32)
