"""Hearing attacks with a network of the bundle, where it has one, in place of the spectral `AttackMeter`.

The manifest names it as ``decoder.attacks``: a graph from waveforms to the logits of attacks, of 88 pitches at
each step. `benchmarks/fit_attack_network.py` makes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fusili_mir.arrays import Float32
from fusili_mir.audio.attack_map import N_PITCHES, AttackMap
from fusili_mir.errors import FusiliError, InputError
from fusili_mir.model.bundle import Bundle
from fusili_mir.sessions.graph_session import GraphSession
from fusili_mir.sessions.runs_at_once import RunsAtOnce

__all__ = ["ATTACK_INPUT", "ATTACK_OUTPUT", "AttackGraph", "AttackListener"]

ATTACK_INPUT, ATTACK_OUTPUT = "waveforms", "attacks"
"""Names in the graph: waveforms [shape=(B, n_samples)], logits [shape=(B, n_steps, 88)]."""

_CELL_STEPS = 2  # the number of steps of a waveform must be a multiple of this
_SUREST = 30.0  # logits; more would overflow
_BODY_SEC = 5.0  # of a stretch that goes through the graph at once; longer ones fit no cache
_SHORTEST_STEP_SEC, _LONGEST_STEP_SEC, _MOST_CONTEXT_SEC = 0.002, 0.1, 5.0


@dataclass(frozen=True)
class AttackGraph:
    """What a manifest says about the network.

    Attributes
    ----------
    file, sha256 : str
        Name and checksum of the graph.
    step_sec : float
        Time from one step to the next; a whole number of samples.
    context_sec : float
        How much sound on either side a step needs.
    """

    file: str
    sha256: str
    step_sec: float
    context_sec: float

    @classmethod
    def of(cls, bundle: Bundle) -> AttackGraph | None:
        """Read what the manifest of a bundle says; None if the bundle has no such network."""
        said: Any = bundle.manifest.decoder.get("attacks")
        if said is None:
            return None
        try:
            graph = cls(
                str(said["file"]), str(said["sha256"]), float(said["step_sec"]), float(said["context_sec"])
            )
        except (TypeError, KeyError, ValueError, OverflowError) as error:
            raise InputError(
                f"{bundle.folder}: decoder.attacks is {said!r}; expected file, sha256, step_sec and context_sec"
            ) from error
        samples = graph.step_sec * bundle.audio.sample_rate_hz
        if not (
            _SHORTEST_STEP_SEC <= graph.step_sec <= _LONGEST_STEP_SEC
            and abs(samples - round(samples)) < 1e-6
            and 0 <= graph.context_sec <= _MOST_CONTEXT_SEC
        ):
            raise InputError(
                f"{bundle.folder}: decoder.attacks has steps of {graph.step_sec:g} s and {graph.context_sec:g} s "
                f"of context; expected {_SHORTEST_STEP_SEC} to {_LONGEST_STEP_SEC} s, a whole number of samples, "
                f"and 0 to {_MOST_CONTEXT_SEC:g} s"
            )
        return graph

    def read(self, bundle: Bundle) -> bytes:
        """Read the graph, which must lie in the bundle, match its checksum and contain all its weights."""
        return bundle.read_file(self.file, self.sha256)


@dataclass(frozen=True)
class _Heard:
    """The attacks of a stretch without its context [shape=(n_steps, 88)]; None if it is silent."""

    n_steps: int
    strength: npt.NDArray[np.float16] | None


class AttackListener:
    """Hears the attacks of a recording that passes by.

    Parameters
    ----------
    session : GraphSession
        The opened graph.
    graph : AttackGraph
    sample_rate_hz : int
    gain : float
        Factor that brings the blocks to a usual level.
    start_sec : float
        Moment of the first sample.
    n_samples : int
        How many samples will pass, about: room for their attacks is taken at once. Silence never fills its part
        of it, and so takes no memory.
    """

    def __init__(
        self,
        session: GraphSession,
        graph: AttackGraph,
        sample_rate_hz: int,
        gain: float = 1.0,
        start_sec: float = 0.0,
        n_samples: int = 0,
    ) -> None:
        self._session, self._graph = session, graph
        self._gain, self._start_sec = np.float32(gain), start_sec
        self._step = round(graph.step_sec * sample_rate_hz)
        cell_sec = _CELL_STEPS * graph.step_sec
        self._context = int(np.ceil(graph.context_sec / cell_sec)) * _CELL_STEPS
        self._body = round(_BODY_SEC / cell_sec) * _CELL_STEPS
        self._rest = np.zeros(
            self._context * self._step, np.float32
        )  # so that the first step has its context
        self._n_samples = 0
        self._strength = np.zeros((n_samples // self._step + self._body, N_PITCHES), np.float16)
        self._n_heard = 0  # steps

    def listen(self, blocks: Iterable[Float32]) -> Iterator[Float32]:
        """Pass blocks [shape=(n,)] through, and hear them."""
        stretch = (self._body + 2 * self._context) * self._step
        with RunsAtOnce[_Heard](self._session.n_at_once) as runs:
            for block in blocks:
                self._n_samples += len(block)
                self._rest = np.concatenate((self._rest, self._gain * block))
                while len(self._rest) >= stretch:
                    self._keep(runs.start(self._hear, self._rest[:stretch]))
                    self._rest = self._rest[self._body * self._step :]
                yield block
            missing = -len(self._rest) % (_CELL_STEPS * self._step)
            last = np.pad(self._rest, (0, missing + self._context * self._step))
            self._keep(runs.start(self._hear, last) + runs.finish())

    def attacks(self) -> AttackMap:
        """Return the attacks of what has passed."""
        n_steps = self._n_samples // self._step
        self._make_room()
        step_sec = self._graph.step_sec
        return AttackMap(
            self._strength[: min(n_steps, self._n_heard)], step_sec, self._start_sec + step_sec / 2
        )

    def _hear(self, samples: Float32) -> _Heard:
        """Hear a stretch with its context [shape=(n,)]."""
        n_steps = len(samples) // self._step
        if not samples.any():  # nothing is struck in silence, and it costs nothing
            return _Heard(n_steps - 2 * self._context, None)
        (logits,) = self._session.run(ATTACK_INPUT, samples[None], [ATTACK_OUTPUT])
        if logits.shape != (1, n_steps, N_PITCHES) or not np.isfinite(logits).all():
            raise FusiliError(
                f"{self._graph.file} gives {ATTACK_OUTPUT} of shape {logits.shape} for {len(samples)} samples, "
                f"expected finite numbers of shape {(1, n_steps, N_PITCHES)}: export the bundle again"
            )
        inside = logits[0, self._context : n_steps - self._context]
        probability = 1 / (1 + np.exp(-np.clip(inside, -_SUREST, _SUREST)))
        return _Heard(len(inside), probability.astype(np.float16))

    def _keep(self, stretches: list[_Heard]) -> None:
        """Keep what is heard in successive stretches."""
        for heard in stretches:
            first, self._n_heard = self._n_heard, self._n_heard + heard.n_steps
            if heard.strength is not None:
                self._make_room()
                self._strength[first : self._n_heard] = heard.strength

    def _make_room(self) -> None:
        """Make room for all steps that were heard, if more has passed than was said."""
        lacking = self._n_heard - len(self._strength)
        if lacking > 0:
            more = np.zeros((lacking + len(self._strength) // 4, N_PITCHES), np.float16)
            self._strength = np.concatenate((self._strength, more))
