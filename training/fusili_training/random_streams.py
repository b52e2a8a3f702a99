"""Random numbers that depend on their purpose only, not on what was drawn before."""

from __future__ import annotations

import hashlib

import numpy as np

__all__ = ["random_stream"]


def random_stream(seed: int, *names: str | int) -> np.random.Generator:
    """Return the random numbers of a seed for one purpose, the same on every machine and in any order of work."""
    text = "/".join([str(seed), *(str(name) for name in names)])
    return np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big"))
