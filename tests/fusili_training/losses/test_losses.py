"""The contrastive losses, with values computed by hand."""

import math

import pytest
import torch
from torch.nn import functional

from fusili_mir.errors import InputError
from fusili_training.losses.local_similarity import choose_local_similarity
from fusili_training.losses.losses import ContrastiveLoss, LossTerms, info_nce
from fusili_training.losses.negative_memory import NegativeMemory, RememberedSimilarities
from fusili_training.model.embeddings import Embeddings


def embeddings(seed: int, length: int) -> Embeddings:
    generator = torch.Generator().manual_seed(seed)
    local = functional.normalize(torch.randn(4, length, 6, generator=generator), dim=-1)
    pooled = functional.normalize(torch.randn(4, 6, generator=generator), dim=-1)
    return Embeddings(local, None, pooled)


IMAGES, RECORDINGS = embeddings(0, 3), embeddings(1, 5)
LOCAL_SCALE, GLOBAL_SCALE = torch.tensor(4.0), torch.tensor(7.0)


def test_equal_similarities_cost_the_logarithm_of_the_number_of_candidates() -> None:
    assert info_nce(torch.zeros(5, 5)).item() == pytest.approx(math.log(5))


def test_both_directions_count_the_same() -> None:
    similarities = torch.tensor([[2.0, 0.0], [1.0, 0.0]])
    rows = (math.log(1 + math.exp(-2)) + math.log(1 + math.exp(1))) / 2
    columns = (math.log(1 + math.exp(-1)) + math.log(2)) / 2
    assert info_nce(similarities).item() == pytest.approx((rows + columns) / 2)
    assert info_nce(similarities.T).item() == pytest.approx((rows + columns) / 2)


def test_mutants_are_candidates_but_not_queries() -> None:
    similarities = torch.tensor([[1.0, 3.0, 0.0], [5.0, -9.0, 5.0], [0.0, 2.0, 1.0]])
    is_original = torch.tensor([True, False, True])
    rows = similarities[[0, 2]].log_softmax(dim=1)
    columns = similarities[:, [0, 2]].log_softmax(dim=0)
    expected = -(rows[0, 0] + rows[1, 2] + columns[0, 0] + columns[2, 1]) / 4
    torch.testing.assert_close(info_nce(similarities, is_original), expected)


def test_remembered_candidates_count_in_their_own_direction() -> None:
    similarities = torch.tensor([[2.0, 0.0], [1.0, 0.0]])
    remembered = RememberedSimilarities(torch.tensor([[1.0], [-torch.inf]]), torch.tensor([[0.0], [3.0]]))
    rows = [
        math.log(1 + math.exp(-2) + math.exp(-1)),
        math.log(1 + math.e),
    ]  # the second pair has no further candidates
    columns = [math.log(1 + math.exp(-1) + math.exp(-2)), math.log(2 + math.exp(3))]
    assert info_nce(similarities, remembered=remembered).item() == pytest.approx(
        (sum(rows) + sum(columns)) / 4
    )


def test_remembered_candidates_are_for_the_originals_alone() -> None:
    remembered = RememberedSimilarities(torch.zeros(2, 3), torch.zeros(2, 1))
    loss = info_nce(torch.zeros(2, 2), torch.tensor([True, False]), remembered)
    assert loss.item() == pytest.approx((math.log(5) + math.log(3)) / 2)


def test_a_batch_of_mutants_alone_is_refused() -> None:
    with pytest.raises(InputError, match="at least one original"):
        info_nce(torch.zeros(2, 2), torch.tensor([False, False]))


def test_a_matrix_without_a_diagonal_is_refused() -> None:
    with pytest.raises(InputError, match=r"shape \(2, 3\)"):
        info_nce(torch.zeros(2, 3))


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_alpha_mixes_the_local_and_the_global_loss(alpha: float) -> None:
    similarity = choose_local_similarity("fusili")
    local = info_nce(similarity(IMAGES.local, RECORDINGS.local, LOCAL_SCALE))
    whole = info_nce(GLOBAL_SCALE * IMAGES.pooled @ RECORDINGS.pooled.T)
    terms = ContrastiveLoss(alpha, similarity)(IMAGES, RECORDINGS, LOCAL_SCALE, GLOBAL_SCALE)
    torch.testing.assert_close(terms.total, alpha * local + (1 - alpha) * whole)
    assert (terms.local_term is None) == (alpha == 0)
    assert (terms.global_term is None) == (alpha == 1)


