"""Pages and their embeddings: encoded once, aligned with any number of recordings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fusili_mir.model.bundle import Bundle
from fusili_mir.model.embedding_cache import encode_pages_cached
from fusili_mir.model.encoded import EncodedScore
from fusili_mir.model.encoder import Encoder
from fusili_mir.model.opened_encoder import as_encoder
from fusili_mir.pages.pages import Pages, open_pages
from fusili_mir.short_repr import short_repr

__all__ = ["EncodedPages", "encode_pages_once"]


@short_repr
@dataclass(frozen=True)
class EncodedPages:
    """A score before it is aligned with a recording, or with several one after another.

    Attributes
    ----------
    pages : Pages
    score : EncodedScore
    encoder : Encoder
        What has encoded it, and will encode the recordings.
    """

    pages: Pages
    score: EncodedScore
    encoder: Encoder


def encode_pages_once(
    pages: Any,
    model: str | Path | Bundle | Encoder | None = None,
    cache: str | Path | None = None,
    progress: bool = False,
) -> EncodedPages:
    """Encode pages, to give them to `align_recording` or `encode_pair` with one recording after another.

    Parameters
    ----------
    pages, model, cache, progress
        See `fusili_mir.align_recording`.

    Returns
    -------
    EncodedPages
    """
    encoder, pages = as_encoder(model), open_pages(pages, progress=progress)
    if cache is None:
        return EncodedPages(pages, encoder.encode_pages(pages, progress), encoder)
    return EncodedPages(pages, encode_pages_cached(pages, encoder, cache, progress), encoder)
