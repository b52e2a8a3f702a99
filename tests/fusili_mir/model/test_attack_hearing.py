from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from example_bundles import write_pitch_bundle
from onnx import TensorProto, helper, numpy_helper

from fusili_mir.errors import FusiliError, InputError
from fusili_mir.model.attack_hearing import AttackGraph, AttackListener
from fusili_mir.model.bundle import Bundle, default_bundle, load_bundle, save_bundle
from fusili_mir.model.encoder import Encoder
from fusili_mir.sessions.graph_session import open_session

STEP = 160  # samples at 16 kHz
SPEC = AttackGraph("attacks.onnx", "", 0.01, 0.5)


def click_graph(n_pitches: int = 88) -> bytes:
    """All pitches are struck, 20 * (peak - 0.5) logits, at steps with a loud sample."""
    constants: dict[str, np.ndarray] = {
        "shape": np.array([0, -1, STEP], np.int64),
        "half": np.array(0.5, np.float32),
        "slope": np.array(20.0, np.float32),
        "pitches": np.ones((1, 1, n_pitches), np.float32),
    }
    nodes = [
        helper.make_node("Reshape", ["waveforms", "shape"], ["steps"]),
        helper.make_node("Abs", ["steps"], ["loud"]),
        helper.make_node("ReduceMax", ["loud"], ["peak"], axes=[2], keepdims=1),
        helper.make_node("Sub", ["peak", "half"], ["over"]),
        helper.make_node("Mul", ["over", "slope"], ["logit"]),
        helper.make_node("Mul", ["logit", "pitches"], ["attacks"]),
    ]
    graph = helper.make_graph(
        nodes,
        "clicks",
        [helper.make_tensor_value_info("waveforms", TensorProto.FLOAT, ["b", "n"])],
        [helper.make_tensor_value_info("attacks", TensorProto.FLOAT, ["b", "s", n_pitches])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def listener(gain: float = 1.0, start_sec: float = 0.0, n_samples: int = 0) -> AttackListener:
    return AttackListener(open_session(click_graph(), "cpu", 1), SPEC, 16_000, gain, start_sec, n_samples)


def hear(blocks: list[np.ndarray], **options: Any) -> Any:
    heard = listener(**options)
    passed = list(heard.listen(blocks))
    assert sum(map(len, passed)) == sum(map(len, blocks))
    return heard.attacks()


def with_attacks(folder: Path, graph: bytes, **said: Any) -> Bundle:
    """The pitch bundle with a network; it listens at 16 kHz."""
    write_pitch_bundle(folder)
    (folder / "attacks.onnx").write_bytes(graph)
    manifest = json.loads((folder / "manifest.json").read_text())
    spec = {"sha256": hashlib.sha256(graph).hexdigest(), "step_sec": 0.01, "context_sec": 0.1}
    manifest["decoder"] = {"attacks": {"file": "attacks.onnx", **spec, **said}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return load_bundle(folder)


def test_an_attack_is_heard_in_the_step_of_its_sample() -> None:
    sound = np.zeros(16_000, np.float32)
    sound[37 * STEP + 80] = 1.0
    attacks = hear([sound], start_sec=2.0)
    assert len(attacks) == 100
    assert attacks.strength[:, 40].argmax() == 37
    assert attacks.start_sec == pytest.approx(2.005)  # the middle of the first step
    assert attacks.strength[37, 0] == pytest.approx(1 / (1 + np.exp(-10)), abs=1e-3)
    assert attacks.strength[36, 0] == pytest.approx(1 / (1 + np.exp(10)), abs=1e-3)


def test_blocks_of_any_length_are_heard_as_one_sound() -> None:
    rng = np.random.default_rng(0)
    sound = rng.uniform(-1, 1, size=int(23.456 * 16_000)).astype(np.float32)
    cuts = np.sort(rng.integers(0, len(sound), size=40))
    whole, parts = hear([sound]), hear(np.split(sound, cuts))
    assert len(whole) == len(sound) // STEP
    assert np.array_equal(whole.strength, parts.strength)
    peaks = np.abs(sound[: len(whole) * STEP]).reshape(-1, STEP).max(axis=1)
    assert whole.strength[:, 7] == pytest.approx(1 / (1 + np.exp(-20 * (peaks - 0.5))), abs=1e-3)


def test_the_length_that_was_said_changes_nothing() -> None:
    sound = np.random.default_rng(0).uniform(-1, 1, size=45 * 16_000).astype(np.float32)
    sound[20 * 16_000 :] = 0.0  # silence at the end, too, has its steps
    expected = hear([sound])
    assert len(expected) == 4500
    for n_samples in (16_000, len(sound), 2 * len(sound)):
        assert np.array_equal(hear([sound], n_samples=n_samples).strength, expected.strength)


def test_quiet_recordings_are_heard_at_a_usual_level() -> None:
    sound = np.zeros(3200, np.float32)
    sound[1000] = 0.01
    assert hear([sound]).strength.max() < 0.01
    assert hear([sound], gain=100.0).strength.max() > 0.99


def test_silence_is_not_struck_and_does_not_reach_the_graph() -> None:
    attacks = hear([np.zeros(48_000, np.float32)])
    assert attacks.strength.shape == (300, 88)
    assert not attacks.strength.any()  # the graph would give 0.00005


def test_nothing_and_less_than_a_step_are_heard_as_no_steps() -> None:
    assert len(hear([])) == 0
    assert len(hear([np.ones(STEP - 1, np.float32)])) == 0


def test_the_encoder_hears_with_the_network_of_its_bundle(tmp_path: Path) -> None:
    sound = np.zeros(32_000, np.float32)
    sound[::STEP] = 0.05
    sound[100 * STEP + 3] = 1.0
    bundle = with_attacks(tmp_path / "with", click_graph())
    rate_hz = bundle.audio.sample_rate_hz
    heard = Encoder(bundle, "cpu", 1).encode_recording((sound, rate_hz)).attacks
    assert heard is not None
    assert (heard.strength.argmax(axis=0) == 100).all()
    without = Encoder(write_pitch_bundle(tmp_path / "without"), "cpu", 1).encode_recording((sound, rate_hz))
    assert without.attacks is not None
    assert without.attacks.start_sec == 0.0  # the spectral map


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"step_sec": "quick"}, "expected file, sha256, step_sec and context_sec"),
        ({"step_sec": 0.0}, "steps of 0 s"),
        ({"step_sec": 0.01001}, "a whole number of samples"),
        ({"context_sec": 99.0}, "99 s of context"),
        ({"context_sec": float("nan")}, "of context"),
        ({"file": "../attacks.onnx"}, "plain name of a file"),
        ({"file": "a\0b"}, "plain name of a file"),
        ({"step_sec": 10**400}, "expected file, sha256, step_sec and context_sec"),
        ({"sha256": "0" * 64}, "damaged or belongs to another model"),
    ],
)
def test_a_manifest_that_is_wrong_about_the_network_is_refused(
    tmp_path: Path, said: dict[str, Any], message: str
) -> None:
    bundle = with_attacks(tmp_path / "bundle", click_graph(), **said)
    with pytest.raises(InputError, match=message):
        Encoder(bundle, "cpu", 1).check()


