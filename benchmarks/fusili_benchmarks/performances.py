"""Recordings of known timing, encoded with their pages: human piano performances, and songs played by a machine.

Encoding takes some thirty times as long as decoding, so encoded performances can be kept in a folder.
"""

from __future__ import annotations

import copyreg
import pickle
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree
from PIL import Image

from fusili_benchmarks.held_out_pieces import Playing, choose_layouts, choose_pieces, open_piece
from fusili_benchmarks.held_out_shifts import Shift
from fusili_benchmarks.played_measures import play_midi, true_onsets
from fusili_mir.arrays import Float64, Table
from fusili_mir.geometry import FrameGrid
from fusili_mir.model.encoded import EncodedAudio, EncodedScore
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import Pages, load_pages, render_pages
from fusili_training.notation.layouts import Layout
from fusili_training.rendering.corpus import CorpusPiece, list_corpus, select_pieces
from fusili_training.rendering.render_recipe import load_render_recipe

__all__ = [
    "Performance",
    "encode_human",
    "encode_songs",
    "excerpt",
    "first_onsets",
    "kept",
    "with_deep_pickles",
]

_RECIPE = Path(__file__).parents[2] / "training" / "recipes" / "render" / "strips-held-out.toml"
_SOUNDFONT, _IN_TUNE = "TimGM6mb", (40, 53, 71)  # violin, voice, clarinet


@dataclass(frozen=True)
class Performance:
    """A performance, encoded: with pages of its symbolic score, and with images of them.

    `true` maps the ids of notes of the (unfolded) score to seconds; empty where that is not known.
    """

    true: dict[str, float]
    audio: EncodedAudio
    pages: Pages
    score: EncodedScore
    scan: Pages
    scanned: EncodedScore


def first_onsets(pages: Pages, true: dict[str, float]) -> tuple[Table, Float64]:
    """Return the heads of notes whose first playing is known, and when that is."""
    heads = {str(note["notated_id"]): note for note in pages.notes}
    known = [
        (heads[note_id.removesuffix("-1")], second)
        for note_id, second in true.items()
        if note_id.endswith("-1") and note_id.removesuffix("-1") in heads
    ]
    return np.array([head for head, _ in known]), np.array([second for _, second in known])


def encode_human(stem: Path, encoder: Encoder, soundfont: Path) -> Performance:
    """Encode a human performance of n-ASAP: its MIDI, played by fluidsynth, and its score."""
    with tempfile.TemporaryDirectory() as folder:
        sound = Path(folder) / "sound.wav"
        midi = stem.with_suffix(".mid")
        play_midi(midi, soundfont, sound)
        pages = render_pages(stem.with_suffix(".mxl"))
        for number, image in enumerate(pages.images):
            Image.fromarray(image).save(Path(folder) / f"{number:03d}.png")
        scan = load_pages([Path(folder) / f"{number:03d}.png" for number in range(len(pages.images))])
        return Performance(
            true_onsets(stem.with_suffix(".match")),
            encoder.encode_recording(sound),
            pages,
            encoder.encode_pages(pages),
            scan,
            encoder.encode_pages(scan),
        )


def encode_songs(
    corpus: Path, number: int, shift: Shift, encoder: Encoder
) -> Iterator[tuple[str, Callable[[], Performance]]]:
    """Yield songs of the split valid under a shift: a name, and what encodes the song."""
    pieces = select_pieces(list_corpus(corpus), ["CC0-1.0"], ["valid"], "*/openscore_lieder/*")
    songs = choose_pieces(pieces, number)
    recipe = load_render_recipe(_RECIPE)
    audio = replace(recipe.audio, soundfonts=(_SOUNDFONT,), other_programs=_IN_TUNE)
    playing = Playing(recipe.expression, audio, audio, recipe.seed)

    for song, layout in zip(songs, choose_layouts(songs), strict=True):
        yield f"{song.id}.{layout} {shift.name}", partial(_encode_song, song, layout, playing, shift, encoder)


def _encode_song(
    song: CorpusPiece, layout: Layout, playing: Playing, shift: Shift, encoder: Encoder
) -> Performance:
    with open_piece(song, layout, playing) as piece:
        known, seen = piece.under(shift, "score"), piece.under(shift, "images")
        return Performance(
            {},
            encoder.encode_recording(known.recording),
            known.pages,
            encoder.encode_pages(known.pages),
            seen.pages,
            encoder.encode_pages(seen.pages),
        )


def excerpt(audio: EncodedAudio, start_sec: float, length_sec: float) -> EncodedAudio:
    """Cut a stretch out of an encoded recording."""
    grid = audio.grid
    first, end = np.searchsorted(grid.centre(np.arange(len(grid))), (start_sec, start_sec + length_sec))
    cut = FrameGrid(
        int(end - first),
        grid.frame_sec,
        grid.start_sec + float(first) * grid.frame_sec,
        float(end - first) * grid.frame_sec,
        grid.start_sec + float(first) * grid.frame_sec,
    )
    envelope, onsets = audio.envelope, audio.onsets

    def steps(start: float, step_sec: float) -> slice:
        return slice(round((cut.start_sec - start) / step_sec), round((cut.end_sec - start) / step_sec))

    rows, heard = steps(envelope.start_sec, envelope.step_sec), steps(onsets.start_sec, onsets.step_sec)
    return EncodedAudio(
        audio.frames[first:end],
        cut,
        audio.clip_embeddings[:0],
        replace(
            onsets,
            activation=onsets.activation[heard],
            start_sec=onsets.start_sec + heard.start * onsets.step_sec,
        ),
        replace(
            envelope,
            rise=envelope.rise[rows],
            level=envelope.level[rows],
            start_sec=envelope.start_sec + rows.start * envelope.step_sec,
        ),
    )


def kept(name: str, encode: Callable[[], Performance], folder: Path | None) -> Performance:
    """Return a performance from a folder; if it is not there, encode it and keep it there."""
    if folder is None:
        return encode()
    file = folder / f"{name.replace('/', '_')}.pkl"
    if file.exists():
        performance: Performance = pickle.loads(file.read_bytes())
        return performance
    performance = encode()
    folder.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".part")
    beside.write_bytes(pickle.dumps(performance, 4))
    beside.replace(file)
    return performance


def with_deep_pickles(main: Callable[[], None]) -> None:
    """Run something that reads and writes performances: scores are deep, and elements of XML do not pickle."""
    with _deep_recursion():
        copyreg.pickle(etree._Element, _as_element)
        copyreg.pickle(etree._ElementTree, _as_tree)
        failed: list[BaseException] = []

        def run() -> None:
            try:
                main()
            except BaseException as error:  # noqa: BLE001
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    if failed:
        raise failed[0]


@contextmanager
def _deep_recursion() -> Iterator[None]:
    limit, size = sys.getrecursionlimit(), threading.stack_size(2**29)
    sys.setrecursionlimit(100_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)


def _as_element(element: Any) -> tuple[Any, tuple[bytes]]:
    return etree.fromstring, (etree.tostring(element),)


def _as_tree(tree: Any) -> tuple[Any, tuple[Any]]:
    return etree.ElementTree, (tree.getroot(),)
