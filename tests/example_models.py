"""Sizes of models for tests: small enough for a CPU, with all parts of the full size."""

TINY_CLIP_CLAP = {
    "embedding_dim": 16,
    "image_width": 32,
    "image_layers": 1,
    "image_heads": 2,
    "audio_width": 8,
    "audio_depths": (1, 1, 1, 1),
    "audio_heads": (1, 1, 2, 2),
}
