"""Rendering one score into training pairs: segment images, their sound, and the truth about both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fusili_mir.pages.engraving import EngravingOptions, engrave, engrave_excerpts
from fusili_mir.scores.loading import read_any_score_file
from fusili_mir.scores.score_file import ScoreFile
from fusili_training.notation.fingerings import FingeringStyle, write_fingerings
from fusili_training.notation.layouts import Layout, draw_layouts, lay_out
from fusili_training.notation.line_breaks import write_line_breaks
from fusili_training.notation.mutations import mutate
from fusili_training.random_streams import random_stream
from fusili_training.rendering.corpus import CorpusPiece
from fusili_training.rendering.ossias import OssiaStyle
from fusili_training.rendering.page_condition import PageCondition, condition_pages
from fusili_training.rendering.render_recipe import RenderRecipe
from fusili_training.rendering.rendition import Rendition
from fusili_training.rendering.segment_pair import LeftOutError, Rendering, Sample, make_sample, segment_key
from fusili_training.rendering.segment_spans import Span, list_spans, square_spans
from fusili_training.rendering.sound_choice import draw_banks
from fusili_training.sound.expression import draw_expression, perform
from fusili_training.sound.human_rendition import HumanRendition, follow_performance
from fusili_training.sound.human_timing import read_played_notes
from fusili_training.sound.score_clock import read_score_clock
from fusili_training.sound.sounding_score import SoundingScore, read_sounding_score

__all__ = ["PieceReport", "Sample", "render_piece"]


@dataclass
class PieceReport:
    """The outcome of rendering a piece, filled while its samples are made."""

    id: str
    licence: str
    layouts: list[Layout] = field(default_factory=list)
    segments: int = 0
    mutants: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {**vars(self), "dropped": dict(sorted(self.dropped.items()))}


def render_piece(piece: CorpusPiece, recipe: RenderRecipe, report: PieceReport) -> Iterator[Sample]:
    """Render the pairs of a piece.

    Parameters
    ----------
    piece : CorpusPiece
    recipe : RenderRecipe
    report : PieceReport
        Counts the segments that are rendered and those that are left out.

    Yields
    ------
    Sample
        The pairs in the order of the score, each mutant after its original. They depend on the piece and the
        recipe only.
    """
    score_file = read_any_score_file(piece.file)
    score = read_sounding_score(score_file)
    human = None
    if piece.performance is not None:
        human = follow_performance(score, read_played_notes(piece.performance, score.notes))
        score = human.score
    layouts = draw_layouts(
        score_file,
        recipe.layouts,
        recipe.layouts_per_piece,
        random_stream(recipe.seed, piece.id, "layouts"),
    )
    for layout in layouts:
        report.layouts.append(layout)
        yield from _LayoutRenderer(piece, layout, recipe, score_file, score, human, report).samples()


@dataclass(frozen=True, eq=False)
class _Mutant:
    """A mutated score and its performance."""

    score_file: ScoreFile
    rendition: Rendition


class _LayoutRenderer:
    """Renders the pairs of one layout of a piece."""

    def __init__(
        self,
        piece: CorpusPiece,
        layout: Layout,
        recipe: RenderRecipe,
        score_file: ScoreFile,
        score: SoundingScore,
        human: HumanRendition | None,
        report: PieceReport,
    ) -> None:
        self._piece, self._layout, self._recipe, self._report = piece, layout, recipe, report
        laid_out = lay_out(score_file, layout)
        self._score_file, self._score, self._human = self._fingered(laid_out.score_file), score, human
        of_ossias = self._stream("ossias")
        has_ossias = of_ossias.uniform() < recipe.page.ossias
        self._ossias = OssiaStyle.draw(of_ossias) if has_ossias else None
        self._parts = [i for i, part_id in enumerate(score.part_ids) if part_id in laid_out.part_ids]
        if score_file.kind == "mei":
            self._parts = list(range(len(score.part_ids)))

    def samples(self) -> Iterator[Sample]:
        """Yield the pairs, each mutant after its original."""
        options = self._draw_engraving_options()
        originals, mutants = self._renderings(options)
        for number, original in enumerate(originals):
            try:
                yield self._sample(number, original)
                self._report.segments += 1
                if mutants is not None:
                    key = segment_key(self._piece, self._layout, number)
                    yield self._sample(number, mutants[number], key)
                    self._report.mutants += 1
            except LeftOutError as reason:
                self._report.dropped[str(reason)] += 1

    def _renderings(self, options: EngravingOptions) -> tuple[list[Rendering], list[Rendering] | None]:
        """Engrave and perform the piece, and its mutant if there is to be one: one rendering per segment."""
        segment = self._recipe.segment
        rendition = self._played(self._score)
        mutant = self._mutate() if self._recipe.mutation.mutants else None
        if segment.alone:
            spans = square_spans(len(self._score.measure_quarters) - 1, segment)
            originals = self._apart(spans, self._score_file, options, rendition)
            return originals, None if mutant is None else self._apart(
                spans, mutant.score_file, options, mutant.rendition
            )
        pages = self._engraved(self._score_file, options)
        spans = list_spans(pages.systems, pages.measures, segment)
        originals = [Rendering(span, pages, rendition) for span in spans]
        if mutant is None:
            return originals, None
        line_starts = {
            int(pages.measures["measure"][pages.measures["system"] == system].min())
            for system in np.unique(pages.measures["system"])
        }
        write_line_breaks(mutant.score_file.root, line_starts)
        twin_pages = self._engraved(mutant.score_file, replace(options, breaks="line"))
        return originals, [Rendering(span, twin_pages, mutant.rendition) for span in spans]

    def _apart(
        self, spans: Sequence[Span], score_file: ScoreFile, options: EngravingOptions, rendition: Rendition
    ) -> list[Rendering]:
        excerpts = engrave_excerpts(score_file, [(span.first, span.last) for span in spans], options)
        return [
            Rendering(
                span,
                condition_pages(excerpt, self._recipe.page, self._stream("pages", span.first), self._ossias),
                rendition,
            )
            for span, excerpt in zip(spans, excerpts, strict=True)
        ]

    def _stream(self, *names: str | int) -> np.random.Generator:
        return random_stream(self._recipe.seed, self._piece.id, self._layout, *names)

    def _draw_engraving_options(self) -> EngravingOptions:
        ranges, rng = self._recipe.engraving, self._stream("engraving")
        options = EngravingOptions(
            font=rng.choice(ranges.fonts).item(),
            page_width_mm=rng.uniform(*ranges.page_width_mm),
            staff_height_mm=rng.uniform(*ranges.staff_height_mm),
            spacing_linear=rng.uniform(*ranges.spacing_linear),
            spacing_nonlinear=rng.uniform(*ranges.spacing_nonlinear),
            spacing_staff=round(rng.uniform(*ranges.spacing_staff)),
            staff_space_px=rng.uniform(*ranges.staff_space_px),
            header=False,
        )
        return options if self._ossias is None else self._ossias.make_room(options)

    def _engraved(self, score_file: ScoreFile, options: EngravingOptions) -> PageCondition:
        engraving = engrave(score_file, options)
        return condition_pages(engraving, self._recipe.page, self._stream("pages"), self._ossias)

    def _fingered(self, score_file: ScoreFile) -> ScoreFile:
        """Return the score as an editor may finger it; what sounds is read from the score without that."""
        rng = self._stream("fingerings")
        if rng.uniform() >= self._recipe.page.fingerings or score_file.kind != "musicxml":
            return score_file
        return replace(score_file, root=write_fingerings(score_file.root, FingeringStyle.draw(rng), rng))

    def _played(self, score: SoundingScore) -> Rendition:
        if self._human is None:
            rng = self._stream("performance")
            style = draw_expression(self._recipe.expression, rng)
            performed = perform(score.notes, score.tempo, style, rng)
        else:
            performed = self._human.performed.copy()
            performed["pitch"] = score.notes["pitch"]
        banks = draw_banks(score, self._recipe.audio, self._stream("instruments"))
        return Rendition(
            score,
            performed,
            read_score_clock(score.notes, performed),
            {part: bank for part, bank in banks.items() if part in self._parts},
        )

    def _mutate(self) -> _Mutant | None:
        """Mutate the piece and perform it with the timing of the original."""
        if self._score_file.kind != "musicxml":
            return None
        mutation = self._recipe.mutation
        changed = mutate(
            self._score_file.root, self._stream("mutation"), mutation.probability, mutation.largest_shift
        )
        notes = self._score.notes.copy()
        notes["pitch"] += [changed.shifts.get(str(note_id), 0) for note_id in notes["id"]]
        twin = ScoreFile(self._score_file.filename, "musicxml", changed.mutant)
        return _Mutant(twin, self._played(replace(self._score, notes=notes)))

    def _sample(self, number: int, rendering: Rendering, mutant_of: str | None = None) -> Sample:
        return make_sample(self._piece, self._layout, number, rendering, self._recipe, mutant_of)
