"""Reading pitches off a page: which notes a column of the score shows, as far as its embedding tells.

A column does not see the clef at the beginning of its line, so what is read are probabilities: good enough to
know which of the sounds nearby begins with it. `benchmarks/fit_decoder.py` fits the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fusili_mir.arrays import Float32
from fusili_mir.audio.attack_map import N_PITCHES
from fusili_mir.errors import InputError
from fusili_mir.model.bundle import Bundle
from fusili_mir.untrusted_arrays import read_array

__all__ = ["PitchReader"]


@dataclass(frozen=True)
class PitchReader:
    """A logistic regression from the embedding of a patch to the pitches that it shows.

    Attributes
    ----------
    weights : np.ndarray [shape=(d + 1, 88)], float32
        One column per pitch; the last row is the intercept.
    """

    weights: Float32

    @classmethod
    def of(cls, bundle: Bundle) -> PitchReader | None:
        """Read the weights of a bundle, checked against the checksum in its manifest; None if it has none."""
        spec: Any = bundle.manifest.decoder.get("pitch_reader")
        if spec is None:
            return None
        if not isinstance(spec, dict) or not {"file", "sha256"} <= spec.keys():
            raise InputError(f"{bundle.folder}: decoder.pitch_reader is {spec!r}; expected file and sha256")
        content = bundle.read_file(str(spec["file"]), str(spec["sha256"]), "weights_bytes")
        weights = read_array(content, f"{bundle.folder}: {spec['file']}", "export it again")
        expected = (bundle.manifest.embedding_dim + 1, N_PITCHES)
        if weights.shape != expected or weights.dtype.kind != "f" or not np.isfinite(weights).all():
            raise InputError(
                f"{bundle.folder}: {spec['file']} has {weights.dtype} values of shape {weights.shape}; expected "
                f"finite numbers of shape {expected}"
            )
        return cls(weights.astype(np.float32))

    def read(self, embeddings: Float32) -> Float32:
        """Return the probability of each pitch in each column, (C, R, d) -> (C, 88): its best patch counts."""
        by_patch = embeddings @ self.weights[:-1] + self.weights[-1]  # (C, R, 88)
        return np.asarray(np.exp(-np.logaddexp(0, -by_patch.max(axis=1))), dtype=np.float32)
