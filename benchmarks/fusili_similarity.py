"""The FuSiLi similarity, forward and backward: the custom backward pass against autograd, in time and memory.

Usage: python benchmarks/fusili_similarity.py [--threads 1] [--repeats 3] [--large]

Three ways to compute the same numbers: (a) autograd through all iterations for all pairs at once, (b) autograd in
chunks of pairs under torch checkpointing, (c) `fusili_similarity`. Times are medians of CPU seconds; the three
take turns in one process. Memory is the peak resident size of a fresh process that runs one of them once, minus
that of a process that only builds the input. ``--large`` adds batches of 128, for (c) only.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from fusili_training.losses.sinkhorn import fusili_similarity

N_PATCHES, WIDTH, N_ITERATIONS, CHUNK_PAIRS = 50, 512, 20, 64


def pair_similarities(patches: Tensor, frames: Tensor, scale: Tensor) -> Tensor:
    """Compare P pairs, patches (P, N, d) with frames (P, M, d), through log-domain iterations."""
    logits = scale * patches @ frames.transpose(1, 2)
    row_mass = -torch.log(torch.tensor(float(logits.shape[1])))
    column_mass = -torch.log(torch.tensor(float(logits.shape[2])))
    log_plan = logits
    for _ in range(N_ITERATIONS):
        log_plan = log_plan - log_plan.logsumexp(dim=2, keepdim=True) + row_mass
        log_plan = log_plan - log_plan.logsumexp(dim=1, keepdim=True) + column_mass
    return (log_plan.exp() * logits).sum(dim=(1, 2))


def all_pairs(patches: Tensor, frames: Tensor) -> tuple[Tensor, Tensor]:
    images = torch.arange(len(patches)).repeat_interleave(len(frames))
    return images, torch.arange(len(frames)).repeat(len(patches))


def plain_similarity(patches: Tensor, frames: Tensor, scale: Tensor) -> Tensor:
    patches, frames = functional.normalize(patches, dim=-1), functional.normalize(frames, dim=-1)
    images, recordings = all_pairs(patches, frames)
    return pair_similarities(patches[images], frames[recordings], scale).view(len(patches), -1)


def checkpointed_similarity(patches: Tensor, frames: Tensor, scale: Tensor) -> Tensor:
    patches, frames = functional.normalize(patches, dim=-1), functional.normalize(frames, dim=-1)
    images, recordings = all_pairs(patches, frames)
    chunks = [
        checkpoint(pair_similarities, patches[i], frames[j], scale, use_reentrant=False)
        for i, j in zip(images.split(CHUNK_PAIRS), recordings.split(CHUNK_PAIRS), strict=True)
    ]
    return torch.cat(chunks).view(len(patches), -1)


WAYS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "plain": plain_similarity,
    "checkpointed": checkpointed_similarity,
    "fusili_similarity": fusili_similarity,
}


def make_input(batch: int, n_frames: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    patches = torch.randn(batch, N_PATCHES, WIDTH, generator=generator).requires_grad_()
    frames = torch.randn(batch, n_frames, WIDTH, generator=generator).requires_grad_()
    return patches, frames, torch.tensor(14.3, requires_grad=True)


def run(way: str, batch: int, n_frames: int) -> float:
    """Run forward and backward once; return the CPU seconds."""
    patches, frames, scale = make_input(batch, n_frames)
    start = time.process_time()
    similarities = WAYS[way](patches, frames, scale)
    functional.cross_entropy(similarities, torch.arange(batch)).backward()
    return time.process_time() - start


def peak_mb(way: str, batch: int, n_frames: int, threads: int) -> float:
    """Return the peak resident memory of a fresh process, in MB."""
    command = [sys.executable, __file__, "--once", way, str(batch), str(n_frames), "--threads", str(threads)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--once", nargs=3, metavar=("WAY", "BATCH", "FRAMES"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)

    if options.once:
        way, batch, n_frames = options.once[0], int(options.once[1]), int(options.once[2])
        if way == "input":
            make_input(batch, n_frames)
        else:
            run(way, batch, n_frames)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return

    print(f"K = {N_ITERATIONS}, N = {N_PATCHES}, d = {WIDTH}, {options.threads} thread(s)\n")
    print("| pairs | M | way | CPU s | against checkpointed | peak MB | against plain |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    cases = [(16, 256, list(WAYS)), (32, 64, list(WAYS)), (32, 256, list(WAYS))]
    if options.large:
        cases += [(128, 64, ["fusili_similarity"]), (128, 256, ["fusili_similarity"])]
    memory_mb: dict[tuple[int, int], dict[str, float]] = {}
    for batch, n_frames, ways in cases:
        # Measured first: a child starts with the resident size of its parent, which must still be small.
        base_mb = peak_mb("input", batch, n_frames, options.threads)
        memory_mb[batch, n_frames] = {
            way: peak_mb(way, batch, n_frames, options.threads) - base_mb for way in ways
        }
    for batch, n_frames, ways in cases:
        peaks = memory_mb[batch, n_frames]
        repeats = options.repeats if len(ways) > 1 else 1
        turns = [{way: run(way, batch, n_frames) for way in ways} for _ in range(repeats)]
        seconds = {way: statistics.median(turn[way] for turn in turns) for way in ways}
        for way in ways:
            faster = f"{seconds['checkpointed'] / seconds[way]:.1f}x" if "checkpointed" in ways else "-"
            share = f"{peaks[way] / peaks['plain']:.2f}" if "plain" in ways else "-"
            print(
                f"| {batch} x {batch} | {n_frames} | {way} | {seconds[way]:.2f} | {faster} |"
                f" {peaks[way]:.0f} | {share} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
