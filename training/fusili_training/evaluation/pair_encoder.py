"""Pairs encoded by a bundle: local and global embeddings of image and recording, and their grids."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import soxr

from fusili_mir.arrays import Float32
from fusili_mir.audio.recording import AudioSamples, RecordingWarning
from fusili_mir.decoding.similarity import frame_similarity, unit_vectors
from fusili_mir.errors import FusiliError, InputError
from fusili_mir.geometry import FrameGrid, PatchGrid
from fusili_mir.model.clips import ClipLayout
from fusili_mir.model.encoded import EncodedAudio
from fusili_mir.model.encoder import Encoder
from fusili_training.data.shard_folder import Pair
from fusili_training.truth import TruthArray

__all__ = ["PROTOCOL_SEC", "EncodedPair", "clips_divide_the_protocol", "compare_squares", "encode_pairs"]

PROTOCOL_SEC = 20.0
"""Length of the clips that go with squares; shorter ones are padded with zeros."""


@dataclass(frozen=True, eq=False)
class EncodedPair:
    """A pair, encoded.

    Attributes
    ----------
    key : str
    patches : np.ndarray [shape=(N, d)]
        Local embeddings, unit vectors.
    audio : EncodedAudio
        The recording: frames, their grid, and onsets.
    image_embedding, audio_embedding : np.ndarray [shape=(d,)]
        Global embeddings.
    patch_grid : PatchGrid
    truth : TruthArray [shape=(notes,)]
    """

    key: str
    patches: Float32
    audio: EncodedAudio
    image_embedding: Float32
    audio_embedding: Float32
    patch_grid: PatchGrid
    truth: TruthArray

    @property
    def frames(self) -> Float32:
        """Local embeddings of the recording, unit vectors [shape=(M, d)]."""
        return self.audio.frames

    @property
    def frame_grid(self) -> FrameGrid:
        """Times of the frames."""
        return self.audio.grid

    @property
    def similarity(self) -> Float32:
        """Cosines of all patches with all frames [shape=(N, M)]."""
        return frame_similarity(self.patches, self.frames)


@dataclass(frozen=True, eq=False)
class _EncodedImage:
    patches: Float32
    pooled: Float32


def encode_pairs(encoder: Encoder, pairs: Iterable[Pair]) -> Iterator[EncodedPair]:
    """Encode pairs; consecutive images of one size go through the graph as a batch.

    Parameters
    ----------
    encoder : Encoder
    pairs : iterable of Pair
        Pairs whose images are segments of the kind that the bundle takes.

    Yields
    ------
    EncodedPair
        One per pair, in order.
    """
    for batch in _batches(pairs, encoder):
        images = _encode_images(encoder, np.stack([_image(pair, encoder) for pair in batch]))
        for pair, image in zip(batch, images, strict=True):
            yield _encode_pair(encoder, pair, image)


def _batches(pairs: Iterable[Pair], encoder: Encoder) -> Iterator[list[Pair]]:
    batch: list[Pair] = []
    for pair in pairs:
        if batch and (len(batch) == encoder.batch_size or batch[0].image.shape != pair.image.shape):
            yield batch
            batch = []
        batch.append(pair)
    if batch:
        yield batch


def _image(pair: Pair, encoder: Encoder) -> Float32:
    """Return an image as the graph takes it, (S, height, width), padded to whole columns."""
    spec = encoder.bundle.image
    height_px, width_px = pair.image.shape
    if pair.strip_height_px != spec.height_px or height_px % spec.height_px:
        raise InputError(
            f"{pair.key}: an image of {width_px} x {height_px} px in strips of {pair.strip_height_px}; the "
            f"bundle {encoder.bundle.manifest.name!r} takes strips or squares of {spec.height_px}"
        )
    if spec.width_px not in (None, width_px):
        raise InputError(f"{pair.key}: an image {width_px} px wide; the bundle takes {spec.width_px}")
    padding = -width_px % spec.patch_width_px
    image = np.pad(pair.image, ((0, 0), (0, padding)), constant_values=255)
    return np.asarray(image / np.float32(255), np.float32).reshape(-1, spec.height_px, image.shape[1])


def _encode_images(encoder: Encoder, images: Float32) -> list[_EncodedImage]:
    spec = encoder.bundle.image
    names = [spec.local_output, spec.global_output]
    outputs = encoder.run_in_memory(encoder.image_session, spec.input, images, names)
    n_patches = spec.rows * (images.shape[3] // spec.patch_width_px)
    if outputs[0].shape[:2] != (len(images), n_patches):
        raise FusiliError(
            f"{spec.graph} gives {spec.local_output} of shape {outputs[0].shape} for images of shape "
            f"{images.shape}, expected {n_patches} patches each; the graph does not fit its manifest"
        )
    return [_EncodedImage(patches, pooled) for patches, pooled in zip(*outputs, strict=True)]


def _encode_pair(encoder: Encoder, pair: Pair, image: _EncodedImage) -> EncodedPair:
    spec = encoder.bundle.image
    audio = _encode_square_clip(encoder, pair) if spec.segment == "square" else _encode_clip(encoder, pair)
    cols = len(image.patches) // spec.rows
    patch_height_px = pair.image.shape[0] / spec.rows
    return EncodedPair(
        pair.key,
        image.patches,
        audio,
        image.pooled,
        unit_vectors(audio.clip_embeddings.mean(axis=0, keepdims=True))[0],
        PatchGrid(spec.rows, cols, spec.patch_width_px, patch_height_px),
        pair.truth,
    )


def _encode_clip(encoder: Encoder, pair: Pair) -> EncodedAudio:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecordingWarning)  # clips may be silent or short
        return encoder.encode_recording(AudioSamples(pair.waveform, pair.sample_rate_hz, pair.key))


def _encode_square_clip(encoder: Encoder, pair: Pair) -> EncodedAudio:
    """Encode 20 s as in training: windows side by side, at the level of the file."""
    spec = encoder.bundle.audio
    listener = encoder.listener()
    blocks = listener.listen([_protocol_waveform(encoder, pair)])
    frames, clips = encoder.encode_blocks(blocks, ClipLayout.of(spec).apart())
    grid = FrameGrid(len(frames), spec.frame_sec, 0.0, PROTOCOL_SEC)
    return EncodedAudio(frames, grid, clips, listener.onsets(), listener.envelope())


def _protocol_waveform(encoder: Encoder, pair: Pair) -> Float32:
    """Return 20 s at the bundle's rate, padded with zeros."""
    spec = encoder.bundle.audio
    waveform = pair.waveform
    if pair.sample_rate_hz != spec.sample_rate_hz:
        waveform = soxr.resample(waveform, pair.sample_rate_hz, spec.sample_rate_hz)
    n_samples = round(PROTOCOL_SEC * spec.sample_rate_hz)
    return np.pad(waveform[:n_samples], (0, max(0, n_samples - len(waveform)))).astype(np.float32)


