"""How many items go through a graph together."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from example_bundles import write_ink_bundle, write_pitch_bundle

from fusili_mir.errors import InputError
from fusili_mir.model import batch_size
from fusili_mir.model import encoder as encoder_module
from fusili_mir.model.batch_size import choose_batch_size, item_bytes, typical_batch
from fusili_mir.model.encoder import Encoder
from fusili_mir.sessions.devices import Device
from fusili_mir.sessions.graph_session import DeviceMemoryError, GraphSession, open_session


def test_a_gpu_takes_what_fits_into_half_of_its_free_memory(tmp_path: Path, monkeypatch) -> None:
    bundle = write_ink_bundle(tmp_path / "ink")
    largest = max(item_bytes(bundle, "image"), item_bytes(bundle, "audio"))
    for free, expected in ((0, 1), (2 * 20 * largest, 20), (10**15, 256), (None, 16)):
        monkeypatch.setattr(batch_size, "free_bytes", lambda device, free=free: free)
        assert choose_batch_size(bundle, Device("cuda")) == expected
    assert choose_batch_size(bundle, Device("cpu")) <= 8


@pytest.mark.parametrize("write", [write_ink_bundle, write_pitch_bundle])
def test_a_typical_batch_runs_through_the_graph(tmp_path: Path, write) -> None:
    bundle = write(tmp_path / "bundle")
    for tower in ("image", "audio"):
        spec, batch = bundle.spec(tower), typical_batch(bundle, tower)
        session = open_session(bundle.read_graph(tower), "cpu", n_threads=1)
        assert len(session.run(spec.input, batch, [spec.local_output])[0]) == 1


def test_a_batch_size_that_is_asked_for_is_kept(tmp_path: Path) -> None:
    bundle = write_ink_bundle(tmp_path / "ink")
    assert Encoder(bundle, "cpu", batch_size=3).batch_size == 3
    with pytest.raises(InputError, match="a batch size of 0"):
        Encoder(bundle, batch_size=0)


@dataclass
class SmallMemory:
    """A session of onnxruntime on a device that holds two items: more raise its error."""

    session: object
    sizes: list[int] = field(default_factory=list)

    def io_binding(self):  # type: ignore[no-untyped-def]
        return self.session.io_binding()  # type: ignore[attr-defined]

    def run_with_iobinding(self, binding) -> None:  # type: ignore[no-untyped-def]
        self.session.run_with_iobinding(binding)  # type: ignore[attr-defined]
        n_items = binding.get_outputs()[0].shape()[0]
        self.sizes.append(n_items)
        if n_items > 2:
            raise RuntimeError("CUDA error: Failed to allocate memory for requested buffer of size 8000")


def test_a_batch_that_does_not_fit_is_halved_and_the_next_ones_are_smaller(tmp_path: Path) -> None:
    bundle = write_ink_bundle(tmp_path / "ink")
    whole = Encoder(bundle, "cpu", n_threads=1, batch_size=8)
    samples = (np.random.default_rng(0).normal(size=16_000 * 30) / 9).astype(np.float32)
    expected = whole.encode_samples(samples)
    encoder = Encoder(bundle, "cpu", n_threads=1, batch_size=8)
    small = SmallMemory(whole.audio_session.session)
    encoder.audio_session = GraphSession(small, Device("cpu"), 1)  # type: ignore[misc]
    assert encoder.encode_samples(samples) == pytest.approx(expected)
    assert encoder.batch_size == 2
    assert small.sizes[0] == 8
    with pytest.raises(DeviceMemoryError, match="Failed to allocate memory"):
        encoder.audio_session.run("waveforms", np.zeros((3, 32_000), np.float32), ["frames"])


@dataclass
class Opened:
    """Opens sessions of the CPU that pass for those of another device with the CPU's memory."""

    options: list[object] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)

    def __call__(self, graph, device, n_threads, device_options, name) -> GraphSession:  # type: ignore[no-untyped-def]
        self.options.append(device_options)
        session = SmallMemory(open_session(graph, "cpu", 1).session, self.batches)
        return GraphSession(session, Device("coreml"), 1)


def test_another_device_is_warmed_up_with_one_item_and_every_graph_gets_its_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Opened()
    monkeypatch.setattr(encoder_module, "open_session", opened)
    encoder = Encoder(write_pitch_bundle(tmp_path / "pitch"), "coreml", device_options={"ModelFormat": "x"})
    for name in ("image_session", "audio_session", "_similarity_session"):
        getattr(encoder, name)
    assert opened.options == [{"ModelFormat": "x"}] * 3
    assert opened.batches == [1, 1]  # image and audio graph
