from dataclasses import replace

import pytest
import torch
from example_melodies import TINY_MODEL, batch_of, random_melodies
from torch import Tensor

from fusili_training.loop.feeding import Inputs, prepare
from fusili_training.loop.objective import Objective, StepOutput
from fusili_training.loop.recipe import DataOptions, LossOptions, Recipe
from fusili_training.model.model import FusiliModel, ModelOptions

CPU = torch.device("cpu")


def run(
    loss: LossOptions, data: DataOptions | None = None, **batch: list[bool]
) -> tuple[Objective, StepOutput]:
    torch.manual_seed(0)
    options = ModelOptions(backbone="small", backbone_options=TINY_MODEL, note_heads=loss.predicts_notes)
    recipe = Recipe("x", model=options, loss=loss, data=data or DataOptions(batch_size=4))
    objective = Objective(FusiliModel(options), loss)
    inputs = prepare(batch_of(random_melodies(4), **batch), objective.model, recipe, CPU)
    return objective, objective(inputs.images, inputs.waveforms, inputs.is_original, inputs.targets)


@pytest.mark.parametrize(
    ("loss", "terms"),
    [
        (LossOptions(alpha=0.0), {"global"}),
        (LossOptions(alpha=1.0), {"local"}),
        (LossOptions(alpha=0.5, local_similarity="cosine"), {"local", "global"}),
        (LossOptions(alpha=0.0, supervision="local"), {"global", "alignment", "notes"}),
        (LossOptions(alpha=1.0, supervision="local", note_weight=0.0), {"local", "alignment"}),
    ],
)
def test_every_trained_parameter_gets_a_gradient_and_no_other(loss: LossOptions, terms: set[str]) -> None:
    objective, output = run(loss)
    assert set(output.terms) == terms
    output.loss.backward()
    for name, parameter in objective.named_parameters():
        assert (parameter.grad is not None) == parameter.requires_grad, name


def test_the_loss_is_the_weighted_sum_of_its_terms() -> None:
    loss = LossOptions(alpha=0.25, supervision="local", alignment_weight=2.0, note_weight=3.0)
    _, output = run(loss)
    weights = {"local": 0.25, "global": 0.75, "alignment": 2.0, "notes": 3.0}
    expected = sum(weights[name] * term.item() for name, term in output.terms.items())
    assert output.loss.item() == pytest.approx(expected, rel=1e-5)


def test_mutants_are_candidates_only_when_mutations_are_negative() -> None:
    flags = [True, True, True, False]
    losses = {
        mutations: run(LossOptions(), DataOptions(batch_size=4, mutations=mutations), is_original=flags)[
            1
        ].loss
        for mutations in ("none", "positive", "negative")
    }
    assert losses["none"] == losses["positive"]
    assert losses["none"] != losses["negative"]


