"""The memory of global embeddings, with unit vectors in the plane: (1, 0), (0, 1) and (0.6, 0.8)."""

import torch
from torch import Tensor

from fusili_training.losses.negative_memory import NegativeMemory, pair_numbers

EAST, NORTH, BETWEEN = [1.0, 0.0], [0.0, 1.0], [0.6, 0.8]
SCALE = torch.tensor(10.0)


def numbered(*values: int) -> Tensor:
    return torch.tensor(values)


def memory_of(*pairs: tuple[list[float], list[float], int], size: int = 4) -> NegativeMemory:
    memory = NegativeMemory(size, embedding_dim=2)
    for image, recording, number in pairs:
        memory.remember(torch.tensor([image]), torch.tensor([recording]), numbered(number))
    return memory


def test_an_empty_memory_compares_nothing() -> None:
    assert memory_of().compare(torch.tensor([EAST]), torch.tensor([EAST]), numbered(1), SCALE) is None


def test_images_meet_remembered_recordings_and_recordings_meet_images() -> None:
    memory = memory_of((EAST, NORTH, 1), (NORTH, BETWEEN, 2))
    similarities = memory.compare(torch.tensor([EAST]), torch.tensor([NORTH]), numbered(3), SCALE)
    assert similarities is not None
    torch.testing.assert_close(
        similarities.image_to_audio, torch.tensor([[0.0, 6.0]])
    )  # without the 2 empty places
    torch.testing.assert_close(similarities.audio_to_image, torch.tensor([[0.0, 10.0]]))


def test_a_pair_that_comes_back_is_no_candidate_for_itself() -> None:
    memory = memory_of((EAST, EAST, 1), (NORTH, NORTH, 2))
    batch = torch.tensor([EAST, NORTH])
    similarities = memory.compare(batch, batch, numbered(1, 3), SCALE)
    assert similarities is not None
    expected = torch.tensor([[-torch.inf, 0.0], [0.0, 10.0]])
    torch.testing.assert_close(similarities.image_to_audio, expected)
    torch.testing.assert_close(similarities.audio_to_image, expected)


def test_the_oldest_pairs_are_forgotten_first() -> None:
    memory = memory_of(*((EAST, EAST, number) for number in range(5)), size=3)
    assert (memory.n_filled, int(memory.n_seen)) == (3, 5)
    assert sorted(memory.numbers.tolist()) == [2, 3, 4]


def test_of_a_batch_larger_than_the_memory_the_last_pairs_stay() -> None:
    memory = NegativeMemory(2, embedding_dim=2)
    batch = torch.tensor([EAST, NORTH, BETWEEN])
    memory.remember(batch, batch, numbered(7, 8, 9))
    held = {int(number): image.tolist() for number, image in zip(memory.numbers, memory.images, strict=True)}
    assert held == {8: NORTH, 9: torch.tensor(BETWEEN).tolist()}


def test_gradients_reach_the_batch_and_the_scale_but_not_the_memory() -> None:
    memory = memory_of((EAST, EAST, 1), (NORTH, NORTH, 2))
    images = torch.tensor([BETWEEN], requires_grad=True)
    scale = torch.tensor(10.0, requires_grad=True)
    similarities = memory.compare(images, images, numbered(1), scale)
    assert similarities is not None
    memory.remember(images, images, numbered(1))  # before the backward pass, as in training
    similarities.image_to_audio.softmax(dim=1)[
        0, 1
    ].backward()  # finite: the masked similarity is not multiplied
    assert images.grad is not None
    assert images.grad.isfinite().all()
    assert scale.grad is not None
    assert scale.grad.isfinite()
    assert not any(buffer.requires_grad for buffer in memory.buffers())


def test_keys_have_numbers_of_their_own_that_never_change() -> None:
    numbers = pair_numbers(f"piece.piano.{place}" for place in range(1000))
    assert len(set(numbers.tolist())) == 1000
    assert pair_numbers(["a", "b"]).tolist() == pair_numbers(["a", "b"]).tolist()
    assert pair_numbers(["a"]).item() == int.from_bytes(bytes.fromhex("40f89e395b66422f"), "big", signed=True)
