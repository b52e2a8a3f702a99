"""Hearing a recording that passes by: which notes begin when, and how much of anything begins at all.

Whatever the sampling rate of a bundle, both are heard in a version of the recording at 16 kHz, for which the
network was made. `benchmarks/fit_onset_network.py` makes the network.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import soxr

from fusili_mir.arrays import Float32
from fusili_mir.audio.envelope_meter import EnvelopeMeter
from fusili_mir.audio.onset_map import N_PITCHES, OnsetMap
from fusili_mir.audio.sound_envelope import SoundEnvelope
from fusili_mir.errors import FusiliError
from fusili_mir.sessions.graph_session import GraphSession
from fusili_mir.sessions.runs_at_once import RunsAtOnce

__all__ = [
    "CONTEXT_SEC",
    "ONSET_INPUT",
    "ONSET_OUTPUT",
    "ONSET_STEP_SEC",
    "SAMPLE_RATE_HZ",
    "OnsetListener",
]

ONSET_INPUT, ONSET_OUTPUT = "waveforms", "onsets"
"""Names in the graph: waveforms [shape=(B, n_samples)], logits [shape=(B, n_steps, 88)]."""
SAMPLE_RATE_HZ, ONSET_STEP_SEC = 16_000, 0.010
CONTEXT_SEC = 0.36
"""How much sound on either side a step needs."""

_STEP = round(ONSET_STEP_SEC * SAMPLE_RATE_HZ)
_CELL_STEPS = 2  # the number of steps of a waveform must be a multiple of this
_CONTEXT = round(CONTEXT_SEC / ONSET_STEP_SEC)  # steps: whole cells
_SUREST = 30.0  # logits; more would overflow
_BODY = 500  # steps of a stretch that goes through the graph at once; longer ones fit no cache


@dataclass(frozen=True)
class _Heard:
    """The onsets of a stretch without its context [shape=(n_steps, 88)]; None if it is silent."""

    n_steps: int
    activation: npt.NDArray[np.float16] | None


class OnsetListener:
    """Hears a recording that passes by.

    Parameters
    ----------
    session : GraphSession
        The opened network.
    sample_rate_hz : int
        Sampling rate of the blocks that pass by.
    gain : float
        Factor that brings the blocks to a usual level.
    start_sec : float
        Moment of the first sample.
    n_samples : int
        How many samples will pass, about: room for their onsets is taken at once. Silence never fills its part
        of it, and so takes no memory.
    """

    def __init__(
        self,
        session: GraphSession,
        sample_rate_hz: int,
        gain: float = 1.0,
        start_sec: float = 0.0,
        n_samples: int = 0,
    ) -> None:
        n_samples = n_samples * SAMPLE_RATE_HZ // sample_rate_hz
        self._session = session
        self._gain, self._start_sec = np.float32(gain), start_sec
        self._resampler = (
            None
            if sample_rate_hz == SAMPLE_RATE_HZ
            else soxr.ResampleStream(sample_rate_hz, SAMPLE_RATE_HZ, 1)
        )
        self._meter = EnvelopeMeter(SAMPLE_RATE_HZ, start_sec, n_samples)
        self._rest = np.zeros(_CONTEXT * _STEP, np.float32)  # so that the first step has its context
        self._n_samples = 0
        self._activation = np.zeros((n_samples // _STEP + _BODY, N_PITCHES), np.float16)
        self._n_heard = 0  # steps

    def listen(self, blocks: Iterable[Float32]) -> Iterator[Float32]:
        """Pass blocks [shape=(n,)] through, and hear them."""
        with RunsAtOnce[_Heard](self._session.n_at_once) as runs:
            for block in blocks:
                own = block if self._resampler is None else self._resampler.resample_chunk(block)
                self._see(own, runs)
                yield block
            if self._resampler is not None:
                self._see(self._resampler.resample_chunk(np.empty(0, np.float32), last=True), runs)
            missing = -len(self._rest) % (_CELL_STEPS * _STEP)
            last = np.pad(self._rest, (0, missing + _CONTEXT * _STEP))
            self._keep(runs.start(self._hear, last) + runs.finish())

    def onsets(self) -> OnsetMap:
        """Return the onsets in what has passed."""
        n_steps = self._n_samples // _STEP
        self._make_room()
        start_sec = self._start_sec + ONSET_STEP_SEC / 2  # the middle of the first step
        return OnsetMap(self._activation[: min(n_steps, self._n_heard)], ONSET_STEP_SEC, start_sec)

    def envelope(self) -> SoundEnvelope:
        """Return the envelope of what has passed, once and at the end."""
        return self._meter.envelope()

    def _see(self, samples: Float32, runs: RunsAtOnce[_Heard]) -> None:
        """Hear samples [shape=(n,)], as far as they have their context."""
        self._meter.see(samples)
        self._n_samples += len(samples)
        self._rest = np.concatenate((self._rest, self._gain * samples))
        stretch = (_BODY + 2 * _CONTEXT) * _STEP
        while len(self._rest) >= stretch:
            self._keep(runs.start(self._hear, self._rest[:stretch]))
            self._rest = self._rest[_BODY * _STEP :]

    def _hear(self, samples: Float32) -> _Heard:
        """Hear a stretch with its context [shape=(n,)]."""
        n_steps = len(samples) // _STEP
        if not samples.any():  # nothing begins in silence, and it costs nothing
            return _Heard(n_steps - 2 * _CONTEXT, None)
        (logits,) = self._session.run(ONSET_INPUT, samples[None], [ONSET_OUTPUT])
        if not np.isfinite(logits).all():
            raise FusiliError("the network that hears onsets fails on this device; choose cpu")
        inside = logits[0, _CONTEXT : n_steps - _CONTEXT]
        probability = 1 / (1 + np.exp(-np.clip(inside, -_SUREST, _SUREST)))
        return _Heard(len(inside), probability.astype(np.float16))

    def _keep(self, stretches: list[_Heard]) -> None:
        """Keep what is heard in successive stretches."""
        for heard in stretches:
            first, self._n_heard = self._n_heard, self._n_heard + heard.n_steps
            if heard.activation is not None:
                self._make_room()
                self._activation[first : self._n_heard] = heard.activation

    def _make_room(self) -> None:
        """Make room for all steps that were heard, if more has passed than was said."""
        lacking = self._n_heard - len(self._activation)
        if lacking > 0:
            more = np.zeros((lacking + len(self._activation) // 4, N_PITCHES), np.float16)
            self._activation = np.concatenate((self._activation, more))
