"""Whole pieces of a corpus that were held out from training: engraved and played under a shift.

A piece is engraved once per look and played once per sound. Shifts with the same look or sound share one object,
whose embeddings can then be kept, too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from fusili_benchmarks.held_out_shifts import PageShift, Shift, SoundShift
from fusili_mir.arrays import Float64, Table
from fusili_mir.audio.recording import AudioSamples
from fusili_mir.pages.engraving import Engraving, EngravingOptions, engrave
from fusili_mir.pages.page_sources import EngravedPage
from fusili_mir.pages.pages import Pages, load_pages, render_pages
from fusili_mir.pages.raster import page_size_px
from fusili_mir.scores.score_file import ScoreFile, read_score_file
from fusili_training.evaluation.whole_pieces import HEAD_ONSET_DTYPE, Knowledge, WholePiece
from fusili_training.notation.layouts import Layout, lay_out, possible_layouts
from fusili_training.random_streams import random_stream
from fusili_training.rendering.corpus import CorpusPiece
from fusili_training.rendering.degrade import Degradation
from fusili_training.rendering.print_defects import DefectLimits, PrintDefects
from fusili_training.rendering.render_recipe import AudioOptions
from fusili_training.rendering.sound_choice import draw_banks
from fusili_training.sound.augment_audio import add_noise, detune, reverberate, time_factor
from fusili_training.sound.expression import Expression, draw_expression, perform
from fusili_training.sound.sounding_score import SoundingScore, read_sounding_score
from fusili_training.sound.synthesis import synthesise
from fusili_training.splits import stable_fraction

__all__ = ["HeldOutPiece", "Playing", "choose_layouts", "choose_pieces", "open_piece"]


_LAYOUTS: tuple[Layout, ...] = ("whole", "piano", "whole", "piano", "whole", "voice")  # about as in training
_LEAD_SEC, _RING_SEC = 0.5, 1.5  # before the first note, and after the last one ends
_DIRECT_TO_ROOM_DB = 6.0
_NOISE_TILT = 1.0  # pink
_LEAPS = ("dacapo", "dalsegno", "tocoda")


@dataclass(frozen=True)
class Playing:
    """How pieces are played: the limits of expression, and the instruments of testing and of training."""

    expression: Expression
    unseen: AudioOptions
    trained: AudioOptions
    seed: int = 0


@dataclass(frozen=True, eq=False)
class _Look:
    """Pages and their note heads: `id` is the id of a head, (x, y) its middle in pixels of `pages`."""

    pages: Pages
    heads: npt.NDArray[np.void]  # HEAD_ONSET_DTYPE; the onsets have no meaning


@dataclass(frozen=True, eq=False)
class _Sound:
    """A recording, and the onsets of the score's notes in it [shape=(n,)]; NaN in parts that are silent."""

    recording: AudioSamples
    onset_sec: Float64


def choose_pieces(pieces: Sequence[CorpusPiece], number: int) -> list[CorpusPiece]:
    """Choose pieces by their ids alone, among those that can be played straight from first to last measure.

    Every measure is played once, which rules out alternative endings and da capos.
    """
    chosen: list[CorpusPiece] = []
    for piece in sorted(pieces, key=lambda piece: stable_fraction(piece.id)):
        if len(chosen) == number:
            break
        if not _leaps(read_score_file(piece.file)):
            chosen.append(piece)
    return chosen


def choose_layouts(pieces: Sequence[CorpusPiece]) -> list[Layout]:
    """Give each piece a layout in turn: half of the songs whole, a third piano alone, a sixth voice alone."""
    layouts: list[Layout] = []
    for number, piece in enumerate(pieces):
        wanted = _LAYOUTS[number % len(_LAYOUTS)]
        layouts.append(wanted if wanted in possible_layouts(read_score_file(piece.file)) else "whole")
    return layouts


def _leaps(score_file: ScoreFile) -> bool:
    root = score_file.root
    return next(root.iter("ending"), None) is not None or any(
        sound.get(leap) for sound in root.iter("sound") for leap in _LEAPS
    )


@contextmanager
def open_piece(piece: CorpusPiece, layout: Layout, playing: Playing) -> Iterator[HeldOutPiece]:
    """Open a piece; its page images are removed when the context ends."""
    with tempfile.TemporaryDirectory() as folder:
        yield HeldOutPiece(piece, layout, playing, Path(folder))


