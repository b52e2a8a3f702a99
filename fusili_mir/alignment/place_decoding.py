"""Decoding page images: from embeddings to when each place on the pages sounds.

First the places are found (`note_places`), then a path along them, the times at which they begin, and the place
of the music in each frame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fusili_mir.alignment.frame_places import frames_of_places
from fusili_mir.alignment.note_places import NotePlaces, find_places
from fusili_mir.alignment.position_maps import PlaceMoments
from fusili_mir.alignment.stop_pitches import pitches_of_places
from fusili_mir.arrays import Bool, Float64, Int64, Table
from fusili_mir.decoding.course import reading_course
from fusili_mir.decoding.onset_evidence import OnsetEvidence
from fusili_mir.decoding.rough_search import DecodingOptions
from fusili_mir.decoding.similarity import CourseSimilarity
from fusili_mir.decoding.stop_pins import StopPin
from fusili_mir.decoding.warping_path import WarpingPath, decode_path
from fusili_mir.errors import InputError
from fusili_mir.model.encoded import EncodedAudio, EncodedScore
from fusili_mir.short_repr import short_repr

__all__ = ["DecodedPlaces", "decode_places"]


@short_repr
@dataclass(frozen=True)
class DecodedPlaces:
    """Page images and a recording, decoded.

    Attributes
    ----------
    path : WarpingPath
        Path from frame to place.
    similarity : CourseSimilarity
        Similarity of the places and the recording.
    frames : np.ndarray of `FRAME_DTYPE` [shape=(M,)]
        The place on the pages in each audio frame.
    moments : PlaceMoments
        When each place begins to sound.
    """

    path: WarpingPath
    similarity: CourseSimilarity
    frames: Table
    moments: PlaceMoments


def decode_places(
    score: EncodedScore,
    audio: EncodedAudio,
    scale: float,
    columns: Int64,
    options: DecodingOptions | None = None,
    pins: Callable[[NotePlaces], Sequence[StopPin]] | None = None,
    is_mute: Bool | None = None,
    column_lengths: Float64 | None = None,
) -> DecodedPlaces:
    """Find when each place on page images sounds.

    Parameters
    ----------
    score, audio : EncodedScore, EncodedAudio
        Both encoded with the same bundle.
    scale : float
        The bundle's scale of cosines.
    columns : np.ndarray of int [shape=(P,)]
        The columns of the score in the order in which they are played.
    options : DecodingOptions, optional
    pins : callable, optional
        Returns the places whose seconds are known, once the places are found.
    is_mute : np.ndarray of bool [shape=(C,)], optional
        Columns in which nothing begins to sound.
    column_lengths : np.ndarray [shape=(C,)], optional
        How long the music is expected to stay on each column; by default alike.

    Returns
    -------
    DecodedPlaces

    Raises
    ------
    InputError
        If nothing in the recording sounds like the pages, or their notes were not read.
    """
    if score.pitches is None:
        raise InputError(
            "expected the pitches that are read off images; encode them with `Encoder.encode_pages`"
        )
    by_column = CourseSimilarity(score.embeddings, score.mask, audio.frames, reading_course(columns))
    places = find_places(by_column, scale, score.axis, audio.sound.is_silent, is_mute, column_lengths)
    by_place = replace(by_column, course=places.course)
    options = options or DecodingOptions()
    pitches = pitches_of_places(score.pitches, places.course)
    evidence = OnsetEvidence(audio.onsets, audio.envelope, pitches, options.law)
    pinned = () if pins is None else pins(places)
    found = decode_path(by_place, audio.grid, scale, audio.sound, evidence, options, pinned)
    frames = frames_of_places(found.path, places, found.times, by_column.course, score.axis, audio.grid)
    return DecodedPlaces(found.path, by_place, frames, places.moments(found.times, columns, score.axis))
