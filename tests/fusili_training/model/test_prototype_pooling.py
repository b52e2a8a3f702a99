"""Pooling by prototypes, with embeddings in the plane and prototypes to the east, north and west."""

import math

import pytest
import torch
from torch import Tensor

from fusili_training.model.prototype_pooling import PrototypePooling

EAST, NORTH, WEST = [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]
FEATURES = torch.tensor([[[0.0], [2.0]], [[5.0], [9.0]]])  # (image or audio, pair, feature)


def pooling() -> PrototypePooling:
    torch.manual_seed(0)
    made = PrototypePooling(embedding_dim=2, n_prototypes=3)
    made.prototypes.copy_(torch.tensor([EAST, NORTH, WEST]))
    return made


def places(*directions: list[float]) -> Tensor:
    return torch.tensor([directions])


def test_features_are_soft_maxima_of_the_cosines_of_each_prototype() -> None:
    (features,) = pooling().describe(places(EAST, EAST, NORTH, [0.6, -0.8]), None)
    # Cosines of the four places with east, north and west.
    cosines = [(1, 1, 0, 0.6), (0, 0, 1, -0.8), (-1, -1, 0, -0.6)]
    expected = [math.log(sum(math.exp(15 * each) for each in row) / 4) / 15 for row in cosines]
    assert features.tolist() == pytest.approx(expected, abs=1e-5)
    assert expected[0] == pytest.approx(1 - math.log(2) / 15, abs=1e-3)  # two of four places are east


def test_padding_takes_no_part() -> None:
    padded = places(EAST, [0.6, 0.8], WEST, [0.0, 0.0])
    mask = torch.tensor([[True, True, False, False]])
    torch.testing.assert_close(
        pooling().describe(padded, mask), pooling().describe(places(EAST, [0.6, 0.8]), None)
    )


def test_new_prototypes_are_directions_and_are_not_trained() -> None:
    made = PrototypePooling(embedding_dim=5, n_prototypes=7)
    torch.testing.assert_close(made.prototypes.norm(dim=1), torch.ones(7))
    assert [name for name, _ in made.named_parameters()] == ["projection.weight"]


def test_prototypes_begin_evenly_among_the_patches_that_are_no_padding() -> None:
    made = pooling()
    patches = torch.arange(12.0).reshape(2, 3, 2)  # six patches: (0, 1), (2, 3), ...
    made.begin_with(patches, torch.tensor([[True, True, False], [True, True, True]]))
    assert made.prototypes.tolist() == [[0, 1], [6, 7], [10, 11]]  # the first, third and last of five


def test_the_first_batch_gives_a_mean_for_each_side_and_a_variance_for_both() -> None:
    made = PrototypePooling(embedding_dim=2, n_prototypes=2)
    made.follow(*(side.expand(2, 2) for side in FEATURES))
    assert made.centres.tolist() == [[1, 1], [7, 7]]
    assert made.variance.tolist() == pytest.approx([2.5, 2.5])  # (1 + 1 + 4 + 4) / 4
    features = made.centres[0] + made.variance.sqrt() * torch.tensor([[3.0, -1.0]])
    expected = torch.nn.functional.normalize(made.projection(torch.tensor([[3.0, -1.0]])), dim=1)
    torch.testing.assert_close(made.project(features, "image"), expected)
    torch.testing.assert_close(made.project(features + 6, "audio"), expected)


def test_later_batches_move_the_statistics_less_and_less_but_never_stop() -> None:
    made = PrototypePooling(embedding_dim=2, n_prototypes=2)
    for value in (0.0, 3.0, 6.0):
        made.follow(torch.full((4, 2), value), torch.full((4, 2), 2 * value))
    torch.testing.assert_close(made.centres, torch.tensor([[3.0, 3.0], [6.0, 6.0]]))
    made.n_followed.fill_(10_000)
    made.follow(torch.full((4, 2), 103.0), torch.full((4, 2), 6.0))
    torch.testing.assert_close(made.centres, torch.tensor([[4.0, 4.0], [6.0, 6.0]]))


def test_embeddings_have_length_one() -> None:
    found = pooling()(places(EAST, [0.6, 0.8]), None, "audio")
    assert found.shape == (1, 2)
    assert found.norm().item() == pytest.approx(1)
