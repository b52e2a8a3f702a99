import pytest
import torch
from torch import nn

from fusili_mir.errors import InputError
from fusili_training.loop.distributed import ProcessRanks, choose_device, join_ranks

CPU = torch.device("cpu")


def test_a_batch_is_shared_out_evenly() -> None:
    assert ProcessRanks(0, 4, CPU).share_of(128) == 32
    with pytest.raises(InputError, match=r"data.batch_size is 30 on 4 ranks; expected a multiple of 4"):
        ProcessRanks(0, 4, CPU).share_of(30)


def test_one_process_is_its_own_only_rank() -> None:
    with join_ranks("cpu") as ranks:
        module = nn.Linear(1, 1)
        assert ranks.is_first
        assert ranks.wrap(module) is module
        assert ranks.total(torch.tensor(3)).item() == 3
        assert ranks.collect("a") == ["a"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
def test_a_gpu_that_is_not_there_is_refused_with_the_way_out() -> None:
    assert choose_device("auto") == CPU
    with pytest.raises(InputError, match=r"has 0 usable GPUs; .* training.device=cpu"):
        choose_device("cuda")
