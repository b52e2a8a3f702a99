"""Encoding: pages and recordings -> embeddings, in batches through the graphs of a bundle.

    encoder = Encoder(load_bundle("bundle"))
    score = encoder.encode_pages(open_pages("piece.musicxml"))
    audio = encoder.encode_recording("recording.wav")

The functions `encode_pages` and `encode_recording` do the same for a single use.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fusili_mir.arrays import Float32
from fusili_mir.audio.heard_recording import HeardRecording
from fusili_mir.audio.pitch_curve import PitchCurve, Retuning
from fusili_mir.audio.recording import RecordingLike
from fusili_mir.errors import FusiliError, InputError
from fusili_mir.geometry import FrameGrid
from fusili_mir.growing_rows import GrowingRows
from fusili_mir.hearing.networks import NetworkName, find_network
from fusili_mir.hearing.note_reading import READING_INPUT, READING_OUTPUTS, pitches_on_axis
from fusili_mir.hearing.onset_listener import OnsetListener
from fusili_mir.model.batch_size import choose_batch_size, typical_batch
from fusili_mir.model.bundle import Bundle, Tower, as_bundle
from fusili_mir.model.clips import Clip, ClipLayout, cut_clips
from fusili_mir.model.encoded import EncodedAudio, EncodedScore
from fusili_mir.model.retuned_frames import retuned_envelope, retuned_frames, retuned_onsets
from fusili_mir.model.score_segments import ScoreSegment, cut_image, segment_pages
from fusili_mir.pages.score_axis import ScoreAxis
from fusili_mir.progress import progress_bar
from fusili_mir.sessions.graph_session import DeviceMemoryError, GraphSession, open_session
from fusili_mir.sessions.runs_at_once import map_at_once

if TYPE_CHECKING:  # partitura, which pages need, is slow to import
    from fusili_mir.pages.pages import Pages

__all__ = ["EncodedAudio", "EncodedScore", "Encoder", "encode_pages", "encode_recording"]

SIMILARITY_GRAPH = Path(__file__).with_name("similarity.onnx")
"""Cosines of unit vectors: patches (B, N, d) and frames (B * windows, m, d) -> similarity (B, N, windows * m)."""

_MAX_BATCH_PX = 8_000_000  # systems of many staves go in smaller batches


@dataclass(frozen=True, eq=False)
class _EncodedClip:
    """A clip, whether it is silent throughout, its frames [shape=(M, d)] and its embedding [shape=(d,)]."""

    clip: Clip
    is_silent: bool
    frames: Float32
    pooled: Float32


class Encoder:
    """The two graphs of a bundle and the networks that ship; each is opened when it is first needed, and kept.

    Parameters
    ----------
    bundle : str, Path or Bundle, optional
        The model; by default the bundle that is installed with the package.
    device : str
        See `fusili_mir.sessions.graph_session.open_session`.
    n_threads : int, optional
        Number of CPU threads; see `fusili_mir.sessions.graph_session.open_session`.
    batch_size : int, optional
        Largest number of segments or clips that go through a graph together; by default what the memory of the
        device allows, see `fusili_mir.model.batch_size`. Batches that turn out too large are halved.
    device_options : mapping of str to str, optional
        Options of the execution provider, as onnxruntime names them.
    """

    def __init__(
        self,
        bundle: str | os.PathLike[str] | Bundle | None = None,
        device: str = "auto",
        n_threads: int | None = None,
        batch_size: int | None = None,
        device_options: Mapping[str, str] | None = None,
    ) -> None:
        if batch_size is not None and batch_size < 1:
            raise InputError(f"a batch size of {batch_size}, expected at least 1")
        self.bundle = as_bundle(bundle)
        self._batch_size, self._device, self._n_threads = batch_size, device, n_threads
        self._device_options = device_options

    @property
    def batch_size(self) -> int:
        """Largest number of segments or clips that go through a graph together."""
        if self._batch_size is None:
            self._batch_size = choose_batch_size(self.bundle, self.audio_session.place)
        return self._batch_size

    @cached_property
    def image_session(self) -> GraphSession:
        """The image graph."""
        return self._open("image")

    @cached_property
    def audio_session(self) -> GraphSession:
        """The audio graph."""
        return self._open("audio")

    def _open(self, tower: Tower) -> GraphSession:
        session = self._session(self.bundle.read_graph(tower), str(self.bundle.graph_path(tower)))
        if session.device != "cpu":  # the first batch finds kernels and takes long: let it be a small one
            spec = self.bundle.spec(tower)
            names = [spec.local_output, spec.global_output]
            session.run(spec.input, typical_batch(self.bundle, tower), names)
        return session

    def _session(self, graph: bytes, name: str) -> GraphSession:
        return open_session(graph, self._device, self._n_threads, self._device_options, name)

    @cached_property
    def _onset_session(self) -> GraphSession:
        return self._network("onsets")

    @cached_property
    def _reading_session(self) -> GraphSession:
        return self._network("reading")

    def _network(self, name: NetworkName) -> GraphSession:
        network = find_network(name)
        return self._session(network.read(), str(network.file))

    @cached_property
    def _similarity_session(self) -> GraphSession:
        return self._session(SIMILARITY_GRAPH.read_bytes(), SIMILARITY_GRAPH.name)

    def compare_squares(self, images: Float32, waveforms: Float32) -> Float32:
        """Compare pairs of squares and recordings; embeddings never leave the device.

        Parameters
        ----------
        images : np.ndarray [shape=(B, 1, height, width)]
            0 is ink, 1 is paper.
        waveforms : np.ndarray [shape=(B, windows, n_samples)]
            The clips of each recording, side by side.

        Returns
        -------
        np.ndarray [shape=(B, N, M)]
            Cosines of the patches and frames of each pair.
        """
        image, audio = self.bundle.image, self.bundle.audio
        windows = waveforms.reshape(-1, waveforms.shape[2])
        (patches,) = self.image_session.run_bound({image.input: images}, [image.local_output])
        (frames,) = self.audio_session.run_bound({audio.input: windows}, [audio.local_output])
        inputs = {"patches": patches, "frames": frames}
        (similarity,) = self._similarity_session.run_bound(inputs, ["similarity"])
        return similarity.to_numpy()

    def encode_pages(self, pages: Pages, progress: bool = False) -> EncodedScore:
        """Encode a score, and read the notes on its images.

        Parameters
        ----------
        pages : Pages
        progress : bool
            Whether to show progress on standard error.

        Returns
        -------
        EncodedScore
        """
        return self.with_pitches(self.embed_pages(pages, progress), pages, progress)

    def embed_pages(self, pages: Pages, progress: bool = False) -> EncodedScore:
        """Encode a score without reading its notes; see `encode_pages`."""
        segments = segment_pages(pages, self.bundle.image)
        n_columns = sum(len(segment.columns) for segment in segments)
        n_rows, d = self.bundle.image.rows, self.bundle.manifest.embedding_dim
        embeddings = GrowingRows(np.float32, (n_rows, d), n_columns)
        masks = GrowingRows(np.bool_, (n_rows,), n_columns)
        pooled = GrowingRows(np.float32, (d,), len(segments))
        for batch, grids, whole in self._encode_segments(segments, pages, progress):
            for segment, grid in zip(batch, grids, strict=True):
                kept = grid[segment.keep_from : segment.keep_from + len(segment.columns)]
                embeddings.add(kept * segment.rows_shown[:, None])
                masks.add(np.broadcast_to(segment.rows_shown, kept.shape[:2]))
            pooled.add(whole)
        axis = ScoreAxis(np.concatenate([segment.columns for segment in segments]))
        return EncodedScore(axis, embeddings.array(), masks.array(), pooled.array())

    def pool_segments(self, segments: Sequence[ScoreSegment], pages: Pages) -> Float32:
        """Return the global embeddings of segments of some pages [shape=(n, d)]."""
        pooled = [whole for _, _, whole in self._encode_segments(segments, pages, progress=False)]
        return np.concatenate([np.empty((0, self.bundle.manifest.embedding_dim), np.float32), *pooled])

    def _encode_segments(
        self, segments: Sequence[ScoreSegment], pages: Pages, progress: bool
    ) -> Iterator[tuple[list[ScoreSegment], Float32, Float32]]:
        """Yield batches, their patches column by column [shape=(B, columns, rows, d)], and global embeddings."""
        spec = self.bundle.image
        batches = list(_segment_batches(segments, self.batch_size))
        stacks = (
            _stack([cut_image(segment, pages.images) for segment in batch], spec.width_px)
            for batch in progress_bar(batches, "reading the score", shown=progress)
        )

        def run(images: Float32) -> tuple[Float32, Float32]:
            n_columns = images.shape[3] // spec.patch_width_px
            local, whole = self._run("image", images, spec.rows * n_columns)
            return local.reshape(len(images), spec.rows, n_columns, -1).swapaxes(1, 2), whole

        encoded = map_at_once(run, stacks, self.image_session.n_at_once)
        for batch, (grids, whole) in zip(batches, encoded, strict=True):
            yield batch, grids, whole

    def with_pitches(self, score: EncodedScore, pages: Pages, progress: bool = False) -> EncodedScore:
        """Add the pitches that are read off page images; those of symbolic scores are known."""
        if pages.score is not None:
            return score

        def read(strips: Float32) -> list[Float32]:
            return self.run_in_memory(self._reading_session, READING_INPUT, strips, list(READING_OUTPUTS))

        n_at_once = self._reading_session.n_at_once
        return replace(score, pitches=pitches_on_axis(read, pages, score.axis, n_at_once, progress))

    def check(self) -> None:
        """Raise now what would be raised later: a missing runtime, a device or a graph that cannot be used."""
        self.bundle.read_graph("image")
        _ = self.audio_session, self._onset_session, self._reading_session

    def encode_recording(
        self,
        recording: RecordingLike | HeardRecording,
        progress: bool = False,
        pitch: PitchCurve | None = None,
    ) -> EncodedAudio:
        """Encode a recording.

        Parameters
        ----------
        recording : str, Path, (samples, rate), file object, Recording or HeardRecording
            Anything that `open_recording` opens, or one that has been read already at the bundle's sampling rate.
        progress : bool
            Whether to show progress on standard error.
        pitch : PitchCurve, optional
            How far the recording sounds above the pages of its score: it is encoded as if it sounded at their
            pitch. All times remain those of the recording.

        Returns
        -------
        EncodedAudio
        """
        if isinstance(recording, HeardRecording):
            return self._encode_heard(recording, progress, pitch)
        with HeardRecording(recording, self.bundle.audio.sample_rate_hz, progress) as heard:
            return self._encode_heard(heard, progress, pitch)

    def encode_samples(self, samples: Float32) -> Float32:
        """Encode a few seconds of mono sound at the bundle's sampling rate; returns frames [shape=(M, d)]."""
        return self.encode_blocks([samples])[0]

    def _encode_heard(self, heard: HeardRecording, progress: bool, pitch: PitchCurve | None) -> EncodedAudio:
        spec = self.bundle.audio
        if heard.sample_rate_hz != spec.sample_rate_hz:
            raise InputError(
                f"{heard.name}: read at {heard.sample_rate_hz} Hz, but the bundle needs {spec.sample_rate_hz} Hz"
            )
        blocks, n_samples = heard.blocks(progress), len(heard)
        retuning = None
        if pitch is not None:
            retuning = Retuning(pitch, len(heard), heard.sample_rate_hz, heard.start_sec)
            blocks, n_samples = retuning.read(blocks), retuning.n_read
        listener = self.listener(heard.usual_gain, heard.start_sec, n_samples)
        frames, pooled = self._encode_clips(
            cut_clips(listener.listen(blocks), ClipLayout.of(spec)), n_samples, silence_is_zero=True
        )
        onsets, envelope = listener.onsets(), listener.envelope()
        grid = FrameGrid(len(frames), spec.frame_sec, heard.start_sec, heard.duration_sec, heard.start_sec)
        if retuning is not None:
            frames, grid = retuned_frames(frames, spec.frame_sec, retuning)
            onsets, envelope = retuned_onsets(onsets, retuning), retuned_envelope(envelope, retuning)
        return EncodedAudio(frames, grid, pooled, onsets, envelope)

    def listener(self, gain: float = 1.0, start_sec: float = 0.0, n_samples: int = 0) -> OnsetListener:
        """Return what hears onsets in sound at the bundle's sampling rate; see `OnsetListener`."""
        rate_hz = self.bundle.audio.sample_rate_hz
        return OnsetListener(self._onset_session, rate_hz, gain, start_sec, n_samples)

    def encode_blocks(
        self, blocks: Iterable[Float32], layout: ClipLayout | None = None
    ) -> tuple[Float32, Float32]:
        """Encode a stream of mono sound at the bundle's sampling rate.

        Parameters
        ----------
        blocks : iterable of np.ndarray [shape=(n,)]
        layout : ClipLayout, optional
            How it is cut into clips; by default as the bundle says.

        Returns
        -------
        frames, clips : np.ndarray [shape=(M, d), (n_clips, d)]
        """
        return self._encode_clips(cut_clips(blocks, layout or ClipLayout.of(self.bundle.audio)))

    def _encode_clips(
        self, clips: Iterable[Clip], n_samples: int = 0, silence_is_zero: bool = False
    ) -> tuple[Float32, Float32]:
        """Return frames and clips of about `n_samples` samples; the frames of silent clips may stay 0."""
        d = self.bundle.manifest.embedding_dim
        n_frames = n_samples // self.bundle.audio.frame_samples + 1
        frames, pooled = GrowingRows(np.float32, (d,), n_frames), GrowingRows(np.float32, (d,))
        silences: dict[int, tuple[Float32, Float32]] = {}

        def encode(batch: Sequence[Clip]) -> list[_EncodedClip]:
            return list(self._encode_batch(batch, silences))

        batches = _clip_batches(clips, self.batch_size)
        for encoded in map_at_once(encode, batches, self.audio_session.n_at_once):
            for each in encoded:
                if each.is_silent and silence_is_zero:
                    frames.pass_over(each.clip.keep_to - each.clip.keep_from)
                else:
                    frames.add(each.frames[each.clip.keep_from : each.clip.keep_to])
                pooled.add(each.pooled[None])
        return frames.array(), pooled.array()

    def _encode_batch(
        self, batch: Sequence[Clip], silences: dict[int, tuple[Float32, Float32]]
    ) -> Iterator[_EncodedClip]:
        """Yield the clips of a batch, encoded; silence is encoded once."""
        n_samples = len(batch[0].samples)
        n_frames = n_samples // self.bundle.audio.frame_samples
        is_silent = [not clip.samples.any() for clip in batch]
        if any(is_silent) and n_samples not in silences:
            local, whole = self._run("audio", np.zeros((1, n_samples), np.float32), n_frames)
            silences[n_samples] = local[0], whole[0]
        sounding = [clip.samples for clip, silent in zip(batch, is_silent, strict=True) if not silent]
        encoded = iter(
            zip(*self._run("audio", np.stack(sounding), n_frames), strict=True) if sounding else ()
        )
        for clip, silent in zip(batch, is_silent, strict=True):
            yield _EncodedClip(clip, silent, *(silences[n_samples] if silent else next(encoded)))

    def _run(self, tower: Tower, batch: Float32, n_tokens: int) -> list[Float32]:
        """Return local [shape=(B, n_tokens, d)] and global [shape=(B, d)] embeddings of a batch."""
        spec = self.bundle.spec(tower)
        session = self.image_session if tower == "image" else self.audio_session
        names = [spec.local_output, spec.global_output]
        outputs = self.run_in_memory(session, spec.input, batch, names)
        d = self.bundle.manifest.embedding_dim
        for name, output, expected in zip(
            names, outputs, [(len(batch), n_tokens, d), (len(batch), d)], strict=True
        ):
            if output.shape != expected:
                raise FusiliError(
                    f"{spec.graph} gives {name} of shape {output.shape} for a batch of shape {batch.shape}, "
                    f"expected {expected}: the graph does not match its manifest"
                )
            if not np.isfinite(output).all():
                raise FusiliError(f"{spec.graph} gives {name} that are not finite; export the bundle again")
        return outputs

    def run_in_memory(
        self, session: GraphSession, name: str, batch: Float32, outputs: list[str]
    ) -> list[Float32]:
        """Run a batch, in halves if the device has too little memory for it; later batches are then smaller."""
        try:
            return session.run(name, batch, outputs)
        except DeviceMemoryError:
            if len(batch) == 1:
                raise
            half = (len(batch) + 1) // 2
            self._batch_size = min(half, self.batch_size)
            halves = [
                self.run_in_memory(session, name, part, outputs) for part in (batch[:half], batch[half:])
            ]
            return [np.concatenate(parts) for parts in zip(*halves, strict=True)]


