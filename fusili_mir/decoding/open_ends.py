"""Ends of a path that lie in the middle of the music: an excerpt that begins or ends while something sounds.

A path through frames must not rush: where an excerpt begins, it tends to visit stops that were played before, and
where it ends, stops that would be played after it. So a recording that begins or ends in music is followed once
more from a stop some seconds inside, outwards to its end, with the law by which stops are timed. At the beginning
it may enter in the middle of any stop, which began before the recording does; at the end the last stop may go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from fusili_mir.arrays import Float32, Float64, Int64
from fusili_mir.decoding.course import Course
from fusili_mir.decoding.onset_evidence import OnsetEvidence
from fusili_mir.decoding.stop_likelihoods import StopLikelihoods
from fusili_mir.decoding.stop_pins import Stretch
from fusili_mir.decoding.timing_law import TimingLaw
from fusili_mir.decoding.viterbi import Block, DecodedPath
from fusili_mir.geometry import FrameGrid

__all__ = ["follow_to_open_ends"]

_NEVER = np.float32(-1e9)
_AT_ONCE_SEC = 0.15  # music that begins so soon, or ends so late, may have been cut
_SOON_SEC = 1.0  # the same if there is no silence before or after it
_INSIDE_SEC = 5.0  # from where the path is followed outwards
_MOST_SHARE = 0.4  # of the recording, at most
_TEMPO_STOPS = 24  # further inside, by which the tempo is known
_FASTEST = 4.0  # times that tempo: no more stops are looked at
_LEAST_NATS = np.float32(-2.0)  # as in `semi_markov`: a frame that sounds different says so, and no more
_LEAST_ONSET_NATS = np.float32(-0.5)
_TOO_LONG_WEIGHT = np.float32(2.0)  # a stop that lasts too long at an end is more likely several
_LEFT_OUT_NATS, _MOST_LEFT_OUT_NATS = 10.0, 40.0  # each stop of the score that is not played, and all of them


def follow_to_open_ends(
    path: DecodedPath,
    likelihoods: StopLikelihoods,
    evidence: OnsetEvidence,
    grid: FrameGrid,
    law: TimingLaw,
    stretches: list[Stretch],
) -> DecodedPath:
    """Correct a path near the ends of a recording that begins or ends in the middle of music.

    Parameters
    ----------
    path : DecodedPath
        Stop in each frame of the recording.
    likelihoods : StopLikelihoods
        Log-likelihoods of all frames.
    evidence : OnsetEvidence
    grid : FrameGrid
        Times of the frames.
    law : TimingLaw
    stretches : list of Stretch
        Stretches between stops whose seconds are known; an end that holds one of them stays as it is.

    Returns
    -------
    DecodedPath
        Frames before the first stop that begins in the recording are filler.
    """
    for outwards in (-1, 1):
        edge = _Edge.of(path, likelihoods, evidence, grid, law, outwards)
        if edge is not None and edge.is_free(stretches):
            path = edge.followed(path)
    return path


@dataclass(frozen=True)
class _Edge:
    """One end of a recording.

    Attributes
    ----------
    outwards : int
        -1 at the beginning, 1 at the end.
    inside : int
        Stop from which the path is followed.
    cells : np.ndarray of int [shape=(C,)]
        Cells from the end of the recording to that stop, or from that stop to the end.
    stops : np.ndarray of int [shape=(n,)]
        That stop, and the next ones outwards.
    sec_per_unit : float
        Tempo inside.
    """

    likelihoods: StopLikelihoods
    evidence: OnsetEvidence
    grid: FrameGrid
    law: TimingLaw
    outwards: int
    inside: int
    cells: Int64
    stops: Int64
    sec_per_unit: float

    @classmethod
    def of(
        cls,
        path: DecodedPath,
        likelihoods: StopLikelihoods,
        evidence: OnsetEvidence,
        grid: FrameGrid,
        law: TimingLaw,
        outwards: int,
    ) -> _Edge | None:
        """Look at one end; None if the music does not reach it, or is too short to be followed."""
        course = likelihoods.similarity.course
        music = np.flatnonzero(~path.is_filler)
        visited, where = np.unique(path.stop[music], return_index=True)
        arrival_sec = grid.start_sec + music[where] * grid.frame_sec
        begin_sec = max(grid.start_sec, grid.audio_start_sec)
        lasting_sec = grid.end_sec - begin_sec
        last_sec = grid.start_sec + (music[-1] + 1) * grid.frame_sec
        away_sec = arrival_sec[0] - begin_sec if outwards < 0 else grid.end_sec - last_sec
        beyond = slice(0, music[0]) if outwards < 0 else slice(music[-1] + 1, None)
        is_cut = away_sec <= _AT_ONCE_SEC or (
            away_sec <= _SOON_SEC and not likelihoods.is_silent[beyond].any()
        )
        inside_sec = min(_INSIDE_SEC, _MOST_SHARE * lasting_sec)
        if outwards < 0:
            number = int(np.searchsorted(arrival_sec, begin_sec + inside_sec))
            around = slice(number, number + _TEMPO_STOPS)
        else:
            number = int(np.searchsorted(arrival_sec, grid.end_sec - inside_sec)) - 1
            around = slice(max(number - _TEMPO_STOPS, 0), number + 1)
        if not is_cut or course.of_columns or not 0 <= number < len(visited):
            return None
        inside, units = int(visited[number]), course.start[visited[around]]
        span_sec = float(np.ptp(arrival_sec[around]))
        if np.ptp(units) <= 0 or span_sec <= 0:
            return None
        sec_per_unit = span_sec / float(np.ptp(units))
        reached = course.start[inside] + outwards * _FASTEST * inside_sec / sec_per_unit
        if outwards < 0:
            stops = np.arange(inside, int(np.searchsorted(course.start[:-1], reached)) - 1, -1)
        else:
            stops = np.arange(inside, int(np.searchsorted(course.start[:-1], reached, side="right")))
        at, end = (
            int(np.clip((second - evidence.start_sec) / evidence.cell_sec, 0, evidence.n_cells - 1))
            for second in (arrival_sec[number], begin_sec if outwards < 0 else grid.end_sec)
        )
        cells = np.arange(min(at, end), max(at, end) + 1)
        return cls(likelihoods, evidence, grid, law, outwards, inside, cells, stops, sec_per_unit)

    @property
    def _course(self) -> Course:
        return self.likelihoods.similarity.course

    @property
    def _seconds(self) -> Float64:
        """The middles of the cells."""
        return np.asarray(self.evidence.start_sec + (self.cells + 0.5) * self.evidence.cell_sec)

    def is_free(self, stretches: list[Stretch]) -> bool:
        """Return whether no second is known here."""
        if self.outwards < 0:
            first = stretches[0]
            return first.from_sec == -np.inf and first.to_sec > self._seconds[-1]
        last = stretches[-1]
        return last.to_sec == np.inf and last.from_sec < self._seconds[0]

    def followed(self, path: DecodedPath) -> DecodedPath:
        """Return the path with this end corrected."""
        stops, cells = self._best()
        onset_sec = self.evidence.start_sec + (cells + 0.5) * self.evidence.cell_sec
        middle_sec = self.grid.start_sec + (np.arange(len(path.stop)) + 0.5) * self.grid.frame_sec
        here = middle_sec < onset_sec[-1] if self.outwards < 0 else middle_sec >= onset_sec[0]
        number = np.searchsorted(onset_sec, middle_sec[here], side="right") - 1
        stop, is_filler = path.stop.copy(), path.is_filler.copy()
        stop[here] = stops[np.maximum(number, 0)]
        is_filler[here] = number < 0
        return replace(path, stop=stop, is_filler=is_filler)

    def _best(self) -> tuple[Int64, Int64]:
        """Return the stops that begin here, in order, and the cells in which they do."""
        best, chosen = -np.inf, (0, 0)
        sources: list[Int64] = []
        for number, (value, ending) in enumerate(self._ways(sources)):
            whole = value + ending
            if float(whole.max()) > best:
                best, chosen = float(whole.max()), (number, int(whole.argmax()))
            if value.max() < _NEVER / 2:
                break
        number, cell = chosen
        found = [cell]
        for source in sources[:number][::-1]:
            found.append(int(source[found[-1]]))
        stops, cells = self.stops[: number + 1], self.cells[found[::-1]]
        return (stops[::-1], cells[::-1]) if self.outwards < 0 else (stops, cells)

    def _ways(self, sources: list[Int64]) -> Iterator[tuple[Float32, Float32]]:
        """Yield, stop by stop outwards, the best way to begin it in each cell, and what comes beyond it.

        Where each way came from is added to `sources`.
        """
        n_cells = len(self.cells)
        sound = self._sound()
        by = np.arange(1, n_cells)
        moved = np.arange(n_cells)[:, None] - self.outwards * by
        moved = np.where((moved >= 0) & (moved < n_cells), moved, n_cells)
        value = np.full(n_cells, _NEVER)
        value[0 if self.outwards > 0 else -1] = 0.0
        yield value, self._ending(0, sound)
        for number in range(1, len(self.stops)):
            # The one of two neighbours that is played first lasts until the other begins.
            earlier = number if self.outwards < 0 else number - 1
            before = value - self.outwards * sound[:, earlier]
            ways = np.append(before, _NEVER)[moved] - self._cost(earlier, by)
            best = ways.argmax(axis=1)[:, None]
            sources.append(np.minimum(np.take_along_axis(moved, best, axis=1)[:, 0], n_cells - 1))
            value = np.take_along_axis(ways, best, axis=1)[:, 0] + self.outwards * sound[:, earlier]
            value += self._onset(number)
            value = np.maximum(value, _NEVER).astype(np.float32)
            yield value, self._ending(number, sound)

    def _onset(self, number: int) -> Float32:
        """Return what a stop gains by beginning in each cell.

        What speaks against an onset hardly counts: how many stops there are is for the tempo to say, not for
        onsets that are hardly heard. At a cut everything that sounds seems to begin, so there nothing counts.
        """
        cells = slice(int(self.cells[0]), int(self.cells[-1]) + 1)
        nats = self.evidence.nats(int(self.stops[number]), cells)
        if self.outwards < 0:
            nats[: round(_AT_ONCE_SEC / self.evidence.cell_sec)] = 0.0
        return np.maximum(nats, _LEAST_ONSET_NATS)

    def _cost(self, number: int, cells: Int64) -> Float32:
        """Return what it costs that a stop lasts some numbers of cells."""
        seconds = (np.maximum(cells, 0.5) * self.evidence.cell_sec).astype(np.float32)
        is_grace = self._lasting(number) < 1e-6
        return self.law.duration_cost(seconds, self._expected_sec(number), is_grace, self._course.is_spaced)

    def _ending(self, number: int, sound: Float32) -> Float32:
        """Return what it is worth, for each cell in which a stop begins, that none follows outwards.

        At the beginning, the stop before has begun before the recording does; at the end, this one goes on.
        Here, either may last shorter than expected, but not longer.
        """
        stop = int(self.stops[number])
        n_left_out = stop if self.outwards < 0 else len(self._course) - 1 - stop
        left_out = np.float32(min(_LEFT_OUT_NATS * n_left_out, _MOST_LEFT_OUT_NATS))
        if self.outwards > 0:
            away = np.arange(len(self.cells))[::-1]
            return np.asarray(
                sound[-1, number] - sound[:, number] - self._too_long(number, away) - left_out, np.float32
            )
        if number + 1 == len(self.stops):  # the first stop of the score, or the last one that is looked at
            return np.full(len(self.cells), -left_out, np.float32)
        away = np.arange(len(self.cells))
        return np.asarray(sound[:, number + 1] - self._too_long(number + 1, away) - left_out, np.float32)

    def _too_long(self, number: int, cells: Int64) -> Float32:
        """Return what it costs that a stop lasts some numbers of cells, or longer; half last as expected."""
        share = cells * self.evidence.cell_sec / self._expected_sec(number)
        usual = -np.log1p(-0.5 * np.minimum(share, 1.0))
        beyond = np.where(share <= 1.0, np.float32(0.0), _TOO_LONG_WEIGHT * self._cost(number, cells))
        return np.asarray(usual + beyond, dtype=np.float32)

    def _expected_sec(self, number: int) -> float:
        return self.law.expected_sec(self._lasting(number), self.sec_per_unit)

    def _lasting(self, number: int) -> float:
        stop = int(self.stops[number])
        return float(self._course.start[stop + 1] - self._course.start[stop])

    def _sound(self) -> Float32:
        """Return the sums of the likelihoods of each stop from the first cell on [shape=(C, n)]."""
        n_frames = len(self.likelihoods.baseline)
        place = (self._seconds - self.grid.start_sec) / self.grid.frame_sec
        frames = slice(
            int(np.clip(place[0], 0, n_frames - 1)), int(np.clip(np.ceil(place[-1]) + 1, 1, n_frames))
        )
        low, high = int(self.stops.min()), int(self.stops.max()) + 1
        nats = np.maximum(self.likelihoods(Block(frames, slice(low, high))), _LEAST_NATS)
        nats *= np.float32(self.evidence.sound_weight)
        summed = np.vstack((np.zeros(high - low), np.cumsum(nats, axis=0, dtype=np.float64)))
        at = np.clip(place - frames.start, 0, len(summed) - 1)
        below = np.minimum(at.astype(np.int64), len(summed) - 2)
        share = (at - below)[:, None]
        sums = (1 - share) * summed[below] + share * summed[below + 1]
        return np.asarray(sums[:, self.stops - low], dtype=np.float32)
