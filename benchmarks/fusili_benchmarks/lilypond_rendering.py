"""Rendering a source of LilyPond into training pairs, as `fusili-mir render` does with what it engraves."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fusili_benchmarks.held_out_lilypond import read_lilypond_score, read_svg_page
from fusili_benchmarks.lilypond_engraving import EngravedScore, engraved_score
from fusili_benchmarks.lilypond_run import run_lilypond
from fusili_training.notation.layouts import Layout
from fusili_training.random_streams import random_stream
from fusili_training.rendering.corpus import CorpusPiece
from fusili_training.rendering.page_condition import condition_pages
from fusili_training.rendering.pair_segments import PieceReport
from fusili_training.rendering.render_recipe import RenderRecipe
from fusili_training.rendering.rendition import Rendition
from fusili_training.rendering.segment_pair import LeftOutError, Rendering, Sample, make_sample
from fusili_training.rendering.segment_spans import list_spans
from fusili_training.rendering.sound_choice import draw_banks
from fusili_training.sound.expression import draw_expression, perform
from fusili_training.sound.score_clock import read_score_clock

__all__ = ["LilypondRenderer"]

LAYOUT: Layout = "piano"


@dataclass(frozen=True)
class LilypondRenderer:
    """Renders pieces with LilyPond; of the recipe's engraving, only the size of the pages is used.

    Attributes
    ----------
    binaries : Path
        Folder with `lilypond` and `convert-ly`.
    limit_sec : float
        CPU seconds that each of them may take.
    """

    binaries: Path
    limit_sec: float

    def __call__(self, piece: CorpusPiece, recipe: RenderRecipe, report: PieceReport) -> Iterator[Sample]:
        """Yield the pairs of a piece."""
        report.layouts.append(LAYOUT)
        space_px = random_stream(recipe.seed, piece.id, "engraving").uniform(*recipe.engraving.staff_space_px)
        engraved = self._engraved(piece.file, space_px)
        pages = condition_pages(
            engraved.engraving, recipe.page, random_stream(recipe.seed, piece.id, LAYOUT, "pages")
        )
        rendition = _played(engraved, piece, recipe)
        for number, span in enumerate(list_spans(pages.systems, pages.measures, recipe.segment)):
            try:
                yield make_sample(piece, LAYOUT, number, Rendering(span, pages, rendition), recipe)
                report.segments += 1
            except LeftOutError as reason:
                report.dropped[str(reason)] += 1

    def _engraved(self, source: Path, space_px: float) -> EngravedScore:
        with tempfile.TemporaryDirectory() as folder:
            svgs = run_lilypond(source, Path(folder), self.binaries, self.limit_sec)
            score = read_lilypond_score(Path(folder) / "heads.tsv")
        pages = [read_svg_page(svg, score.boxes) for svg in svgs]
        return engraved_score(svgs, pages, score, space_px)


def _played(engraved: EngravedScore, piece: CorpusPiece, recipe: RenderRecipe) -> Rendition:
    score = engraved.score
    rng = random_stream(recipe.seed, piece.id, LAYOUT, "performance")
    performed = perform(score.notes, score.tempo, draw_expression(recipe.expression, rng), rng)
    banks = draw_banks(score, recipe.audio, random_stream(recipe.seed, piece.id, LAYOUT, "instruments"))
    return Rendition(score, performed, read_score_clock(score.notes, performed), banks)
