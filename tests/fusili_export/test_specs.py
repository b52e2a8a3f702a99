"""What manifests state about the two backbones."""

import pytest

from fusili_export.specs import audio_spec, image_spec
from fusili_training.backbones import build_backbone

TINY_CLIP_CLAP = {
    "embedding_dim": 16,
    "image_width": 32,
    "image_layers": 1,
    "image_heads": 2,
    "audio_width": 8,
    "audio_depths": (1, 1, 1, 1),
    "audio_heads": (1, 1, 2, 2),
}


def test_small_takes_strips_of_any_width_and_sound_of_any_length() -> None:
    backbone = build_backbone("small", {"width": 16, "embedding_dim": 8})
    image, audio = image_spec(backbone.image), audio_spec(backbone.audio)
    assert (image.segment, image.width_px, image.height_px, image.rows) == ("staff_strips", None, 128, 1)
    assert (image.space_px, image.margin_spaces) == (8, 6)
    assert (image.patch_width_px, image.patch_height_px) == (4, 128)
    assert (audio.sample_rate_hz, audio.clip_sec, audio.frame_sec) == (16_000, None, 0.04)
    assert (audio.context_sec, audio.context_frames) == (pytest.approx(0.86), 22)


def test_clip_clap_takes_squares_and_one_window_of_32_distinct_frames_a_clip() -> None:
    backbone = build_backbone("clip-clap", TINY_CLIP_CLAP)
    image, audio = image_spec(backbone.image), audio_spec(backbone.audio)
    assert (image.segment, image.width_px, image.height_px, image.rows) == ("square", 224, 224, 7)
    assert (image.space_px, image.margin_spaces) == (None, None)
    assert (audio.sample_rate_hz, audio.clip_sec, audio.frame_sec) == (48_000, 10, 0.3125)
    assert (audio.clip_frames, audio.context_frames) == (32, 1)