class HeldOutPiece:
    """One layout of a piece, under any shift; see `open_piece`."""

    def __init__(self, piece: CorpusPiece, layout: Layout, playing: Playing, folder: Path) -> None:
        self.name, self.layout = f"{piece.id}.{layout}", layout
        self._playing, self._folder = playing, folder
        whole = read_score_file(piece.file)
        laid_out = lay_out(whole, layout)
        self._score_file, self._score = laid_out.score_file, read_sounding_score(whole)
        parts = [i for i, part_id in enumerate(self._score.part_ids) if part_id in laid_out.part_ids]
        self._heard = np.isin(self._score.notes["part"], parts)
        self._looks: dict[PageShift, _Look] = {}
        self._sounds: dict[SoundShift, _Sound] = {}

    def under(self, shift: Shift, knowledge: Knowledge) -> WholePiece:
        """Return the piece as it looks and sounds under a shift.

        Parameters
        ----------
        shift : Shift
        knowledge : "images" or "score"
            With the symbolic score, pages are our own engraving whatever the page shift.

        Returns
        -------
        WholePiece
            The piece, with the first head of each note that is heard.
        """
        if shift.sound not in self._sounds:
            self._sounds[shift.sound] = self._record(shift.sound)
        if knowledge == "images" and shift.page not in self._looks:
            self._looks[shift.page] = self._photograph(shift.page)
        sound = self._sounds[shift.sound]
        look = self._symbolic if knowledge == "score" else self._looks[shift.page]
        return WholePiece(
            self.name, look.pages, sound.recording, struck_heads(look.heads, self._score, sound.onset_sec)
        )

    def _stream(self, *names: str) -> np.random.Generator:
        return random_stream(self._playing.seed, "held out", self.name, *names)

    @cached_property
    def _symbolic(self) -> _Look:
        pages = render_pages(self._score_file)
        return _Look(pages, _middles(pages.notes))

    def _photograph(self, shift: PageShift) -> _Look:
        """Engrave the score, draw and degrade its pages, and find the systems on them."""
        engraving = engrave(self._score_file, EngravingOptions(font=shift.font))
        degradation = Degradation.draw(self._stream("degradation"), shift.degraded)
        rng = self._stream("pages")
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        defects = PrintDefects.draw(DefectLimits(), self._stream("print")).flat()
        space_px = float(np.median(engraving.systems["space_px"]))
        for page, svg in enumerate(engraving.svgs):
            image = EngravedPage(svg).read()
            if shift.printed:
                back = EngravedPage(engraving.svgs[page - 1]).read()
                image = defects.apply(image, space_px, rng, back)
            image = degradation.apply(image, rng)
            Image.fromarray(image).save(folder / f"{page:04d}.png", compress_level=1)
        pages = load_pages(folder)
        return _Look(pages, _follow_pages(_middles(engraving.notes), engraving, degradation, pages))

    def _record(self, shift: SoundShift) -> _Sound:
        """Play the score."""
        playing, score = self._playing, self._score
        rng = self._stream("performance")
        style = draw_expression(playing.expression, rng)
        if shift.metronomic:
            style = replace(style, rubato=0.0, jitter_sec=0.0, chord_spread_sec=0.0)
        performed = perform(score.notes, score.tempo, style, rng)
        heard = performed[self._heard]
        start_sec = float(heard["onset_sec"].min()) - _LEAD_SEC
        lasting_sec = np.maximum(heard["duration_sec"], heard["sounding_sec"])
        end_sec = float((heard["onset_sec"] + lasting_sec).max()) + _RING_SEC
        options = playing.trained if shift.trained_timbre else playing.unseen
        options = replace(options, singing=float(shift.sung))
        banks = draw_banks(score, options, self._stream("instruments"))
        samples = synthesise(heard, banks, end_sec - start_sec, start_sec)
        rate_hz = options.sample_rate_hz
        onset_sec = np.where(self._heard, performed["onset_sec"] - start_sec, np.nan)
        if shift.detune_cents:
            samples = detune(samples, shift.detune_cents)
            onset_sec *= time_factor(shift.detune_cents)
        if shift.room_sec:
            samples = reverberate(samples, rate_hz, shift.room_sec, _DIRECT_TO_ROOM_DB, self._stream("room"))
        if shift.snr_db is not None:
            samples = add_noise(samples, shift.snr_db, _NOISE_TILT, self._stream("noise"))
        return _Sound(AudioSamples(samples, rate_hz, self.name), onset_sec)


def struck_heads(
    heads: npt.NDArray[np.void], score: SoundingScore, onset_sec: Float64
) -> npt.NDArray[np.void]:
    """Keep the heads at which notes are struck, and fill in their onsets.

    Parameters
    ----------
    heads : np.ndarray of `fusili_training.evaluation.whole_pieces.HEAD_ONSET_DTYPE`
        Heads, with the ids of heads.
    score : SoundingScore
    onset_sec : np.ndarray [shape=(n,)]
        Onsets of the score's notes; NaN for notes that are not heard.

    Returns
    -------
    np.ndarray of `HEAD_ONSET_DTYPE`
        The struck heads, with the ids of their notes.
    """
    row_of_head: Mapping[str, int] = score.row_of_head
    known = heads[[str(head) in row_of_head for head in heads["id"]]]
    rows = score.heads[[row_of_head[str(head)] for head in known["id"]]]
    struck = rows["first"] & ~np.isnan(onset_sec[rows["note"]])
    kept = known[struck]
    kept["id"] = score.notes["id"][rows["note"][struck]]
    kept["onset_sec"] = onset_sec[rows["note"][struck]]
    return np.asarray(kept)


def _middles(notes: Table) -> npt.NDArray[np.void]:
    """Return one row per head; the note array may have several."""
    _, first = np.unique(notes["notated_id"], return_index=True)
    shown = notes[np.sort(first)]
    heads = np.zeros(len(shown), HEAD_ONSET_DTYPE)
    heads["id"], heads["page"] = shown["notated_id"], shown["page"]
    heads["x"] = (shown["x0"].astype(np.float64) + shown["x1"]) / 2
    heads["y"] = (shown["y0"].astype(np.float64) + shown["y1"]) / 2
    return heads


def _follow_pages(
    heads: npt.NDArray[np.void], engraving: Engraving, degradation: Degradation, pages: Pages
) -> npt.NDArray[np.void]:
    """Move heads from where they were engraved to where they lie on the deskewed pages."""
    moved = heads.copy()
    for page, (svg, skew) in enumerate(zip(engraving.svgs, pages.skews, strict=True)):
        here = heads["page"] == page
        width_px, height_px = page_size_px(svg)
        turned = degradation.to_degraded(
            heads["x"][here], heads["y"][here], width_px=width_px, height_px=height_px
        )
        moved["x"][here], moved["y"][here] = skew.to_deskewed(*turned)
    return moved