def test_negatives_only_reach_both_terms() -> None:
    similarity = choose_local_similarity("cosine")
    is_original = torch.tensor([True, True, False, False])
    terms = ContrastiveLoss(0.5, similarity)(IMAGES, RECORDINGS, LOCAL_SCALE, GLOBAL_SCALE, is_original)
    local = info_nce(similarity(IMAGES.local, RECORDINGS.local, LOCAL_SCALE), is_original)
    whole = info_nce(GLOBAL_SCALE * IMAGES.pooled @ RECORDINGS.pooled.T, is_original)
    torch.testing.assert_close(terms.total, (local + whole) / 2)


def test_the_global_loss_has_the_batch_before_as_further_candidates() -> None:
    similarity = choose_local_similarity("cosine")
    memory = NegativeMemory(8, embedding_dim=6)
    earlier_images, earlier_recordings = embeddings(2, 3), embeddings(3, 5)

    def terms_of(images: Embeddings, recordings: Embeddings, numbers: list[int]) -> LossTerms:
        return ContrastiveLoss(0.5, similarity)(
            images, recordings, LOCAL_SCALE, GLOBAL_SCALE, memory=memory, numbers=torch.tensor(numbers)
        )

    first = terms_of(earlier_images, earlier_recordings, [0, 1, 2, 3])
    alone = ContrastiveLoss(0.5, similarity)(earlier_images, earlier_recordings, LOCAL_SCALE, GLOBAL_SCALE)
    torch.testing.assert_close(first.total, alone.total)

    second = terms_of(IMAGES, RECORDINGS, [4, 5, 6, 2])  # pair 2 is repeated
    expected = torch.tensor(0.0)
    for item in range(4):
        others = [place for place in range(4) if (item, place) != (3, 2)]
        for own, rivals, before in (
            (IMAGES, RECORDINGS, earlier_recordings),
            (RECORDINGS, IMAGES, earlier_images),
        ):
            candidates = torch.cat([rivals.pooled, before.pooled[others]])
            expected -= (GLOBAL_SCALE * candidates @ own.pooled[item]).log_softmax(dim=0)[item] / 8
    torch.testing.assert_close(second.global_term, expected)
    without = ContrastiveLoss(0.5, similarity)(IMAGES, RECORDINGS, LOCAL_SCALE, GLOBAL_SCALE)
    torch.testing.assert_close(second.local_term, without.local_term)
    assert memory.n_filled == 8


def test_pairs_without_numbers_leave_the_memory_alone() -> None:
    memory = NegativeMemory(8, embedding_dim=6)
    loss = ContrastiveLoss(0.0, choose_local_similarity("cosine"))
    loss(IMAGES, RECORDINGS, LOCAL_SCALE, GLOBAL_SCALE, memory=memory)
    assert memory.n_filled == 0


@pytest.mark.parametrize("alpha", [-0.1, 1.5, float("nan")])
def test_an_alpha_outside_0_to_1_is_refused(alpha: float) -> None:
    with pytest.raises(InputError, match=r"expected a weight within \[0, 1\]") as caught:
        ContrastiveLoss(alpha, choose_local_similarity("fusili"))
    assert "\n" not in str(caught.value)


def test_under_autocast_global_logits_keep_float32() -> None:
    generator = torch.Generator().manual_seed(3)
    images, recordings = (
        Embeddings(
            torch.zeros(16, 1, 64),
            None,
            functional.normalize(torch.randn(16, 64, generator=generator), dim=-1),
        )
        for _ in range(2)
    )
    loss = ContrastiveLoss(0.0, choose_local_similarity("fusili"))
    scale = torch.tensor(100.0)  # the largest: in bfloat16 logits would be off by up to 0.26
    expected = loss(images, recordings, scale, scale).total
    with torch.autocast("cpu", torch.bfloat16):
        found = loss(images, recordings, scale, scale).total
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_under_autocast_remembered_logits_keep_float32() -> None:
    memory = NegativeMemory(8, 6)
    memory.remember(IMAGES.pooled, RECORDINGS.pooled, torch.arange(4))
    numbers = torch.arange(4, 8)
    expected = memory.compare(IMAGES.pooled, RECORDINGS.pooled, numbers, torch.tensor(100.0))
    with torch.autocast("cpu", torch.bfloat16):
        found = memory.compare(IMAGES.pooled, RECORDINGS.pooled, numbers, torch.tensor(100.0))
    assert expected is not None
    assert found is not None
    torch.testing.assert_close(found.image_to_audio, expected.image_to_audio, rtol=0, atol=0)
    torch.testing.assert_close(found.audio_to_image, expected.audio_to_image, rtol=0, atol=0)
