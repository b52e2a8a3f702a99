"""The inputs and outputs of the two graphs of a model, as stated in the manifest of a bundle."""

from __future__ import annotations

from fusili_export.receptive_field import context_sec
from fusili_mir.model.bundle import AudioSpec, ImageSpec
from fusili_training.backbones import AudioTower, ImageTower

__all__ = ["audio_spec", "image_spec"]


def image_spec(tower: ImageTower) -> ImageSpec:
    """Describe the graph of an image tower; the checksum is still empty."""
    geometry = tower.geometry
    return ImageSpec(
        graph="image.onnx",
        sha256="",
        input="images",
        local_output="patches",
        global_output="image_embedding",
        segment="square" if geometry.staff_space_px is None else "staff_strips",
        width_px=geometry.width_px,
        height_px=geometry.height_px,
        space_px=geometry.staff_space_px,
        margin_spaces=geometry.margin_spaces,
        rows=geometry.height_px // geometry.patch_height_px,
        patch_width_px=geometry.patch_width_px,
        patch_height_px=geometry.patch_height_px,
    )


def audio_spec(tower: AudioTower) -> AudioSpec:
    """Describe the graph of an audio tower; the checksum is still empty.

    For a tower that encodes windows separately, a clip is one window: a longer clip would have a seam inside.
    """
    geometry = tower.geometry
    window = geometry.window_samples
    return AudioSpec(
        graph="audio.onnx",
        sha256="",
        input="waveforms",
        local_output="frames",
        global_output="audio_embedding",
        sample_rate_hz=geometry.sample_rate_hz,
        clip_sec=None if window is None else window / geometry.sample_rate_hz,
        frame_sec=geometry.frame_sec,
        context_sec=context_sec(tower),
    )
