"""Wear of recordings: the narrow bands, hum, crackle, wow and clipping of shellac, tape and cheap microphones."""

from __future__ import annotations

import numpy as np

from fusili_mir.arrays import Float32

__all__ = ["wear"]

_MAINS_HZ = (50.0, 60.0)
_WOW_CENTS = 12.0


def wear(clip: Float32, sample_rate_hz: int, rng: np.random.Generator) -> Float32:
    """Wear a clip [shape=(n,)]: each kind of wear is as likely as not, and none moves an onset by 5 ms."""
    worn = clip.astype(np.float32)
    narrow, humming, crackling, uneven, clipped = rng.uniform(size=5) < 0.5
    level = float(np.sqrt(np.mean(np.square(worn)))) + 1e-9
    if uneven:
        worn = _wow(worn, sample_rate_hz, rng)
    if clipped:
        limit = max(level * rng.uniform(2.0, 5.0), 1e-6)
        worn = np.asarray(limit * np.tanh(worn / limit), dtype=np.float32)
    if narrow:
        from scipy import signal  # takes as long to import as all else of a command

        low_hz = float(np.exp(rng.uniform(np.log(60), np.log(350))))
        high_hz = float(np.exp(rng.uniform(np.log(2200), np.log(7000))))
        band = signal.butter(2, (low_hz, high_hz), "bandpass", fs=sample_rate_hz, output="sos")
        worn = signal.sosfilt(band, worn).astype(np.float32)
    if humming:
        time_sec = np.arange(len(worn), dtype=np.float32) / sample_rate_hz
        mains_hz = float(rng.choice(_MAINS_HZ))
        for partial in (1, 2, 3):
            loud = level * 10 ** (rng.uniform(-40, -18) / 20)
            hum = np.sin(2 * np.pi * mains_hz * partial * time_sec + rng.uniform(0, 6))
            worn = np.asarray(worn + np.float32(loud) * hum, np.float32)
    if crackling:
        clicks = rng.uniform(size=len(worn)) < rng.uniform(2, 60) / sample_rate_hz
        heights = level * np.exp(rng.normal(0.5, 0.8, size=int(clicks.sum())))
        worn[clicks] += (heights * rng.choice([-1, 1], size=len(heights))).astype(np.float32)
    return np.asarray(worn, dtype=np.float32)


def _wow(clip: Float32, sample_rate_hz: int, rng: np.random.Generator) -> Float32:
    """Let the speed waver once or so a second, by a few cents."""
    rate_hz, cents = rng.uniform(0.5, 1.6), rng.uniform(0, _WOW_CENTS)
    time_sec = np.arange(len(clip)) / sample_rate_hz
    most_sec = (2 ** (cents / 1200) - 1) / (2 * np.pi * rate_hz)
    moved_sec = time_sec + most_sec * np.sin(2 * np.pi * rate_hz * time_sec + rng.uniform(0, 6))
    return np.interp(moved_sec, time_sec, clip).astype(np.float32)