def encode_pages(
    pages: Pages, bundle: Bundle, device: str = "auto", n_threads: int | None = None, progress: bool = False
) -> EncodedScore:
    """Encode a score with a bundle; see `Encoder.encode_pages`."""
    return Encoder(bundle, device, n_threads).encode_pages(pages, progress)


def encode_recording(
    recording: RecordingLike,
    bundle: Bundle,
    device: str = "auto",
    n_threads: int | None = None,
    progress: bool = False,
) -> EncodedAudio:
    """Encode a recording with a bundle; see `Encoder.encode_recording`."""
    return Encoder(bundle, device, n_threads).encode_recording(recording, progress)


def _segment_batches(segments: Iterable[ScoreSegment], batch_size: int) -> Iterator[list[ScoreSegment]]:
    """Group segments in reading order, so that each page is drawn once."""
    batch: list[ScoreSegment] = []
    n_px = 0
    for segment in segments:
        size_px = segment.segment.width_px * segment.segment.height_px
        if batch and (len(batch) == batch_size or n_px + size_px > _MAX_BATCH_PX):
            yield batch
            batch, n_px = [], 0
        batch.append(segment)
        n_px += size_px
    if batch:
        yield batch


def _clip_batches(clips: Iterable[Clip], batch_size: int) -> Iterator[list[Clip]]:
    """Group clips of equal length."""
    batch: list[Clip] = []
    for clip in clips:
        if batch and (len(batch) == batch_size or len(batch[0].samples) != len(clip.samples)):
            yield batch
            batch = []
        batch.append(clip)
    if batch:
        yield batch


def _stack(images: list[Float32], width_px: int | None) -> Float32:
    """Stack images [shape=(S, height, width)] of any S and width as (B, S, height, width), padded with paper."""
    n_strips = max(image.shape[0] for image in images)
    width_px = width_px or max(image.shape[2] for image in images)
    stacked = np.ones((len(images), n_strips, images[0].shape[1], width_px), np.float32)
    for canvas, image in zip(stacked, images, strict=True):
        canvas[: image.shape[0], :, : image.shape[2]] = image
    return stacked
