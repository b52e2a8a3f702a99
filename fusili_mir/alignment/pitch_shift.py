"""Finding at which pitch a recording sounds, before it is aligned.

The spectrum tells the tuning: where the pitches of the recording lie between the semitones of A at 440 Hz. Which
semitone of the score that is, the model tells: excerpts of the recording are read at the pitch of each candidate,
and compared with the whole score. In the right key the score explains the order of sounds, in others it does not.

The model does not see key signatures, so it can take a piece for the same in the key with seven sharps more or
fewer, a semitone higher or lower. Between such neighbours the pitch classes decide. Where the notes are
known and the recording is long, they also rule keys out before the model is asked, which is cheap.

The key that explains the excerpts best must explain others, too. Chance favours one of fifteen keys in any
recording, of this piece or of another, but it does not favour the same one twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import soxr

from fusili_mir.alignment.pitch_classes import PitchClasses, agreement, agreement_by_key
from fusili_mir.alignment.recording_pitch import RecordingPitch
from fusili_mir.alignment.written_pitch import semitones_above_pages
from fusili_mir.arrays import Float32, Float64, Int64
from fusili_mir.audio.heard_recording import HeardRecording
from fusili_mir.audio.pitch_curve import PitchCurve
from fusili_mir.audio.spectral_peaks import A4_HZ, SpectralPeaks, find_peaks
from fusili_mir.audio.tuning import estimate_tuning, follow_tuning
from fusili_mir.decoding.course import reading_course
from fusili_mir.decoding.rough_search import DecodingOptions, RoughSearch
from fusili_mir.decoding.similarity import CourseSimilarity
from fusili_mir.model.encoded import EncodedScore
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import Pages

__all__ = ["find_pitch"]

# Set by hand; no fit is recorded. docs/pitch.md measures what comes of them.
_KEYS = range(-7, 8)  # semitones above the first guess
_OCTAVES = (-12, 12)  # looked at in longer recordings: men who sing from a treble clef, guitars, small flutes
_EXCERPT_SEC = 20.0
_LEAST_SEC = 10.0  # of an excerpt: shorter ones prove nothing
_MOST_EXCERPTS = 3  # to choose by, and as many to confirm
_ROUGH_CELLS = 2**21
_PLAIN = 0.45  # reliability at which the first guess is right
_PROMISING = 0.2  # reliability of one excerpt at which the first guess is worth more excerpts
_KEPT_KEYS = 6  # after the first excerpt; half of them after the second
_RIGHT = {1: 0.4, 2: 0.35, 3: 0.3}  # least reliability of all excerpts, by half their number
_CONFIRMED = 0.25  # least reliability of the excerpts that a key was not chosen by
_OCTAVE_RIGHT = 0.35  # least reliability of an octave in the excerpts to choose by
_PROMISING_OCTAVE = 0.5  # share of what it needs that an octave must have in the first excerpt to be followed
_AHEAD = 0.1  # by which a key must be more reliable than the first guess
_RIVAL = 0.4  # share of the reliability of the best key from which a neighbour may be meant
_DECISIVE = 0.4  # difference in agreement that decides between neighbours
_DOUBTFUL = 0.2  # difference in agreement by which the first guess is preferred to a semitone away
_RULED_OUT = 0.2  # by which the pitch classes of a key may agree less than those of the best
_SILENT_SHARE = 0.01  # of the level of the loud parts


def find_pitch(
    pages: Pages,
    score: EncodedScore,
    recording: HeardRecording,
    encoder: Encoder,
    semitones: float | None = None,
    a4_hz: float | None = None,
) -> RecordingPitch:
    """Find at which pitch a recording sounds, compared with its score.

    Parameters
    ----------
    pages : Pages
    score : EncodedScore
        The same pages, encoded by `encoder`.
    recording : HeardRecording
    encoder : Encoder
    semitones : float, optional
        How far the recording sounds above the score, if that is known.
    a4_hz : float, optional
        Frequency of A in the recording, apart from any transposition, if that is known.

    Returns
    -------
    RecordingPitch
    """
    written = 100.0 * semitones_above_pages(pages)
    if semitones is not None and a4_hz is not None:
        cents = 100 * semitones + 1200 * math.log2(a4_hz / A4_HZ)
        if cents == 0 and not written:
            return RecordingPitch.as_written()
        return RecordingPitch(PitchCurve.constant(cents), "given", written)
    peaks = find_peaks(recording.blocks(), recording.sample_rate_hz, recording.start_sec)
    tuned = _tuning_curve(peaks) if a4_hz is None else PitchCurve.constant(1200 * math.log2(a4_hz / A4_HZ))
    if semitones is not None:
        return RecordingPitch(_rounded(tuned.raised(100 * semitones)), "found", written)
    search = _KeySearch(pages, score, recording, encoder, peaks, tuned, written)
    key = search.find()
    if key is None:
        given = PitchCurve.constant(0.0) if a4_hz is None else tuned
        return RecordingPitch(given, "unknown", written)
    return RecordingPitch(_rounded(tuned.raised(100.0 * key)), "found", written)


def _tuning_curve(peaks: SpectralPeaks) -> PitchCurve:
    """Return the tuning over time; 0 if the recording has none."""
    drifting = follow_tuning(peaks)
    if drifting is not None:
        # Start from the semitone that is nearest on the whole.
        return drifting.raised(-100.0 * round(float(np.median(drifting.cents)) / 100))
    tuning = estimate_tuning(peaks)
    return PitchCurve.constant(tuning.cents if tuning.is_clear else 0.0)


def _rounded(curve: PitchCurve) -> PitchCurve:
    """Round to a tenth of a cent, which is more than can be known."""
    return PitchCurve(curve.seconds, curve.cents.round(1))


@dataclass(frozen=True)
class _Excerpt:
    """Some seconds of a recording.

    Attributes
    ----------
    samples : np.ndarray [shape=(n,)]
    start_sec, end_sec : float
    cents : float
        Tuning of the recording there.
    """

    samples: Float32
    start_sec: float
    end_sec: float
    cents: float


@dataclass(frozen=True)
class _Explained:
    """How well the score explains an excerpt in some key; see `RoughSearch`."""

    reliability: float
    likelihood: float


@dataclass(frozen=True)
class _Followed:
    """The best path of an excerpt through the score, in some key.

    Attributes
    ----------
    system : np.ndarray of int [shape=(M,)]
        System that each frame is in.
    seconds : np.ndarray [shape=(M,)]
        The frames, within the recording.
    """

    system: Int64
    seconds: Float64


@dataclass(frozen=True)
class _ExcerptSearch:
    """The search for an excerpt in the score, in some key; it holds large arrays."""

    number: int
    key: int
    rough: RoughSearch
    seconds: Float64


@dataclass
class _KeySearch:
    """The search for the semitones between the score and the tuning of a recording."""

    pages: Pages
    score: EncodedScore
    recording: HeardRecording
    encoder: Encoder
    peaks: SpectralPeaks
    tuned: PitchCurve
    written_cents: float
    _explained: dict[tuple[int, int], _Explained] = field(default_factory=dict)
    _followed: dict[tuple[int, int], _Followed] = field(default_factory=dict)
    _last_search: _ExcerptSearch | None = None

    def find(self) -> int | None:
        """Return the key, in semitones above the first guess; None if no key explains the recording."""
        n = len(self.excerpts) // 2
        if not n:
            return None
        if self._first_guess_is_plain:
            return 0
        choosing, confirming = list(range(n)), list(range(n, 2 * n))
        near, first = self._possible(range(-1, 2)), choosing[:1]
        if near and self._reliability(self._best(near, first), first) >= _PROMISING:
            best = self._best(near, choosing)
            if self._reliability(best, choosing) >= _PLAIN:
                return self._among_neighbours(best, choosing)
        best = self._or_octave(self._best(self._possible(_KEYS), choosing), choosing)
        confirmed = self._reliability(best, confirming)
        if confirmed < _CONFIRMED or self._reliability(best, choosing + confirming) < _RIGHT[n]:
            return None
        if best and confirmed < self._reliability(0, confirming[:1]) + _AHEAD:
            best = 0
        return best if best in _OCTAVES else self._among_neighbours(best, choosing)

    def _or_octave(self, best: int, excerpts: list[int]) -> int:
        """Return an octave instead of a key if it explains excerpts better."""
        if self.recording.duration_sec < 2 * _EXCERPT_SEC:
            return best  # few seconds, read twice as fast, explain anything
        least = max(_OCTAVE_RIGHT, self._reliability(best, excerpts))
        octaves = [
            key
            for key in self._possible(_OCTAVES)
            if self._reliability(key, excerpts[:1]) >= _PROMISING_OCTAVE * least
        ]
        octave = max(octaves, key=lambda key: self._reliability(key, excerpts), default=best)
        return octave if self._reliability(octave, excerpts) > least else best

    @property
    def _first_guess_is_plain(self) -> bool:
        """Whether the first excerpt says that the first guess is right: few seconds need to be encoded for it."""
        return self._reliability(0, [0]) >= _PLAIN and self._lead(0, [0]) >= _DECISIVE

    def _best(self, keys: list[int], excerpts: list[int]) -> int:
        """Return the key that explains excerpts best; each excerpt rules out more keys."""
        for number in range(1, len(excerpts) + 1):
            some = excerpts[:number]
            ranked = sorted(keys, key=lambda key: (-self._reliability(key, some), abs(key)))
            keys = ranked[: _KEPT_KEYS // number]
        return keys[0]

    def _possible(self, keys: Iterable[int]) -> list[int]:
        """Return those of some keys that pitch classes do not rule out.

        All are possible where no notes are known, or where there is one excerpt to choose by: it says too little.
        """
        if self.pages.score is None or len(self.excerpts) < 4:
            return list(keys)
        agreed = self._agreement_by_key
        return [key for key in keys if agreed[key % 12] >= agreed.max() - _RULED_OUT]

    @cached_property
    def _agreement_by_key(self) -> Float64:
        """How well the excerpts to choose by agree with the passages of the score that are most like them."""
        passages = self._pitch_classes.of_passages
        agreed = [
            agreement_by_key(self.peaks.between(each.start_sec, each.end_sec), passages, each.cents)
            for each in self.excerpts[: len(self.excerpts) // 2]
        ]
        return np.asarray(np.mean(agreed, axis=0))

    def _among_neighbours(self, best: int, excerpts: list[int]) -> int:
        """Choose between a key and those a semitone away that explain the recording about as well."""
        if self._lead(best, excerpts) >= _DECISIVE:
            return best
        everything = list(range(len(self.excerpts)))
        found = self._best_neighbour(self._rivals(best, excerpts), excerpts, everything)
        if abs(found) == 1:  # a modulation that the model does not see may sound like a shift
            agreements = self._agreements([0, found], everything)
            found = found if agreements[0] - agreements[found] < _DOUBTFUL else 0
        return found

    def _best_neighbour(self, rivals: list[int], excerpts: list[int], everything: list[int]) -> int:
        if len(rivals) == 1:
            return rivals[0]
        for some in (excerpts, everything):
            agreements = self._agreements(rivals, some)
            first, second = sorted(rivals, key=lambda key: -agreements[key])[:2]
            if agreements[first] - agreements[second] >= _DECISIVE:
                return first
        return 0 if 0 in rivals else max(rivals, key=lambda key: self._likelihood(key, everything))

    def _lead(self, key: int, excerpts: list[int]) -> float:
        """Return how much better the pitch classes of a key agree with its path than those a semitone away do."""
        weight = [self._reliability(key, [each]) for each in excerpts]
        leads = [
            self._agreement(each, key)
            - max(self._agreement(each, other, path_key=key) for other in (key - 1, key + 1))
            for each in excerpts
        ]
        return float(np.dot(weight, leads)) / max(sum(weight), 1e-9)

    def _rivals(self, best: int, excerpts: list[int]) -> list[int]:
        """Return a key and those a semitone away that explain excerpts about as well."""
        least = _RIVAL * self._reliability(best, excerpts)
        return [key for key in (best - 1, best, best + 1) if self._reliability(key, excerpts) >= least]

    def _reliability(self, key: int, excerpts: list[int]) -> float:
        return float(np.mean([self._explain(each, key).reliability for each in excerpts]))

    def _likelihood(self, key: int, excerpts: list[int]) -> float:
        return float(np.mean([self._explain(each, key).likelihood for each in excerpts]))

    def _agreements(self, keys: list[int], excerpts: list[int]) -> dict[int, float]:
        """Return how well the pitch classes of each key agree with those of the systems that are played.

        Excerpts in which the score explains little count little. 0 is chance, 1 is much.
        """
        weight = [max(self._reliability(key, [each]) for key in keys) for each in excerpts]
        agreed = {key: [self._agreement(each, key) for each in excerpts] for key in keys}
        total = max(sum(weight), 1e-9)
        return {key: float(np.dot(weight, values)) / total for key, values in agreed.items()}

    def _agreement(self, number: int, key: int, path_key: int | None = None) -> float:
        """Compare the pitches of an excerpt with those of the systems on its path, in its own or another key."""
        path = self._follow(number, key if path_key is None else path_key)
        excerpt = self.excerpts[number]
        peaks = self.peaks.between(excerpt.start_sec, excerpt.end_sec)
        if not len(peaks):
            return 0.0
        frame = np.searchsorted(path.seconds, peaks.seconds).clip(max=len(path.system) - 1)
        expected = self._pitch_classes.of_systems(path.system[frame])
        agreed = agreement(peaks, expected, excerpt.cents + 100 * key)
        return float((peaks.magnitude * agreed).sum() / peaks.magnitude.sum())

    @cached_property
    def _pitch_classes(self) -> PitchClasses:
        return PitchClasses(self.pages)

    @cached_property
    def excerpts(self) -> list[_Excerpt]:
        """Excerpts to choose by, and as many to confirm, in turn through the recording."""
        duration_sec = self.recording.duration_sec
        n_parts = 2 * int(np.clip(round(duration_sec / (2 * _EXCERPT_SEC)), 1, _MOST_EXCERPTS))
        part_sec = duration_sec / n_parts
        length_sec = min(part_sec, _EXCERPT_SEC)
        if length_sec < _LEAST_SEC:
            return []
        starts = [
            self._most_music(part * part_sec, (part + 1) * part_sec, length_sec) for part in range(n_parts)
        ]
        found = []
        for start in starts[::2] + starts[1::2]:
            rate_hz, first_sec = self.recording.sample_rate_hz, self.recording.start_sec
            samples = self.recording.read(round(start * rate_hz), round((start + length_sec) * rate_hz))
            middle_sec = first_sec + start + length_sec / 2
            cents = float(self.tuned.at(middle_sec))
            found.append(_Excerpt(samples, first_sec + start, first_sec + start + length_sec, cents))
        return found

    def _most_music(self, start_sec: float, end_sec: float, length_sec: float) -> float:
        """Return where in a part of the recording the loudest tones begin, for some seconds."""
        step_sec, first_sec = self.peaks.step_sec, self.recording.start_sec
        peaks = self.peaks.between(first_sec + start_sec, first_sec + end_sec)
        n_steps = max(1, int((end_sec - start_sec) / step_sec))
        place = ((peaks.seconds - first_sec - start_sec) / step_sec).astype(np.int64).clip(0, n_steps - 1)
        loudness = np.sqrt(np.bincount(place, np.square(peaks.magnitude), n_steps))
        size = min(n_steps, max(1, int(length_sec / step_sec)))
        sums = np.convolve(np.minimum(loudness, np.quantile(loudness, 0.9)), np.ones(size), mode="valid")
        return float(min(start_sec + int(sums.argmax()) * step_sec, end_sec - length_sec))

    def _explain(self, number: int, key: int) -> _Explained:
        if (number, key) not in self._explained:
            search = self._search(number, key).rough
            self._explained[number, key] = _Explained(search.order, search.likelihood)
        return self._explained[number, key]

    def _follow(self, number: int, key: int) -> _Followed:
        """Return the best path, which few keys need."""
        if (number, key) not in self._followed:
            search = self._search(number, key)
            system = _systems_on_path(search.rough, self.score.axis.columns["system"])
            self._followed[number, key] = _Followed(system, search.seconds)
        return self._followed[number, key]

    def _search(self, number: int, key: int) -> _ExcerptSearch:
        """Search for an excerpt in some key; the last search is kept."""
        last = self._last_search
        if last is not None and (last.number, last.key) == (number, key):
            return last
        excerpt = self.excerpts[number]
        ratio = 2 ** ((excerpt.cents + 100 * key + self.written_cents) / 1200)
        rate_hz = self.recording.sample_rate_hz
        read = np.asarray(soxr.resample(excerpt.samples, rate_hz, rate_hz * ratio), dtype=np.float32)
        frames, frame_sec = self.encoder.encode_samples(read), self.encoder.bundle.audio.frame_sec / ratio
        heard = _sounding(read, len(frames))
        similarity = CourseSimilarity(
            self.score.embeddings,
            self.score.mask,
            frames[heard],
            reading_course(np.arange(len(self.score.axis))),
        )
        options = DecodingOptions(rough_cells=_ROUGH_CELLS)
        rough = RoughSearch(similarity, frame_sec, self.encoder.bundle.manifest.scale, options)
        seconds = np.asarray(excerpt.start_sec + (heard + 0.5) * frame_sec)
        self._last_search = _ExcerptSearch(number, key, rough, seconds)
        return self._last_search


def _sounding(samples: Float32, n_frames: int) -> Int64:
    """Return the indices of the frames that are not silent; of all if every one is."""
    size = -(-len(samples) // n_frames)
    padded = np.pad(samples, (0, n_frames * size - len(samples))).reshape(n_frames, size)
    level = np.sqrt(np.square(padded, dtype=np.float64).mean(axis=1))
    heard = np.flatnonzero(level > _SILENT_SHARE * np.quantile(level, 0.95))
    return heard if len(heard) else np.arange(n_frames)


def _systems_on_path(search: RoughSearch, system_of_column: Int64) -> Int64:
    """Return the system that each frame is in on the best path."""
    by_frame, by_stop = search.factors
    stop = np.repeat(search.path().stop, by_frame)[: len(search.similarity.frames)]
    column = np.minimum(stop * by_stop, len(system_of_column) - 1)
    return np.asarray(system_of_column[column], dtype=np.int64)
