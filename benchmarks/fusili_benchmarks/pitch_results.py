"""Results of `pitch.py`, kept as lines of JSON, so that a run that was interrupted goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from fusili_benchmarks.pitch_runs import PitchRun
from fusili_mir.alignment.recording_pitch import RecordingPitch
from fusili_mir.arrays import Float64

__all__ = ["CloseHeads", "KeptResults", "PitchResult"]

_CLOSE_SEC = 0.25


@dataclass(frozen=True)
class CloseHeads:
    """How close the heads of a piece were placed to the truth.

    Attributes
    ----------
    n_heads, within_250 : int
        How many there are, and how many of them lie within 250 ms of the truth.
    within_250_unshifted : int
        The same, had the recording been played at its unshifted speed.
    median_ms : float
    """

    n_heads: int
    within_250: int
    within_250_unshifted: int
    median_ms: float

    @classmethod
    def of(cls, errors_sec: Float64, slower: float = 1.0) -> CloseHeads:
        """Count the errors in a recording that lasts `slower` times as long as the unshifted one."""
        return cls(
            len(errors_sec),
            int(np.count_nonzero(errors_sec <= _CLOSE_SEC)),
            int(np.count_nonzero(errors_sec <= _CLOSE_SEC * slower)),
            1000 * float(np.median(errors_sec)),
        )


@dataclass(frozen=True)
class PitchResult:
    """What one run gave.

    Attributes
    ----------
    cents : float
        True pitch of the recording relative to its score.
    source : str
        As in `RecordingPitch`.
    found_cents, off_cents : float
        What was found, and the largest distance from the truth, for drifting recordings anywhere in time.
    pitch_cpu_sec, rest_cpu_sec : float
        Cost of the search, and of encoding and aligning.
    heads : CloseHeads, optional
        None if the recording was not aligned.
    unshifted : CloseHeads, optional
        Heads in the unshifted recording, without any search.
    reliability : float
    """

    cents: float
    source: str
    found_cents: float
    off_cents: float
    pitch_cpu_sec: float = 0.0
    rest_cpu_sec: float = 0.0
    heads: CloseHeads | None = None
    unshifted: CloseHeads | None = None
    reliability: float = 0.0

    @classmethod
    def of(
        cls,
        cents: float,
        pitch: RecordingPitch,
        run: PitchRun | None = None,
        unshifted: CloseHeads | None = None,
        slower: float = 1.0,
        score_cpu_sec: float = 0.0,
        off_cents: float | None = None,
    ) -> PitchResult:
        """Sum up a run."""
        off = abs(pitch.cents - cents) if off_cents is None else off_cents
        result = cls(cents, pitch.source, pitch.cents, off, unshifted=unshifted)
        if run is None:
            return result
        return cls(
            cents,
            pitch.source,
            pitch.cents,
            off,
            run.pitch_cpu_sec,
            run.align_cpu_sec + score_cpu_sec,
            CloseHeads.of(run.errors_sec, slower),
            unshifted,
            run.reliability,
        )


class KeptResults:
    """Results by name, in memory and in a file.

    Parameters
    ----------
    file : Path, optional
        File to which every result is added at once, and whose results are not computed again.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._results: dict[str, PitchResult] = {}
        if file is not None and file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                values = json.loads(line)
                name = values.pop("name")
                for heads in ("heads", "unshifted"):
                    values[heads] = None if values[heads] is None else CloseHeads(**values[heads])
                self._results[name] = PitchResult(**values)

    def __contains__(self, name: str) -> bool:
        return name in self._results

    def __getitem__(self, name: str) -> PitchResult:
        return self._results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def keep(self, name: str, compute: Callable[[], PitchResult]) -> PitchResult:
        """Return the result of that name; compute it if it is not known."""
        if name not in self._results:
            result = compute()
            self._results[name] = result
            if self._file is not None:
                with self._file.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"name": name, **asdict(result)}) + "\n")
        return self._results[name]
