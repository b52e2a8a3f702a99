"""Pieces of the corpus as a collection has them: recordings and photo-like pages in a folder, made once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import soundfile
from PIL import Image

from fusili_benchmarks.held_out_pieces import Playing, open_piece
from fusili_benchmarks.held_out_shifts import BASE
from fusili_mir.audio.recording import AudioSamples
from fusili_mir.collection.kinds import list_files
from fusili_mir.errors import FusiliError
from fusili_mir.pages.engraving import EngravingOptions, engrave
from fusili_mir.pages.page_sources import EngravedPage
from fusili_mir.scores.score_file import read_score_file
from fusili_training.random_streams import random_stream
from fusili_training.rendering.corpus import CorpusPiece, list_corpus, select_pieces
from fusili_training.rendering.degrade import Degradation
from fusili_training.rendering.render_recipe import load_render_recipe
from fusili_training.splits import stable_fraction

__all__ = ["CollectionPiece", "choose_songs", "list_scores", "make_pieces"]

_RECIPES = Path(__file__).parents[2] / "training" / "recipes" / "render"
_LICENCE = "CC0-1.0"
_DEGRADED = 0.5
_SONGS = "openscore_lieder"


@dataclass(frozen=True)
class CollectionPiece:
    """A song: its score, a recording of it with the onsets of its note heads, and a degraded page."""

    score: Path
    recording: Path
    heads: Path  # of `fusili_training.evaluation.whole_pieces.HEAD_ONSET_DTYPE`
    photo: Path


def choose_songs(corpus: Path, split: str) -> list[CorpusPiece]:
    """List the songs of a split in an order that depends on their ids alone."""
    songs = select_pieces(list_corpus(corpus), [_LICENCE], [split], f"*/{_SONGS}/*")
    return sorted(songs, key=lambda song: stable_fraction(song.id))


def list_scores(corpus: Path) -> list[Path]:
    """List scores that the runtime reads: of test and validation pieces first, then songs, then the others."""
    files = {os.path.realpath(piece.file): str(piece.split) for piece in list_corpus(corpus)}

    def place(file: Path) -> tuple[int, bool, str]:
        split = files.get(os.path.realpath(file), "train")
        return ("test", "valid", "train").index(split), _SONGS not in file.parts, str(file)

    return sorted(list_files([corpus.parent / "scores"]), key=place)


def make_pieces(
    songs: list[CorpusPiece], folder: Path, soundfont: str, seed: int = 0, photographed: bool = True
) -> Iterator[CollectionPiece]:
    """Play songs and, unless they shall only be heard, photograph their first pages.

    What is in the folder already is left as it is.
    """
    recipe = load_render_recipe(_RECIPES / "strips-held-out.toml")
    audio = replace(recipe.audio, soundfonts=(soundfont,))
    playing = Playing(recipe.expression, audio, audio, seed)
    folder.mkdir(parents=True, exist_ok=True)
    for song in songs:
        made = CollectionPiece(
            *list_files([song.file]), *(folder / f"{song.id}{suffix}" for suffix in (".flac", ".npy", ".jpg"))
        )
        try:
            if not made.recording.exists():
                with open_piece(song, "whole", playing) as held_out:
                    piece = held_out.under(BASE, "score")
                    np.save(made.heads, piece.heads)
                    sound = piece.recording
                    assert isinstance(sound, AudioSamples)
                    soundfile.write(made.recording, sound.samples, sound.sample_rate_hz)
            if photographed and not made.photo.exists():
                _photograph(song, made.photo, seed)
        except FusiliError as error:
            print(f"left out: {error}")
            continue
        yield made


def _photograph(song: CorpusPiece, photo: Path, seed: int) -> None:
    """Draw the first page in another font and degrade it."""
    rng = random_stream(seed, "collection", song.id)
    page = EngravedPage(engrave(read_score_file(song.file), EngravingOptions(font="Bravura")).svgs[0]).read()
    image = Degradation.draw(rng, _DEGRADED).apply(page, rng)
    Image.fromarray(image).save(photo, quality=70)
