"""Two processes on halves of a batch against one process on the whole batch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, distributed, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from fusili_mir.errors import InputError
from fusili_training.losses.gather import gather, gather_embeddings
from fusili_training.losses.local_similarity import choose_local_similarity
from fusili_training.losses.losses import ContrastiveLoss
from fusili_training.losses.negative_memory import NegativeMemory
from fusili_training.model.embeddings import Embeddings

BATCH, N_RANKS = 6, 2
IS_ORIGINAL = torch.tensor([True, True, False, True, False, True])


class Encoders(nn.Module):
    """Two linear maps and two scales: enough for gradients of every kind."""

    def __init__(self) -> None:
        super().__init__()
        self.image, self.audio = nn.Linear(5, 4), nn.Linear(3, 4)
        self.scales = nn.Parameter(torch.tensor([2.0, 3.0]))
        generator = torch.Generator().manual_seed(0)
        for parameter in self.parameters():
            with torch.no_grad():
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))

    def forward(self, images: Tensor, audio: Tensor) -> tuple[Embeddings, Embeddings, Tensor]:
        return self._embed(self.image(images)), self._embed(self.audio(audio)), self.scales

    @staticmethod
    def _embed(features: Tensor) -> Embeddings:
        local = functional.normalize(features, dim=-1)
        return Embeddings(local, None, functional.normalize(features.mean(dim=1), dim=-1))


def global_batch(seed: int = 1) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(BATCH, 4, 5, generator=generator), torch.randn(BATCH, 7, 3, generator=generator)


def loss_of(encoders: nn.Module, images: Tensor, audio: Tensor, is_original: Tensor) -> Tensor:
    left, right, scales = encoders(images, audio)
    objective = ContrastiveLoss(0.4, choose_local_similarity("fusili", n_iterations=5))
    return objective(left, right, scales[0], scales[1], is_original).total


def loss_after(encoders: nn.Module, mine: slice) -> Tensor:
    """Return the loss of the part `mine` of a batch, with most of the two batches before it in memory."""
    memory = NegativeMemory(2 * BATCH - 3, embedding_dim=4)
    objective = ContrastiveLoss(0.0, choose_local_similarity("fusili"))
    for seed in range(3):
        left, right, scales = encoders(*(tensor[mine] for tensor in global_batch(seed)))
        numbers = torch.arange(2 * seed, 2 * seed + BATCH)[
            mine
        ]  # four pairs of each batch come back in the next
        total = objective(left, right, scales[0], scales[1], memory=memory, numbers=numbers).total
    return total


def run_rank(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=N_RANKS
    )
    torch.manual_seed(0)
    encoders = DistributedDataParallel(Encoders())
    mine = slice(rank * BATCH // N_RANKS, (rank + 1) * BATCH // N_RANKS)
    images, audio = (tensor[mine] for tensor in global_batch())
    loss = loss_of(encoders, images, audio, IS_ORIGINAL[mine])
    loss.backward()
    gradients = {name: parameter.grad for name, parameter in encoders.module.named_parameters()}

    encoders.zero_grad()
    memory_loss = loss_after(encoders, mine)
    memory_loss.backward()
    memory_gradients = {name: parameter.grad for name, parameter in encoders.module.named_parameters()}

    # Embeddings of different lengths: rank 0 has 2 places, rank 1 has 3.
    own = torch.full((1, 2 + rank, 2), float(rank + 1), requires_grad=True)
    ragged = gather_embeddings(Embeddings(own, None, own[:, 0]))
    (ragged.local * torch.arange(6.0).view(2, 3, 1)).sum().backward()
    try:
        gather_embeddings(Embeddings(torch.ones(1 + rank, 2, 2), None, torch.ones(1 + rank, 2)))
        message = ""
    except InputError as error:
        message = str(error)
    torch.save(
        {
            "loss": loss.detach(),
            "gradients": gradients,
            "memory_loss": memory_loss.detach(),
            "memory_gradients": memory_gradients,
            "ragged": ragged.local.detach(),
            "ragged_mask": ragged.mask,
            "ragged_gradient": own.grad,
            "message": message,
        },
        f"{folder}/rank{rank}.pt",
    )
    distributed.barrier()  # a rank that leaves while another still talks to it aborts that one
    distributed.destroy_process_group()


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Tensor]]:
    folder: Path = tmp_path_factory.mktemp("ranks")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, str(rank), str(folder)],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(N_RANKS)
    ]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    return [torch.load(folder / f"rank{rank}.pt", weights_only=True) for rank in range(N_RANKS)]


def test_the_loss_of_two_ranks_is_that_of_one_process(ranks: list[dict[str, Tensor]]) -> None:
    torch.manual_seed(0)
    expected = loss_of(Encoders(), *global_batch(), IS_ORIGINAL).detach()
    for rank in ranks:
        torch.testing.assert_close(rank["loss"], expected)


def test_the_gradients_of_two_ranks_are_those_of_one_process(ranks: list[dict[str, Tensor]]) -> None:
    torch.manual_seed(0)
    encoders = Encoders()
    loss_of(encoders, *global_batch(), IS_ORIGINAL).backward()
    expected = {name: parameter.grad for name, parameter in encoders.named_parameters()}
    for rank in ranks:
        torch.testing.assert_close(rank["gradients"], expected)


def test_two_ranks_with_a_memory_agree_with_one_process(ranks: list[dict[str, Tensor]]) -> None:
    torch.manual_seed(0)
    encoders = Encoders()
    loss = loss_after(encoders, slice(None))
    loss.backward()
    expected = {name: parameter.grad for name, parameter in encoders.named_parameters()}
    for rank in ranks:
        torch.testing.assert_close(rank["memory_loss"], loss.detach())
        torch.testing.assert_close(rank["memory_gradients"], expected)


def test_ranks_of_different_lengths_are_padded_and_masked(ranks: list[dict[str, Tensor]]) -> None:
    for rank in ranks:
        assert rank["ragged"][:, :, 0].tolist() == [[1, 1, 0], [2, 2, 2]]
        assert rank["ragged_mask"].tolist() == [[True, True, False], [True, True, True]]
    # Every place has its index as its weight, on both ranks.
    assert ranks[0]["ragged_gradient"][0, :, 0].tolist() == [0, 2]
    assert ranks[1]["ragged_gradient"][0, :, 0].tolist() == [6, 8, 10]


def test_ranks_with_different_batch_sizes_are_refused(ranks: list[dict[str, Tensor]]) -> None:
    for rank in ranks:
        assert "the ranks have batches of [1, 2] items" in str(rank["message"])


def test_without_a_process_group_nothing_changes() -> None:
    items = torch.arange(3.0)
    assert gather(items) is items


if __name__ == "__main__":
    run_rank(int(sys.argv[1]), sys.argv[2])
    sys.stderr.flush()
    os._exit(0)  # a thread of Gloo that needs the interpreter while that ends aborts the process
