"""Choosing how the repeats of a score were played: the way that explains the recording best."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import numpy as np

from fusili_mir.alignment.played import PlayedScore, play_pages
from fusili_mir.alignment.playing_course import PlayingCourse, playing_course
from fusili_mir.decoding.similarity import CourseSimilarity
from fusili_mir.decoding.warping_path import DecodingOptions, RoughSearch
from fusili_mir.errors import InputError
from fusili_mir.model.encoded import EncodedAudio, EncodedScore
from fusili_mir.pages.pages import Pages
from fusili_mir.scores.unfolding import NamedUnfold, count_unfoldings
from fusili_mir.short_repr import short_repr

__all__ = ["UnfoldChoice", "Unfolding", "check_unfold", "choose_unfolding"]

UnfoldChoice: TypeAlias = Literal["auto"] | NamedUnfold


@short_repr
@dataclass(frozen=True)
class Unfolding:
    """One of the ways in which a score may be played, compared with a recording.

    Attributes
    ----------
    played : PlayedScore
    on_course : PlayingCourse
    similarity : CourseSimilarity
        Similarity of its course and the recording.
    """

    played: PlayedScore
    on_course: PlayingCourse
    similarity: CourseSimilarity


def check_unfold(unfold: str) -> None:
    """Raise an error unless it is one of the ways to unfold a score."""
    names = ("auto", *get_args(NamedUnfold))
    if unfold not in names:
        raise InputError(f"unfold is {unfold!r}, expected one of {', '.join(names)}")


def choose_unfolding(
    pages: Pages,
    score: EncodedScore,
    audio: EncodedAudio,
    scale: float,
    unfold: str = "auto",
    options: DecodingOptions | None = None,
) -> Unfolding:
    """Write out the repeats of a score as they were played.

    Parameters
    ----------
    pages : Pages
        Pages from `render_pages` with ``unfold="none"``.
    score, audio : EncodedScore, EncodedAudio
        Both encoded with the same bundle.
    scale : float
        The bundle's scale of cosines.
    unfold : "auto", "maximal", "minimal" or "none"
        With "auto", playing all repeats, playing none and, in scores with few repeats, every selection of them
        is tried, and the one that explains the recording best is kept. A score without repeats, or with repeats
        that contradict each other, stays as notated, and so do its ids.
    options : DecodingOptions, optional

    Returns
    -------
    Unfolding
    """
    check_unfold(unfold)
    if unfold != "auto":
        return _unfolding(play_pages(pages, unfold), score, audio)  # type: ignore[arg-type]
    notated = play_pages(pages, "none")
    try:
        ways = [play_pages(pages, "maximal"), play_pages(pages, "minimal")]
        if pages.score is not None:
            ways += [play_pages(pages, way) for way in range(count_unfoldings(pages.score))]
    except InputError:  # repeats that contradict each other leave only the score as notated
        return _unfolding(notated, score, audio)
    if np.array_equal(ways[0].measures["measure"], notated.measures["measure"]):
        return _unfolding(notated, score, audio)
    different = {tuple(played.measures["measure"].tolist()): played for played in reversed(ways)}
    options = options or DecodingOptions()

    def explained(each: Unfolding) -> float:
        heard = replace(each.similarity, frames=audio.frames[audio.sound.sounding])
        return RoughSearch(heard, audio.grid.frame_sec, scale, options).likelihood

    return max((_unfolding(played, score, audio) for played in different.values()), key=explained)


def _unfolding(played: PlayedScore, score: EncodedScore, audio: EncodedAudio) -> Unfolding:
    on_course = playing_course(played, score.axis)
    similarity = CourseSimilarity(score.embeddings, score.mask, audio.frames, on_course.course)
    return Unfolding(played, on_course, similarity)
