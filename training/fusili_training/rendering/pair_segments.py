"""Rendering one score into training pairs: segment images, their sound, and the truth about both."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import soundfile
from PIL import Image

from fusili_mir.arrays import Bool, Float32, GreyImage, Table
from fusili_mir.pages.engraving import EngravingOptions, engrave, engrave_excerpts
from fusili_mir.pages.segments import Segment, cut_segment
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
from fusili_training.rendering.render_recipe import AudioOptions, RenderRecipe
from fusili_training.rendering.rendition import ClipTimes, Rendition
from fusili_training.rendering.segment_spans import Span, list_spans, segment_of, square_spans
from fusili_training.rendering.sound_choice import draw_banks
from fusili_training.sound.expression import draw_expression, perform
from fusili_training.sound.human_rendition import HumanRendition, follow_performance
from fusili_training.sound.human_timing import read_played_notes
from fusili_training.sound.played_clip import pack_clip
from fusili_training.sound.score_clock import read_score_clock
from fusili_training.sound.sounding_score import SoundingScore, read_sounding_score
from fusili_training.truth import TRUTH_DTYPE, TruthArray, truth_to_json

__all__ = ["PieceReport", "Sample", "render_piece"]

ENDINGS = {"flac": "flac", "notes": "npz", "opus": "ogg"}
"""Codec of a clip -> ending of its file."""

_PNG_LEVEL = 6


@dataclass(frozen=True)
class Sample:
    """One pair as it is stored; `members` maps file suffixes to bytes, in order.

    Width and duration are for the index, which helps to batch pairs of similar size.
    """

    key: str
    mutant_of: str | None
    members: dict[str, bytes]
    width_px: int = 0
    duration_sec: float = 0.0


class _DroppedError(Exception):
    """The reason why a segment is left out."""


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
class _Rendering:
    """A span, the pages that show it, and the performance in which it is heard."""

    span: Span
    pages: PageCondition
    rendition: Rendition


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
            key = f"{self._piece.id}.{self._layout}.{number}"
            try:
                yield self._sample(key, None, original)
                self._report.segments += 1
                if mutants is not None:
                    yield self._sample(f"{key}.mutant", key, mutants[number])
                    self._report.mutants += 1
            except _DroppedError as reason:
                self._report.dropped[str(reason)] += 1

    def _renderings(self, options: EngravingOptions) -> tuple[list[_Rendering], list[_Rendering] | None]:
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
        originals = [_Rendering(span, pages, rendition) for span in spans]
        if mutant is None:
            return originals, None
        line_starts = {
            int(pages.measures["measure"][pages.measures["system"] == system].min())
            for system in np.unique(pages.measures["system"])
        }
        write_line_breaks(mutant.score_file.root, line_starts)
        twin_pages = self._engraved(mutant.score_file, replace(options, breaks="line"))
        return originals, [_Rendering(span, twin_pages, mutant.rendition) for span in spans]

    def _apart(
        self, spans: Sequence[Span], score_file: ScoreFile, options: EngravingOptions, rendition: Rendition
    ) -> list[_Rendering]:
        excerpts = engrave_excerpts(score_file, [(span.first, span.last) for span in spans], options)
        return [
            _Rendering(
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

    def _sample(self, key: str, mutant_of: str | None, rendering: _Rendering) -> Sample:
        """Return the pair of a span, or raise `_DroppedError` if it is left out."""
        span, pages, rendition = rendering.span, rendering.pages, rendering.rendition
        options, audio = self._recipe.segment, self._recipe.audio
        segment = segment_of(span, pages.systems, pages.staves, pages.measures, options)
        if segment is None:
            raise _DroppedError("not in one line")
        by_staff = options.shape == "staff_strips"
        if by_staff and segment.width_px > options.max_width_px:
            raise _DroppedError("too wide")
        leads = self._stream("lead", span.first).uniform(0.0, audio.lead_sec, size=2)
        clip = rendition.clip_times(span, *leads)
        if clip.duration_sec > options.max_duration_sec:
            if not options.cut_long:
                raise _DroppedError("too long")
            clip = replace(clip, duration_sec=options.max_duration_sec)
        truth = _truth(span, segment, clip, pages.notes, rendition, by_staff)
        if not truth["struck"].any():
            raise _DroppedError("no notes")
        described = {
            "piece": self._piece.id,
            "layout": self._layout,
            "number": int(key.split(".")[2]),
            "mutant_of": mutant_of,
            "shape": options.shape,
            "licence": self._piece.licence,
            "split": self._piece.split,
            "n_staves": len(segment.pieces) if by_staff else 1,
            "strip_height_px": options.strip_height_px if by_staff else options.side_px,
            "space_px": options.space_px if by_staff else None,
            "sample_rate_hz": audio.sample_rate_hz,
            "start_sec": round(clip.start_sec, 5),
            "duration_sec": round(clip.duration_sec, 5),
            "notes": truth_to_json(truth),
        }
        image = cut_segment(segment, pages.images)
        return Sample(
            key,
            mutant_of,
            {
                "png": _png(image),
                ENDINGS[audio.codec]: _sound(span, clip, rendition, self._recipe),
                "json": json.dumps(described, separators=(",", ":")).encode(),
            },
            image.shape[1],
            round(clip.duration_sec, 5),
        )


def _truth(
    span: Span, segment: Segment, clip: ClipTimes, boxes: Table, rendition: Rendition, by_staff: bool
) -> TruthArray:
    """Return the heads that are visible in a segment and heard in its clip."""
    row_of_head = rendition.score.row_of_head
    in_span = boxes[(boxes["measure"] >= span.first) & (boxes["measure"] <= span.last)]
    known = in_span[[str(head) in row_of_head for head in in_span["notated_id"]]]
    heads = rendition.score.heads[[row_of_head[str(head)] for head in known["notated_id"]]]
    heard = rendition.is_heard(heads)
    known, heads = known[heard], heads[heard]
    times = rendition.times_of(heads)
    truth = np.zeros(len(known), dtype=TRUTH_DTYPE)
    truth["id"], truth["measure"], truth["staff"] = known["notated_id"], known["measure"], known["staff"]
    truth["pitch"] = rendition.performed["pitch"][heads["note"]]
    truth["onset_sec"] = np.clip(times.onset_sec - clip.start_sec, 0.0, clip.duration_sec)
    truth["offset_sec"] = np.clip(times.offset_sec - clip.start_sec, 0.0, clip.duration_sec)
    truth["struck"] = times.struck
    shown = _map_boxes(segment, known, truth, by_staff)
    heard = times.onset_sec - clip.start_sec < clip.duration_sec  # a clip may end before its measures do
    truth = truth[shown & heard]
    return np.asarray(truth[np.lexsort((truth["pitch"], truth["onset_sec"]))])


def _map_boxes(segment: Segment, boxes: Table, truth: TruthArray, by_staff: bool) -> Bool:
    """Write the boxes of the heads in pixels of the segment, and return which heads are visible.

    In staff strips, a head belongs to the strip of its staff, even if another staff is nearer.
    """
    shown = np.zeros(len(boxes), dtype=bool)
    for row, box in enumerate(boxes):
        middle_x, middle_y = (box["x0"] + box["x1"]) / 2, (box["y0"] + box["y1"]) / 2
        pieces = [segment.pieces[int(box["staff"])]] if by_staff else segment.pieces
        for piece in pieces:
            if piece.page == box["page"] and piece.on_page.holds(middle_x, middle_y):
                x, y = piece.on_page.map_to(
                    piece.in_segment, np.array([box["x0"], box["x1"]]), np.array([box["y0"], box["y1"]])
                )
                truth[row]["x0"], truth[row]["x1"] = x
                truth[row]["y0"], truth[row]["y1"] = y
                shown[row] = True
    return shown


def _png(image: GreyImage) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, format="PNG", compress_level=_PNG_LEVEL)
    return buffer.getvalue()


def _sound(span: Span, clip: ClipTimes, rendition: Rendition, recipe: RenderRecipe) -> bytes:
    """Return the sound of a clip as it is stored."""
    alone = recipe.segment.alone
    if recipe.audio.codec == "notes":
        notes = rendition.notes_of(span, clip, alone)
        return pack_clip(notes, rendition.banks, clip.duration_sec, clip.start_sec)
    return _encoded(rendition.sound_of(span, clip, alone), recipe.audio)


def _encoded(samples: Float32, audio: AudioOptions) -> bytes:
    buffer = io.BytesIO()
    kind = {"flac": ("FLAC", "PCM_16"), "opus": ("OGG", "OPUS")}[audio.codec]
    soundfile.write(buffer, samples, audio.sample_rate_hz, format=kind[0], subtype=kind[1])
    return buffer.getvalue()
