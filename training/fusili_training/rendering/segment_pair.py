"""One training pair: the image of a span of measures, its sound, and the truth about both."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, replace

import numpy as np
import soundfile
from PIL import Image

from fusili_mir.arrays import Bool, Float32, GreyImage, Table
from fusili_mir.pages.segments import Segment, cut_segment
from fusili_training.notation.layouts import Layout
from fusili_training.random_streams import random_stream
from fusili_training.rendering.corpus import CorpusPiece
from fusili_training.rendering.page_condition import PageCondition
from fusili_training.rendering.render_recipe import AudioOptions, RenderRecipe
from fusili_training.rendering.rendition import ClipTimes, Rendition
from fusili_training.rendering.segment_spans import Span, segment_of
from fusili_training.sound.played_clip import pack_clip
from fusili_training.truth import TRUTH_DTYPE, TruthArray, truth_to_json

__all__ = ["LeftOutError", "Rendering", "Sample", "make_sample", "segment_key"]

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


class LeftOutError(Exception):
    """The reason why a segment is left out."""


@dataclass(frozen=True, eq=False)
class Rendering:
    """A span, the pages that show it, and the performance in which it is heard."""

    span: Span
    pages: PageCondition
    rendition: Rendition


def segment_key(piece: CorpusPiece, layout: Layout, number: int) -> str:
    """Return the key of a segment that is no mutant."""
    return f"{piece.id}.{layout}.{number}"


def make_sample(
    piece: CorpusPiece,
    layout: Layout,
    number: int,
    rendering: Rendering,
    recipe: RenderRecipe,
    mutant_of: str | None = None,
) -> Sample:
    """Cut the image and the sound of a span.

    Parameters
    ----------
    piece : CorpusPiece
    layout : Layout
    number : int
        Number of the segment in its rendering.
    rendering : Rendering
    recipe : RenderRecipe
    mutant_of : str, optional
        Key of the original, if this is its mutant.

    Returns
    -------
    Sample

    Raises
    ------
    LeftOutError
        If the segment is left out; it says why.
    """
    span, pages, rendition = rendering.span, rendering.pages, rendering.rendition
    options, audio = recipe.segment, recipe.audio
    segment = segment_of(span, pages.systems, pages.staves, pages.measures, options)
    if segment is None:
        raise LeftOutError("not in one line")
    by_staff = options.shape == "staff_strips"
    if by_staff and segment.width_px > options.max_width_px:
        raise LeftOutError("too wide")
    leads = random_stream(recipe.seed, piece.id, layout, "lead", span.first).uniform(
        0.0, audio.lead_sec, size=2
    )
    clip = rendition.clip_times(span, *leads)
    if clip.duration_sec > options.max_duration_sec:
        if not options.cut_long:
            raise LeftOutError("too long")
        clip = replace(clip, duration_sec=options.max_duration_sec)
    truth = _truth(span, segment, clip, pages.notes, rendition, by_staff)
    if not truth["struck"].any():
        raise LeftOutError("no notes")
    described = {
        "piece": piece.id,
        "layout": layout,
        "number": number,
        "mutant_of": mutant_of,
        "shape": options.shape,
        "licence": piece.licence,
        "split": piece.split,
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
        segment_key(piece, layout, number) if mutant_of is None else f"{mutant_of}.mutant",
        mutant_of,
        {
            "png": _png(image),
            ENDINGS[audio.codec]: _sound(span, clip, rendition, recipe),
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