def test_frames_in_which_others_are_heard_ask_for_nothing() -> None:
    torch.manual_seed(0)
    loss = LossOptions(alpha=1.0, supervision="local")
    options = ModelOptions(backbone="small", backbone_options=TINY_MODEL, note_heads=True)
    objective = Objective(FusiliModel(options), loss).eval()
    batch = batch_of(random_melodies(4))
    seconds = batch.waveforms.shape[1] / objective.model.audio.geometry.sample_rate_hz
    batch = replace(batch, own_sec=((0.25 * seconds, 0.75 * seconds), None, None, (0.0, 0.0)))
    inputs = prepare(batch, objective.model, Recipe("x", model=options, loss=loss), CPU)
    assert inputs.own_frames is not None
    n_frames = inputs.own_frames.shape[1]
    assert inputs.own_frames[0].nonzero()[:, 0].tolist() == list(range(n_frames // 4, 3 * n_frames // 4))
    assert inputs.own_frames.sum(dim=1).tolist() == [n_frames // 2, n_frames, n_frames, 0]

    heads = objective.model.note_heads
    assert heads is not None
    masks: list[Tensor] = []
    handle = heads.register_forward_pre_hook(lambda _, given: masks.append(given[4]))
    arguments = inputs.images, inputs.waveforms, None, inputs.targets
    own = objective(*arguments, own_frames=inputs.own_frames)
    # A recording of which nothing is left keeps all its frames: a similarity needs some.
    assert masks[0].sum(dim=1).tolist() == [n_frames // 2, n_frames, n_frames, n_frames]
    handle.remove()
    whole = objective(*arguments)
    assert own.terms["local"] != whole.terms["local"]
    assert own.terms["notes"] != whole.terms["notes"]
    assert own.terms["alignment"] == whole.terms["alignment"]  # frames are found among all of them


def pooling_objective(global_only: bool, memory: int = 0) -> tuple[Objective, Inputs]:
    torch.manual_seed(0)
    options = ModelOptions(backbone="small", backbone_options=TINY_MODEL, pooling="prototypes")
    loss = LossOptions(memory=memory)
    objective = Objective(FusiliModel(options), loss, global_only)
    recipe = Recipe("x", model=options, loss=loss, data=DataOptions(batch_size=4))
    return objective, prepare(batch_of(random_melodies(4)), objective.model, recipe, CPU)


def learn(objective: Objective, inputs: Inputs, numbers: list[int], first: int = 0) -> StepOutput:
    mine = slice(first, first + len(numbers))
    return objective(inputs.images[mine], inputs.waveforms[mine], numbers=torch.tensor(numbers))


def test_a_step_that_learns_is_pooled_with_statistics_and_validation_leaves_them_alone() -> None:
    objective, inputs = pooling_objective(global_only=False)
    pooling = objective.model.pooling
    assert pooling is not None
    directions = pooling.prototypes.clone()
    objective.eval()
    objective(inputs.images, inputs.waveforms)
    assert int(pooling.n_followed) == 0
    encoded = learn(objective, inputs, [1, 2, 3, 4]).encoded
    assert int(pooling.n_followed) == 1
    assert pooling.prototypes.equal(directions)
    for embeddings, tower in ((encoded.images, "image"), (encoded.recordings, "audio")):
        features = pooling.describe(embeddings.local, embeddings.mask)
        torch.testing.assert_close(pooling.centres[int(tower == "audio")], features.mean(dim=0))
        torch.testing.assert_close(embeddings.pooled, pooling.project(features, tower))  # type: ignore[arg-type]


def test_on_a_trained_model_prototypes_are_patches_of_the_first_step() -> None:
    objective, inputs = pooling_objective(global_only=True)
    pooling = objective.model.pooling
    assert pooling is not None
    encoded = learn(objective, inputs, [1, 2, 3, 4]).encoded
    patches = encoded.patches[encoded.image_tokens.mask]
    assert (torch.cdist(pooling.prototypes, patches).amin(dim=1) < 1e-3).all()
    first = pooling.prototypes.clone()
    learn(objective, inputs, [1, 2, 3, 4])
    assert pooling.prototypes.equal(first)


def test_pooling_alone_learns_from_all_pairs_in_memory_and_a_pair_is_no_rival_of_itself() -> None:
    objective, inputs = pooling_objective(global_only=True, memory=8)
    objective.eval()
    learn(objective, inputs, [1, 2])
    learn(objective, inputs, [3, 4], first=2)
    output = learn(objective, inputs, [1], first=0)  # repeated
    pooling, memory = objective.model.pooling, objective.memory
    assert pooling is not None
    assert memory is not None
    assert memory.numbers[: memory.n_filled].tolist() == [1, 2, 3, 4, 1]
    images = pooling.project(memory.images[:5], "image")
    recordings = pooling.project(memory.recordings[:5], "audio")
    expected = 0.0
    for pair in range(5):
        rivals = [other for other in range(5) if other == pair or {other, pair} != {0, 4}]
        place = rivals.index(pair)
        for query, candidates in ((images[pair], recordings), (recordings[pair], images)):
            expected -= (
                (output.encoded.global_scale * candidates[rivals] @ query).log_softmax(0)[place].item()
            )
    assert output.loss.item() == pytest.approx(expected / 10, rel=1e-4)
    assert set(output.terms) == {"global"}
    output.loss.backward()
    weight = pooling.projection.weight
    assert weight.grad is not None
    assert weight.grad.abs().sum() > 0
