import numpy as np
import torch

from fusili_export.reading_graph import reading_graph_bytes
from fusili_mir.hearing.note_reading import READING_OUTPUTS
from fusili_mir.sessions.graph_session import open_session
from fusili_training.reading.reading_network import ReadingNetwork, ReadingNetworkOptions

SMALL = ReadingNetworkOptions(channels=6, dilations=(1, 2), state=12, memory=4)


def test_there_is_a_cell_for_each_step_and_column() -> None:
    heads, struck, middles, alterations = ReadingNetwork(SMALL).eval()(torch.ones(2, 128, 200))
    assert heads.shape == struck.shape == (2, 50, 33)
    assert middles.shape == (2, 50, 40)
    assert alterations.shape == (2, 50, 33, 5)


def test_paper_to_the_right_changes_nothing() -> None:
    torch.manual_seed(0)
    network = ReadingNetwork(SMALL).eval()
    strip = torch.rand(1, 128, 400)
    strip[:, :, 360:] = 1.0  # what the last columns see
    padded = torch.nn.functional.pad(strip, (0, 120), value=1.0)
    with torch.no_grad():
        for alone, beside in zip(network(strip), network(padded), strict=True):
            assert torch.allclose(alone[:, :90], beside[:, :90], atol=1e-5)


def test_the_clef_is_remembered_to_the_end_of_a_staff() -> None:
    torch.manual_seed(0)
    network = ReadingNetwork(SMALL).eval()
    strip = torch.rand(1, 128, 1200)
    changed = strip.clone()
    changed[:, :, 8:40] = 1.0
    with torch.no_grad():
        difference = (network(strip)[2] - network(changed)[2]).abs()
    assert difference[:, -1].max() > 1e-4


def test_a_network_can_learn_where_heads_are_and_what_the_clef_means() -> None:
    torch.manual_seed(0)
    network = ReadingNetwork(SMALL)
    optimiser = torch.optim.Adam(network.parameters(), 1e-2)
    rng = np.random.default_rng(0)
    for _ in range(80):
        strips, cells, middles = torch.ones(4, 128, 160), torch.zeros(4, 40, 33), torch.zeros(4).long()
        for item in range(4):
            row, column, clef = int(rng.integers(6, 27)), int(rng.integers(20, 36)), int(rng.integers(2))
            strips[item, 4 * row - 3 : 4 * row + 3, 4 * column - 2 : 4 * column + 6] = 0.0
            strips[item, 40 + 40 * clef : 60 + 40 * clef, 8:20] = 0.0  # a sign at the beginning
            cells[item, column, row], middles[item] = 1.0, 22 - 12 * clef
        heads, _, meaning, _ = network(strips)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            heads, cells, pos_weight=torch.tensor(50.0)
        ) + torch.nn.functional.cross_entropy(meaning[:, -1], middles)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    found, placed = heads.detach().flatten(1).argmax(dim=1), cells.flatten(1).argmax(dim=1)
    assert (found // 33 - placed // 33).abs().max() <= 1
    assert (found % 33 - placed % 33).abs().max() <= 1
    assert (meaning[:, -1].argmax(dim=1) == middles).all()


def test_the_graph_gives_what_the_network_gives() -> None:
    torch.manual_seed(1)
    network = ReadingNetwork(SMALL).eval()
    session = open_session(reading_graph_bytes(network), "cpu", 1)
    strips = np.random.default_rng(1).uniform(size=(5, 128, 340)).astype(np.float32)
    found = session.run("strips", strips, list(READING_OUTPUTS))
    with torch.no_grad():
        expected = network(torch.from_numpy(strips))
    for ours, theirs in zip(found, expected, strict=True):
        assert np.abs(ours - theirs.numpy()).max() < 1e-3