def compare_squares(
    encoder: Encoder, pairs: Iterable[Pair]
) -> Iterator[tuple[Pair, PatchGrid, FrameGrid, Float32]]:
    """Compare pairs of squares on the device, in batches: only their similarities leave it.

    Parameters
    ----------
    encoder : Encoder
        A bundle that takes squares and clips that divide 20 s.
    pairs : iterable of Pair

    Yields
    ------
    Pair, PatchGrid, FrameGrid, np.ndarray [shape=(N, M)]
        The pair, its grids, and the cosines of its patches and frames.
    """
    image, audio = encoder.bundle.image, encoder.bundle.audio
    n_samples = (audio.clip_frames or 1) * audio.frame_samples
    for batch in _batches(pairs, encoder):
        images = np.stack([_image(pair, encoder) for pair in batch])
        waveforms = np.stack([_protocol_waveform(encoder, pair) for pair in batch])
        found = encoder.compare_squares(images, waveforms.reshape(len(batch), -1, n_samples))
        patches = PatchGrid(
            image.rows, images.shape[3] // image.patch_width_px, image.patch_width_px, image.patch_height_px
        )
        frames = FrameGrid(found.shape[2], audio.frame_sec, 0.0, PROTOCOL_SEC)
        for pair, similarity in zip(batch, found, strict=True):
            yield pair, patches, frames, similarity


def clips_divide_the_protocol(encoder: Encoder) -> bool:
    """Return whether a bundle takes squares, and clips of which a whole number make 20 s."""
    audio = encoder.bundle.audio
    if encoder.bundle.image.segment != "square" or audio.clip_frames is None:
        return False
    n_samples = round(PROTOCOL_SEC * audio.sample_rate_hz)
    return n_samples % (audio.clip_frames * audio.frame_samples) == 0
