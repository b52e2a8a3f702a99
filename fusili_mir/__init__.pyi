"""The public names, stated once: type checkers read this file, and `__init__.py` loads from where it says."""

from .alignment.align_options import AlignOptions
from .alignment.aligner import Aligner
from .alignment.aligning import align_pages, align_recording, align_score
from .alignment.anchors import Anchor
from .alignment.encoded_alignment import AlignmentWarning, align_encoded
from .alignment.performance import anchors_from_alignment, performance_from_alignment
from .alignment.position_maps import PositionMaps, get_position_maps
from .alignment.results import Alignment
from .alignment.retrieval import Moment, Spot, point_at_spot, point_at_time
from .audio.recording import AudioFile, AudioSamples, open_recording
from .batch.many import align_many
from .batch.pair_report import PairReport
from .collection.building import build_index
from .collection.index import Index, open_index
from .collection.index_files import IndexedPiece
from .collection.index_report import IndexedFile, IndexReport
from .collection.searching import Match, search
from .decoding.similarity import column_similarity, frame_similarity
from .errors import FusiliError, FusiliWarning, InputError, MissingExtraError, OutputError
from .geometry import FrameGrid, PatchGrid
from .model.bundle import Bundle, default_bundle, load_bundle
from .model.encoded import EncodedAudio, EncodedScore
from .model.encoder import Encoder, encode_pages, encode_recording
from .output.alignment_files import save_alignment
from .output.page_files import save_pages
from .output.page_overlay import draw_overlay
from .output.score_with_ids import save_score_with_ids
from .pages.engraving import EngravingOptions
from .pages.pages import Pages, load_pages, open_pages, render_pages
from .pages.score_axis import ScoreAxis
from .pages.segments import Segment, cut_segment, staff_strips, system_strip
from .scores.score_warning import ScoreWarning
from .viewer.view_page import save_view

__version__: str

__all__ = [
    "AlignOptions",
    "Aligner",
    "Alignment",
    "AlignmentWarning",
    "Anchor",
    "AudioFile",
    "AudioSamples",
    "Bundle",
    "EncodedAudio",
    "EncodedScore",
    "Encoder",
    "EngravingOptions",
    "FrameGrid",
    "FusiliError",
    "FusiliWarning",
    "Index",
    "IndexReport",
    "IndexedFile",
    "IndexedPiece",
    "InputError",
    "Match",
    "MissingExtraError",
    "Moment",
    "OutputError",
    "Pages",
    "PairReport",
    "PatchGrid",
    "PositionMaps",
    "ScoreAxis",
    "ScoreWarning",
    "Segment",
    "Spot",
    "align_encoded",
    "align_many",
    "align_pages",
    "align_recording",
    "align_score",
    "anchors_from_alignment",
    "build_index",
    "column_similarity",
    "cut_segment",
    "default_bundle",
    "draw_overlay",
    "encode_pages",
    "encode_recording",
    "frame_similarity",
    "get_position_maps",
    "load_bundle",
    "load_pages",
    "open_index",
    "open_pages",
    "open_recording",
    "performance_from_alignment",
    "point_at_spot",
    "point_at_time",
    "render_pages",
    "save_alignment",
    "save_pages",
    "save_score_with_ids",
    "save_view",
    "search",
    "staff_strips",
    "system_strip",
]
