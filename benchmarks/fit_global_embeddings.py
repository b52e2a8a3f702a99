"""Fit the global embeddings of a bundle of the small kind anew, with everything else of it as it is.

    python benchmarks/fit_global_embeddings.py tokens BUNDLE RUN --data PAIRS [PAIRS ...] --valid VALID
    python benchmarks/fit_global_embeddings.py fit BUNDLE RUN [--prototypes 1024] [--shrinkage 0.4] [--whole]
    python benchmarks/fit_global_embeddings.py tune BUNDLE RUN [--epochs 10]
    python benchmarks/fit_global_embeddings.py write BUNDLE RUN OUT

PAIRS and VALID are folders of strips that `fusili-mir render` wrote; of PAIRS, the split train is used, of VALID
the split valid. `tokens` encodes them once and keeps the result in RUN; stopped, it goes on where it was. `fit`
finds prototypes in all pairs, and a projection to whole segments and to excerpts of unequal length in closed form
(half a minute), prints the MRR of validation segments and excerpts, repeats as one, and keeps it in RUN. `tune`
trains that projection by symmetric InfoNCE, with whole pieces in batches of 1,024 and equal segments never
counted as wrong, and prints what comes of it, but keeps nothing: it has not helped so far. `write` puts what was
fitted into a copy of the bundle. Indexes belong to the bundle that made them, and the weights of
`fusili_mir.collection.match_probability` are to be fitted anew (`collection_search.py fit`).
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from fusili_benchmarks.global_fit import (
    LocalPairs,
    cut_excerpts,
    describe,
    embed_locally,
    find_prototypes,
    fit_projection,
    retrieval_mrr,
    whole_segments,
)
from fusili_benchmarks.pooled_tokens import TokenPairs, keep_tokens, load_tokens
from fusili_export.exporting import read_training_data
from fusili_export.graphs import trace_graph
from fusili_export.parity import ParityRow, check_parity, compare_graph, parity_table, run_reference
from fusili_export.parity_inputs import audio_cases, image_cases
from fusili_export.wrappers import TowerGraph
from fusili_mir.arrays import Int64
from fusili_mir.errors import InputError
from fusili_mir.model.bundle import TOWERS, AudioSpec, Bundle, Tower, load_bundle, save_bundle
from fusili_training.data.shard_folder import ShardFolder
from fusili_training.model.bundle_weights import load_bundle_weights
from fusili_training.model.model import FusiliModel, ModelOptions
from fusili_training.model.prototype_pooling import PrototypePooling

BATCH = 1024
TUNING_RATE = 0.02  # of the usual size of a weight
HARMLESS = -1e4
FITTED, DATA = "pooling.pt", "data.json"
TRAIN_SEED, VALID_SEED = 1, 2  # of excerpts


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=("tokens", "fit", "tune", "write"))
    parser.add_argument("bundle", type=Path)
    parser.add_argument("run", type=Path)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--data", type=Path, nargs="+", default=[])
    parser.add_argument("--valid", type=Path)
    parser.add_argument("--prototypes", type=int, default=1024)
    parser.add_argument("--shrinkage", type=float, default=0.4)
    parser.add_argument("--whole", action="store_true", help="fit to whole segments, not to excerpts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    bundle = load_bundle(arguments.bundle)
    run = (
        arguments.run / f"{bundle.image.sha256[:8]}-{bundle.audio.sha256[:8]}"
    )  # tokens belong to the towers
    if arguments.task == "tokens":
        encode(bundle, run, arguments.data, arguments.valid)
    elif arguments.task == "fit":
        fit(bundle, run, arguments.prototypes, arguments.shrinkage, arguments.whole, arguments.seed)
    elif arguments.task == "tune":
        tune(bundle, run, arguments.epochs, arguments.seed)
    else:
        if arguments.out is None:
            raise SystemExit("write needs the folder of the new bundle: write BUNDLE RUN OUT")
        write(bundle, run, arguments.out)


def load_model(bundle: Bundle, n_prototypes: int = 1) -> FusiliModel:
    """Return a model with the weights of a bundle, and a pooling that is yet to be fitted."""
    known = bundle.manifest.recipe.get("model", {})
    options = ModelOptions(
        backbone=known.get("backbone", "small"),
        backbone_options=known.get("backbone_options", {}),
        max_scale=known.get("max_scale", 100.0),
        pooling="prototypes",
    )
    torch.manual_seed(0)
    model = FusiliModel(options)
    model.pooling = PrototypePooling(model.image.embedding_dim, n_prototypes)
    load_bundle_weights(model, bundle.folder)
    return model.eval().requires_grad_(False)


def encode(bundle: Bundle, run: Path, folders: list[Path], valid: Path | None) -> None:
    model = load_model(bundle)
    for folder in folders:
        keep_tokens(model, ShardFolder(folder, "train"), "train", run / "train")
    if valid is not None:
        keep_tokens(model, ShardFolder(valid, "valid"), "valid", run / "valid")
    facts = [read_training_data(folder) for folder in folders]
    if facts:
        (run / DATA).write_text(json.dumps(facts, indent=1))


def load_pairs(model: FusiliModel, run: Path) -> tuple[LocalPairs, LocalPairs]:
    train, valid = (embed_locally(model, load_tokens(run / split)) for split in ("train", "valid"))
    for name, local in (("train", train), ("valid", valid)):
        print(f"{name}: {len(local.pairs)} pairs of {len(set(local.pairs.pieces))} pieces")
    return train, valid


def fit(bundle: Bundle, run: Path, n_prototypes: int, shrinkage: float, whole: bool, seed: int) -> None:
    model = load_model(bundle, n_prototypes)
    pooling = pooling_of(model)
    train, valid = load_pairs(model, run)
    pooling.prototypes.copy_(find_prototypes(train, n_prototypes, seed))
    chosen = views_of(train.pairs, TRAIN_SEED)[: 1 if whole else 2]
    views = [describe(pooling, train, spans) for spans in chosen]
    images, recordings = (torch.cat(features) for features in zip(*views, strict=True))
    fit_projection(pooling, images, recordings, shrinkage)
    found = measure(pooling, valid)
    facts: dict[str, Any] = {
        "fitted": "prototypes by k-means, projection by linear discriminants",
        "prototypes": n_prototypes,
        "shrinkage": shrinkage,
        "excerpts": not whole,
        "excerpt_seeds": [TRAIN_SEED, VALID_SEED],
        "seed": seed,
        "pairs": len(train.pairs),
        "pieces": len(set(train.pairs.pieces)),
        "data": json.loads((run / DATA).read_text()) if (run / DATA).exists() else [],
        "validation_mrr_repeats_as_one": found,
    }
    torch.save({"pooling": pooling.state_dict(), "facts": json.dumps(facts)}, run / FITTED)


def views_of(pairs: TokenPairs, seed: int) -> tuple[Int64, Int64]:
    return whole_segments(pairs), cut_excerpts(pairs, seed)


def measure(pooling: PrototypePooling, valid: LocalPairs) -> dict[str, list[float]]:
    found = {}
    for name, spans in zip(("segments", "excerpts"), views_of(valid.pairs, VALID_SEED), strict=True):
        mrr = retrieval_mrr(pooling, *describe(pooling, valid, spans), valid.pairs.groups)
        print(f"MRR of validation {name}, image to audio / audio to image: {mrr[0]:.3f} / {mrr[1]:.3f}")
        found[name] = [round(value, 4) for value in mrr]
    return found


def load_fitted(bundle: Bundle, run: Path) -> tuple[FusiliModel, dict[str, Any]]:
    path = run / FITTED
    if not path.exists():
        raise InputError(f"{path}: not there; run the task fit with this bundle first")
    saved = torch.load(path, weights_only=True)
    model = load_model(bundle, len(saved["pooling"]["prototypes"]))
    pooling_of(model).load_state_dict(saved["pooling"])
    return model, json.loads(saved["facts"])


def pooling_of(model: FusiliModel) -> PrototypePooling:
    assert model.pooling is not None
    return model.pooling


def tune(bundle: Bundle, run: Path, n_epochs: int, seed: int) -> None:
    model, _ = load_fitted(bundle, run)
    pooling = pooling_of(model)
    train, valid = load_pairs(model, run)
    views = [describe(pooling, train, spans) for spans in views_of(train.pairs, TRAIN_SEED)]
    weight = pooling.projection.weight
    weight.requires_grad_(True)
    log_scale = torch.tensor(math.log(30.0), requires_grad=True)
    rate = TUNING_RATE * float(weight.detach().square().mean().sqrt())
    optimiser = torch.optim.Adam([{"params": [weight], "lr": rate}, {"params": [log_scale], "lr": 0.01}])
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, n_epochs)
    groups = torch.from_numpy(train.pairs.groups)
    rng = np.random.default_rng(seed)
    measure(pooling, valid)
    for epoch in range(1, n_epochs + 1):
        for rows in batches(train.pairs.pieces, rng):
            images, recordings = views[int(rng.integers(len(views)))]
            cosines = pooling.project(images[rows], "image") @ pooling.project(recordings[rows], "audio").T
            loss = contrast(log_scale.exp() * cosines, groups[rows])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        schedule.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")
        measure(pooling, valid)


def batches(pieces: np.ndarray, rng: np.random.Generator) -> list[Tensor]:  # type: ignore[type-arg]
    """Return the rows of each batch: whole pieces in random order, so many negatives are of the same piece."""
    _, number = np.unique(pieces, return_inverse=True)
    order = np.argsort(rng.permutation(number.max() + 1)[number], kind="stable")
    parts = np.array_split(order, max(1, round(len(order) / BATCH)))
    return [torch.from_numpy(part) for part in parts]


def contrast(logits: Tensor, groups: Tensor) -> Tensor:
    """Return symmetric InfoNCE; others with the notes of the right one are no negatives."""
    alike = (groups[:, None] == groups) & ~torch.eye(len(groups), dtype=torch.bool)
    logits = logits.masked_fill(alike, HARMLESS)
    right = torch.arange(len(groups))
    return (functional.cross_entropy(logits, right) + functional.cross_entropy(logits.T, right)) / 2


def write(bundle: Bundle, run: Path, out: Path) -> None:
    model, facts = load_fitted(bundle, run)
    graphs: dict[Tower, bytes] = {}
    parity: list[ParityRow] = []
    for name in TOWERS:
        tower, spec = TowerGraph(model, name, "local"), bundle.spec(name)
        graphs[name] = trace_graph(tower, spec)
        cases = audio_cases(spec) if isinstance(spec, AudioSpec) else image_cases(spec)
        parity += compare_graph(graphs[name], spec, run_reference(tower, cases), "fp32")
    print(parity_table(parity))
    check_parity(parity)
    manifest = bundle.manifest
    quality = {key: value for key, value in manifest.quality.items() if key != "retrieval_mrr_among_400"}
    save_bundle(
        out,
        replace(
            manifest,
            recipe={**manifest.recipe, "global_embeddings": facts},
            quality=quality,
            parity=[row.as_dict() for row in parity],
        ),
        graphs["image"],
        graphs["audio"],
    )


if __name__ == "__main__":
    main()
