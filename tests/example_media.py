"""Sound files and videos that libsndfile does not read, written with PyAV."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt

__all__ = ["write_media"]


def write_media(
    filename: Path,
    samples: npt.NDArray[np.float32],
    rate_hz: int,
    codec: str = "aac",
    video: bool = False,
    starts_at_sec: float = 0.0,
    others: tuple[npt.NDArray[np.float32], ...] = (),
    stream_rate_hz: int = 48_000,
    late_sec: Callable[[float], float] = lambda _: 0.0,
) -> None:
    """Write samples [shape=(n,) or (2, n)] as the first audio stream of a file, and `others` as further ones.

    With `video`, a black picture comes first; `starts_at_sec` lets the sound begin later than the picture;
    `late_sec` says by how much the time stamp of a packet is too late.
    """
    with av.open(str(filename), "w") as container:
        picture: Any = container.add_stream("mpeg4", rate=10) if video else None
        tracks: list[Any] = [container.add_stream(codec, rate=stream_rate_hz) for _ in (samples, *others)]
        for track, sound in zip(tracks, (samples, *others), strict=True):
            track.layout, track.bit_rate = "mono" if sound.ndim == 1 else "stereo", 96_000
        if picture is not None:
            picture.width, picture.height, picture.pix_fmt = 64, 64, "yuv420p"
            black = np.zeros((64, 64, 3), np.uint8)
            for number in range(max(1, round(10 * len(samples) / rate_hz))):
                frame = av.VideoFrame.from_ndarray(black, format="rgb24")
                frame.pts = number
                container.mux(picture.encode(frame))
            container.mux(picture.encode())
        for track, sound in zip(tracks, (samples, *others), strict=True):
            context = track.codec_context
            resampler = av.AudioResampler(
                context.format, track.layout, stream_rate_hz, context.frame_size or None
            )
            planes = np.atleast_2d(np.asarray(sound, np.float32))
            whole = av.AudioFrame.from_ndarray(planes, "fltp", track.layout.name)
            whole.sample_rate, whole.time_base = rate_hz, Fraction(1, rate_hz)
            whole.pts = round(starts_at_sec * rate_hz)
            for piece in (*resampler.resample(whole), *resampler.resample(None), None):
                for packet in track.encode(piece):
                    packet.pts += round(late_sec(float(packet.pts * packet.time_base)) / packet.time_base)
                    packet.dts = packet.pts
                    container.mux(packet)
