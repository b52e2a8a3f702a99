from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusili_mir.errors import InputError
from fusili_mir.model.clips import Clip, ClipLayout, cut_clips
from fusili_mir.model.manifest import AudioSpec


def frames_of(samples: np.ndarray, frame_samples: int, context_frames: int) -> np.ndarray:
    """A graph that looks to both sides: each frame is the sum of itself and its context, zeros outside."""
    sums = samples.reshape(-1, frame_samples).sum(axis=1)
    padded = np.pad(sums, context_frames)
    return np.array([padded[m : m + 2 * context_frames + 1].sum() for m in range(len(sums))])


def clips_of(samples: np.ndarray, layout: ClipLayout, n_block: int) -> list[Clip]:
    blocks = (samples[start : start + n_block] for start in range(0, len(samples), n_block))
    return list(cut_clips(blocks, layout))


@settings(deadline=None)
@given(
    n_samples=st.integers(1, 600),
    frame_samples=st.integers(1, 5),
    context_frames=st.integers(0, 4),
    more_frames=st.integers(1, 20),
    pad_last=st.booleans(),
    n_block=st.integers(1, 300),
)
def test_stitched_frames_are_those_of_one_long_pass(
    n_samples: int, frame_samples: int, context_frames: int, more_frames: int, pad_last: bool, n_block: int
) -> None:
    samples = np.random.default_rng(0).integers(-9, 9, n_samples).astype(np.float32)  # sums are exact
    layout = ClipLayout(frame_samples, 2 * context_frames + more_frames, context_frames, pad_last)
    clips = clips_of(samples, layout, n_block)
    stitched = [
        frames_of(clip.samples, frame_samples, context_frames)[clip.keep_from : clip.keep_to]
        for clip in clips
    ]
    whole = np.pad(samples, (0, -n_samples % frame_samples))
    assert np.array_equal(np.concatenate(stitched), frames_of(whole, frame_samples, context_frames))
    lengths = {len(clip.samples) for clip in (clips if pad_last else clips[:-1])}
    assert lengths <= {layout.clip_frames * frame_samples}


def test_clips_overlap_by_their_contexts() -> None:
    clips = clips_of(np.arange(20, dtype=np.float32), ClipLayout(1, 8, 2, pad_last=True), 20)
    assert [clip.samples[0] for clip in clips] == [0, 4, 8, 12]
    assert [(clip.keep_from, clip.keep_to) for clip in clips] == [(0, 6), (2, 6), (2, 6), (2, 8)]


def test_an_incomplete_last_frame_is_padded_with_silence() -> None:
    (clip,) = clips_of(np.ones(5, np.float32), ClipLayout(4, 10, 1, pad_last=False), 5)
    assert clip.samples.tolist() == [1, 1, 1, 1, 1, 0, 0, 0]
    assert (clip.keep_from, clip.keep_to) == (0, 2)


def test_no_sound_gives_no_clips() -> None:
    assert clips_of(np.empty(0, np.float32), ClipLayout(4, 10, 1, pad_last=True), 5) == []


def spec(clip_sec: float | None, context_sec: float) -> AudioSpec:
    return AudioSpec("a.onnx", "", "w", "l", "g", 16_000, clip_sec, 0.04, context_sec)


def test_a_bundle_says_how_its_clips_are_cut() -> None:
    assert ClipLayout.of(spec(10.0, 0.5)) == ClipLayout(640, 250, 13, pad_last=True)
    assert ClipLayout.of(spec(None, 0.5)) == ClipLayout(640, 500, 13, pad_last=False)
    assert ClipLayout.of(spec(None, 10.0)).clip_frames == 4_000  # a wide context needs longer clips


def test_clips_that_are_all_context_are_refused() -> None:
    with pytest.raises(InputError, match="clips of 4 frames with a context of 2"):
        ClipLayout(10, 4, 2, pad_last=True)