def test_a_network_with_other_pitches_is_refused(tmp_path: Path) -> None:
    bundle = with_attacks(tmp_path / "bundle", click_graph(n_pitches=12))
    sound = np.random.default_rng(0).uniform(-0.5, 0.5, size=16_000).astype(np.float32)
    with pytest.raises(FusiliError, match=r"attacks.onnx gives attacks of shape \(1, .*, 12\)"):
        Encoder(bundle, "cpu", 1).encode_recording((sound, bundle.audio.sample_rate_hz))


def test_a_bundle_is_saved_with_its_network_or_without_both(tmp_path: Path) -> None:
    given = with_attacks(tmp_path / "given", click_graph())
    graphs = given.read_graph("image"), given.read_graph("audio")
    save_bundle(tmp_path / "saved", given.manifest, *graphs, decoder_graphs={"attacks": click_graph()})
    saved = load_bundle(tmp_path / "saved")
    spec = AttackGraph.of(saved)
    assert spec is not None
    assert spec.read(saved) == click_graph()
    with pytest.raises(InputError, match=r"expected both the graph attacks.onnx and `decoder.attacks`"):
        save_bundle(tmp_path / "half", given.manifest, *graphs)


@pytest.mark.parametrize("sample", [24_000, 24_160, 24_319])
def test_the_shipped_network_sees_as_far_as_its_context_and_no_farther(sample: int) -> None:
    bundle = default_bundle()
    graph = AttackGraph.of(bundle)
    assert graph is not None
    session = open_session(graph.read(bundle), "cpu", 1)
    quiet = (0.1 * np.random.default_rng(0).normal(size=(1, 48_000))).astype(np.float32)
    click = quiet.copy()
    click[0, sample] += 3
    (before,), (after,) = (session.run("waveforms", sound, ["attacks"]) for sound in (quiet, click))
    steps = np.flatnonzero(np.abs(after - before)[0].max(axis=1))
    context = round(graph.context_sec / graph.step_sec)
    reach = max(sample // STEP - steps.min(), steps.max() - sample // STEP)
    assert context - 3 <= reach <= context
