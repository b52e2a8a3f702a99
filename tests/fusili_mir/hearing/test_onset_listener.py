from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from example_bundles import write_pitch_bundle
from onnx import TensorProto, helper, numpy_helper

from fusili_mir.audio.onset_map import OnsetMap
from fusili_mir.audio.recording import open_recording
from fusili_mir.demo.example import load_example
from fusili_mir.errors import FusiliError
from fusili_mir.hearing.networks import find_network
from fusili_mir.hearing.onset_listener import CONTEXT_SEC, OnsetListener
from fusili_mir.model.encoder import Encoder
from fusili_mir.sessions.graph_session import open_session

STEP = 160  # samples at 16 kHz


def click_graph(gain: float = 20.0) -> bytes:
    """All pitches begin, 20 * (peak - 0.5) logits, at steps with a loud sample."""
    constants: dict[str, np.ndarray] = {
        "shape": np.array([0, -1, STEP], np.int64),
        "half": np.array(0.5, np.float32),
        "slope": np.array(gain, np.float32),
        "pitches": np.ones((1, 1, 88), np.float32),
    }
    nodes = [
        helper.make_node("Reshape", ["waveforms", "shape"], ["steps"]),
        helper.make_node("Abs", ["steps"], ["loud"]),
        helper.make_node("ReduceMax", ["loud"], ["peak"], axes=[2], keepdims=1),
        helper.make_node("Sub", ["peak", "half"], ["over"]),
        helper.make_node("Mul", ["over", "slope"], ["logit"]),
        helper.make_node("Mul", ["logit", "pitches"], ["onsets"]),
    ]
    graph = helper.make_graph(
        nodes,
        "clicks",
        [helper.make_tensor_value_info("waveforms", TensorProto.FLOAT, ["b", "n"])],
        [helper.make_tensor_value_info("onsets", TensorProto.FLOAT, ["b", "s", 88])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def hear(blocks: list[np.ndarray], sample_rate_hz: int = 16_000, **options: Any) -> OnsetMap:
    listener = OnsetListener(open_session(click_graph(), "cpu", 1), sample_rate_hz, **options)
    passed = list(listener.listen(blocks))
    assert sum(map(len, passed)) == sum(map(len, blocks))
    return listener.onsets()


def test_an_onset_is_heard_in_the_step_of_its_sample() -> None:
    sound = np.zeros(16_000, np.float32)
    sound[37 * STEP + 80] = 1.0
    onsets = hear([sound], start_sec=2.0)
    assert len(onsets) == 100
    assert onsets.activation[:, 40].argmax() == 37
    assert onsets.start_sec == pytest.approx(2.005)  # the middle of the first step
    assert onsets.activation[37, 0] == pytest.approx(1 / (1 + np.exp(-10)), abs=1e-3)
    assert onsets.activation[36, 0] == pytest.approx(1 / (1 + np.exp(10)), abs=1e-3)


def test_blocks_of_any_length_are_heard_as_one_sound() -> None:
    rng = np.random.default_rng(0)
    sound = rng.uniform(-1, 1, size=int(23.456 * 16_000)).astype(np.float32)
    cuts = np.sort(rng.integers(0, len(sound), size=40))
    whole, parts = hear([sound]), hear(np.split(sound, cuts))
    assert len(whole) == len(sound) // STEP
    assert np.array_equal(whole.activation, parts.activation)
    peaks = np.abs(sound[: len(whole) * STEP]).reshape(-1, STEP).max(axis=1)
    assert whole.activation[:, 7] == pytest.approx(1 / (1 + np.exp(-20 * (peaks - 0.5))), abs=1e-3)


def test_the_length_that_was_said_changes_nothing() -> None:
    sound = np.random.default_rng(0).uniform(-1, 1, size=45 * 16_000).astype(np.float32)
    sound[20 * 16_000 :] = 0.0  # silence at the end, too, has its steps
    expected = hear([sound])
    assert len(expected) == 4500
    for n_samples in (16_000, len(sound), 2 * len(sound)):
        assert np.array_equal(hear([sound], n_samples=n_samples).activation, expected.activation)


def test_quiet_recordings_are_heard_at_a_usual_level() -> None:
    sound = np.zeros(3200, np.float32)
    sound[1000] = 0.01
    assert hear([sound]).activation.max() < 0.01
    assert hear([sound], gain=100.0).activation.max() > 0.99


def test_nothing_begins_in_silence_which_does_not_reach_the_graph() -> None:
    onsets = hear([np.zeros(48_000, np.float32)])
    assert onsets.activation.shape == (300, 88)
    assert not onsets.activation.any()  # the graph would give 0.00005


def test_nothing_and_less_than_a_step_are_heard_as_no_steps() -> None:
    assert len(hear([])) == 0
    assert len(hear([np.ones(STEP - 1, np.float32)])) == 0


def test_what_comes_after_seconds_of_silence_is_heard_at_its_time() -> None:
    sound = np.zeros(25 * 16_000, np.float32)
    sound[1801 * STEP + 5] = 1.0  # after three stretches of silence
    onsets = hear([sound])
    assert np.flatnonzero(onsets.activation[:, 3] > 0.5).tolist() == [1801]


def test_a_device_on_which_the_network_fails_is_said() -> None:
    listener = OnsetListener(open_session(click_graph(float("nan")), "cpu", 1), 16_000)
    with pytest.raises(FusiliError, match="the network that hears onsets fails on this device; choose cpu"):
        list(listener.listen([np.ones(1600, np.float32)]))


@pytest.mark.parametrize("rate_hz", [44_100, 48_000, 8_000])
def test_sound_at_another_rate_is_heard_at_16_khz_in_blocks_of_any_length(rate_hz: int) -> None:
    sound = np.zeros(12 * rate_hz, np.float32)
    for second in (0.205, 6.125, 11.765):
        at = round(second * rate_hz)
        sound[at : at + rate_hz // 1000] = 1.0  # a millisecond
    whole = hear([sound], rate_hz, n_samples=len(sound))
    parts = hear(np.split(sound, [1, 1000, 1001, rate_hz, 7 * rate_hz]), rate_hz)
    assert len(whole) == 1200
    assert np.flatnonzero(whole.activation[:, 0] > 0.5).tolist() == [20, 612, 1176]
    assert np.array_equal(whole.activation, parts.activation)


def test_a_bundle_at_48_khz_hears_the_same_onsets_as_one_at_16_khz(tmp_path: Path) -> None:
    recording = load_example().recording
    heard = {}
    for rate_hz in (16_000, 48_000):
        bundle = write_pitch_bundle(tmp_path / str(rate_hz), sample_rate_hz=rate_hz)
        audio = Encoder(bundle, "cpu", 1).encode_recording(open_recording(recording, 0.0, 8.0))
        heard[rate_hz] = audio.onsets.activation.astype(np.float32), audio.envelope.nats
    (low, low_nats), (high, high_nats) = heard.values()
    assert low.shape == high.shape
    assert (low > 0.5).sum() > 20  # notes begin
    assert np.abs(low - high).max() < 0.1
    assert np.corrcoef(low.ravel(), high.ravel())[0, 1] > 0.999
    assert np.corrcoef(low_nats, high_nats)[0, 1] > 0.99


@pytest.mark.parametrize("sample", [24_000, 24_160, 24_319])
def test_the_network_sees_as_far_as_its_context_and_no_farther(sample: int) -> None:
    session = open_session(find_network("onsets").read(), "cpu", 1)
    quiet = (0.1 * np.random.default_rng(0).normal(size=(1, 48_000))).astype(np.float32)
    click = quiet.copy()
    click[0, sample] += 3
    (before,), (after,) = (session.run("waveforms", sound, ["onsets"]) for sound in (quiet, click))
    steps = np.flatnonzero(np.abs(after - before)[0].max(axis=1))
    context = round(CONTEXT_SEC / 0.01)
    reach = max(sample // STEP - steps.min(), steps.max() - sample // STEP)
    assert context - 3 <= reach <= context
