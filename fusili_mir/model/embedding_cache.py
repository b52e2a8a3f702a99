"""Embeddings of a score in a file, so that they need not be computed again for its next recording.

The file is a NumPy archive without pickled objects. Two checksums say which bundle and which score it was
made from; for any other it is out of date and is replaced.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fusili_mir.errors import InputError, OutputError
from fusili_mir.hearing.networks import find_network
from fusili_mir.model.bundle import Bundle
from fusili_mir.model.encoded import EncodedScore
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.score_axis import ScoreAxis
from fusili_mir.untrusted_arrays import read_arrays
from fusili_mir.whole_files import write_whole

if TYPE_CHECKING:  # partitura, which pages need, is slow to import
    from fusili_mir.pages.pages import Pages

__all__ = [
    "CACHE_FORMAT",
    "EmbeddingKey",
    "embedding_key",
    "encode_pages_cached",
    "load_encoded_score",
    "save_encoded_score",
]

CACHE_FORMAT = 1
"""Version of the file format; raised whenever a reader of the old format would go wrong."""


@dataclass(frozen=True)
class EmbeddingKey:
    """What embeddings were made from: sha256 of what reads them, and of the pages and their staves."""

    bundle: str
    score: str


def embedding_key(pages: Pages, bundle: Bundle) -> EmbeddingKey:
    """Return checksums of everything that the embeddings of a score depend on."""
    spec = json.dumps([asdict(bundle.image), find_network("reading").sha256], sort_keys=True)
    score = hashlib.sha256()
    for boxes in (pages.systems, pages.staves):
        score.update(boxes.tobytes())
    for image in pages.images:
        score.update(repr(image.shape).encode())
        score.update(image.tobytes())
    return EmbeddingKey(hashlib.sha256(spec.encode()).hexdigest(), score.hexdigest())


def encode_pages_cached(
    pages: Pages, encoder: Encoder, folder: str | Path, progress: bool = False
) -> EncodedScore:
    """Load the embeddings of a score, or encode it and save them.

    Parameters
    ----------
    pages : Pages
    encoder : Encoder
        Encoder whose image graph is opened only if it is needed.
    folder : str or Path
        Folder of the cache, which has a file for each score and bundle; created if it does not exist.
    progress : bool
        Whether to show progress on standard error.

    Returns
    -------
    EncodedScore
    """
    key = embedding_key(pages, encoder.bundle)
    filename = Path(folder) / f"{key.score[:16]}-{key.bundle[:16]}.npz"
    if filename.exists():
        known = load_encoded_score(filename, key)
        if known is not None:
            expected = encoder.bundle.manifest.embedding_dim
            found = known.embeddings.shape[2]
            if found != expected:
                raise InputError(
                    f"{filename}: embeddings of {found} dimensions, expected {expected}; remove the file"
                )
            return known if known.pitches is not None else encoder.with_pitches(known, pages, progress)
    encoded = encoder.encode_pages(pages, progress)
    _make_folder(Path(folder))
    save_encoded_score(encoded, filename, key)
    return encoded


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"{folder}: cannot keep scores there ({error.strerror}); expected a folder"
        ) from error


def save_encoded_score(encoded: EncodedScore, filename: str | Path, key: EmbeddingKey) -> None:
    """Write embeddings; the file appears under its name only when it is complete.

    Parameters
    ----------
    encoded : EncodedScore
    filename : str or Path
    key : EmbeddingKey
        Checksums of what they were made from.
    """
    filename = Path(filename)
    arrays: dict[str, Any] = {
        "format": np.array(CACHE_FORMAT),
        "bundle": np.array(key.bundle),
        "score": np.array(key.score),
        "columns": encoded.axis.columns,
        "embeddings": encoded.embeddings,
        "mask": encoded.mask,
    }
    if encoded.segment_embeddings is not None:
        arrays["segment_embeddings"] = encoded.segment_embeddings
    if encoded.pitches is not None:
        arrays["pitches"] = encoded.pitches
    write_whole(filename, lambda file: np.savez(file, **arrays))


def load_encoded_score(filename: str | Path, key: EmbeddingKey) -> EncodedScore | None:
    """Read embeddings.

    Parameters
    ----------
    filename : str or Path
    key : EmbeddingKey
        Checksums of what they must have been made from.

    Returns
    -------
    EncodedScore or None
        None if they were made from another score, with another bundle, or by another version.
    """
    try:
        arrays = read_arrays(Path(filename))
        made_for = (int(arrays["format"]), str(arrays["bundle"]), str(arrays["score"]))
        if made_for != (CACHE_FORMAT, key.bundle, key.score):
            return None
        return EncodedScore(
            ScoreAxis(arrays["columns"]),
            np.asarray(arrays["embeddings"], np.float32),
            np.asarray(arrays["mask"], bool),
            arrays.get("segment_embeddings"),
            arrays.get("pitches"),
        )
    except Exception as error:  # whatever is wrong with it, it is none of ours
        raise InputError(
            f"{filename}: not a file of embeddings by fusili-mir, or damaged; remove it or choose another name"
        ) from error
