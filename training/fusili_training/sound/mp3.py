"""What an MP3 file at a low rate leaves of a sound."""

from __future__ import annotations

import io

import numpy as np
import soundfile

from fusili_mir.arrays import Float32

__all__ = ["through_mp3"]

_LEAST, _MOST = 0.5, 0.88  # libsndfile's levels: 80 to 25 kbit/s at 16 kHz
_DELAY = 1105  # samples, where frames are too small for the tag that tells a reader to drop them
_LOUDEST = 0.98


def through_mp3(clip: Float32, sample_rate_hz: int, loss: float) -> Float32:
    """Write a clip [shape=(n,)] as MP3 and read it again: at 80 kbit/s with a loss of 0, at 25 with one of 1.

    Those are the rates at 16 kHz. Onsets stay where they are; a clip that would be clipped is scaled down first.
    """
    peak = float(np.abs(clip).max(initial=0.0))
    if not peak:
        return clip
    gain = min(1.0, _LOUDEST / peak)
    file = io.BytesIO()
    with soundfile.SoundFile(
        file,
        "w",
        sample_rate_hz,
        channels=1,
        format="MP3",
        subtype="MPEG_LAYER_III",
        compression_level=_LEAST + (_MOST - _LEAST) * loss,
        bitrate_mode="CONSTANT",
    ) as written:
        written.write(clip * np.float32(gain))
    file.seek(0)
    with soundfile.SoundFile(file) as opened:
        heard = opened.read(dtype="float32")
    heard = heard[_DELAY if len(heard) > len(clip) else 0 :][: len(clip)]
    return np.asarray(np.pad(heard, (0, len(clip) - len(heard))) / np.float32(gain), dtype=np.float32)
