import numpy as np
import torch

from fusili_export.onset_graph import onset_graph_bytes
from fusili_mir.sessions.graph_session import open_session
from fusili_training.listening.onset_network import (
    _CONFUSABLE,
    _PARTIALS,
    OnsetNetwork,
    OnsetNetworkOptions,
)

SMALL = OnsetNetworkOptions(stem_channels=4, channels=6, dilations=(1, 2))


def test_there_are_two_steps_for_every_320_samples() -> None:
    network = OnsetNetwork(SMALL).eval()
    assert network(torch.zeros(2, 40 * 320)).shape == (2, 80, 88)


def test_steps_half_a_second_away_are_not_heard() -> None:
    torch.manual_seed(0)
    network = OnsetNetwork().eval()
    sound = 0.1 * torch.randn(1, 100 * 320)
    changed = sound.clone()
    changed[:, 70 * 320 :] = 0  # from 1.4 s on
    with torch.no_grad():
        difference = (network(sound) - network(changed)).abs().amax(dim=(0, 2))
    assert difference[:90].max() < 1e-5  # up to 0.9 s
    assert difference[140:].max() > 1e-3


def test_each_pitch_meets_those_some_semitones_away() -> None:
    torch.manual_seed(0)
    network = OnsetNetwork(SMALL)
    for mixing, semitones, n_pitches in ((network.gather, _PARTIALS, 98), (network.again, _CONFUSABLE, 88)):
        channels = mixing.weight.shape[1] // len(semitones)
        features = torch.randn(1, channels, n_pitches, 3)
        found = mixing(features)
        assert found.shape == (1, 6, 88, 3)
        expected = mixing.bias.detach()[:, None, None].repeat(1, 88, 3)  # type: ignore[union-attr]
        for number, step in enumerate(semitones):
            weight = mixing.weight[:, number * channels : (number + 1) * channels, 0, 0].detach()
            for pitch in range(88):
                if 0 <= pitch + step < n_pitches:  # beyond there is nothing
                    expected[:, pitch] += weight @ features[0, :, pitch + step]
        assert (found[0] - expected).abs().max() < 1e-5


def test_a_network_can_learn_when_a_pitch_is_struck() -> None:
    torch.manual_seed(0)
    network = OnsetNetwork(SMALL)
    optimiser = torch.optim.Adam(network.parameters(), 2e-2)
    time_sec = torch.arange(25 * 320) / 16_000
    rng = np.random.default_rng(0)
    for _ in range(60):
        begins, keys = rng.integers(5, 45, size=4), rng.integers(24, 64, size=4)
        sounds, targets = [], torch.zeros(4, 50, 88)
        for item, (begin, key) in enumerate(zip(begins, keys, strict=True)):
            hz = 440 * 2 ** ((key + 21 - 69) / 12)
            tone = 0.1 * torch.sin(2 * torch.pi * float(hz) * time_sec)
            sounds.append(torch.where(time_sec >= 0.01 * float(begin), tone, 0.0))
            targets[item, int(begin), int(key)] = 1.0
        logits = network(torch.stack(sounds))
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            logits, targets, pos_weight=torch.tensor(50.0)
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    heard = logits.detach().flatten(1).argmax(dim=1)
    steps, found = heard // 88, heard % 88
    assert (steps - torch.from_numpy(begins)).abs().max() <= 2
    assert (found - torch.from_numpy(keys)).abs().max() <= 1


def test_the_graph_gives_what_the_network_gives() -> None:
    torch.manual_seed(1)
    network = OnsetNetwork(SMALL).eval()
    session = open_session(onset_graph_bytes(network), "cpu", 1)
    sound = np.random.default_rng(1).normal(0, 0.1, (5, 13 * 320)).astype(np.float32)
    (found,) = session.run("waveforms", sound, ["onsets"])
    with torch.no_grad():
        expected = network(torch.from_numpy(sound)).numpy()
    assert np.abs(found - expected).max() < 1e-4
