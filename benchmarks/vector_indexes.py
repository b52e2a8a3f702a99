"""Kinds of vector index for our embeddings: recall, time and memory. `fusili_mir.collection` chooses by it.

    python benchmarks/vector_indexes.py INDEX [--sizes 10000 100000 1000000] [--kinds Flat SQ8 ...]

INDEX is written by `fusili-mir index`: its windows are the vectors. 200 of them, evenly spaced, are queries and
are not among the vectors. Where the others are fewer than a size needs, further ones lie at random between a
real one and one of its twenty nearest neighbours.

Recall is the share of the ten exact neighbours that are among the first ten that are found: 40 are looked up, and
ranked by the vectors themselves, in half precision and mapped from a file, as a search does. "Unrefined" is the
recall without that. Times are CPU times of one thread, one query at a time. MB is the size of the index, which is
mapped into memory, too.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import faiss
import numpy as np

from fusili_mir.arrays import Float32
from fusili_mir.collection.index import open_index
from fusili_mir.collection.vectors import FaissVectors, refine, save_faiss

KINDS = ["Flat", "SQ8", "HNSW16_SQ8", "HNSW32_SQ8", "IVF_SQ8", "IVF_PQ"]
N_QUERIES, K, N_FOUND, N_NEIGHBOURS, BLOCK = 200, 10, 40, 20, 2**16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--kinds", nargs="+", default=KINDS)
    arguments = parser.parse_args()
    faiss.omp_set_num_threads(1)
    every = np.asarray(open_index(arguments.index).vectors, np.float32)
    is_query = np.isin(np.arange(len(every)), np.linspace(0, len(every) - 1, N_QUERIES).astype(int))
    queries, real = every[is_query], every[~is_query]
    print(f"{len(real)} real vectors\n")
    print("| vectors | index | recall@10 | unrefined | ms a query | MB | s to build |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for size in arguments.sizes:
        vectors = resampled(real, size)
        exact = faiss.knn(queries, vectors, K, faiss.METRIC_INNER_PRODUCT)[1]
        for kind in arguments.kinds:
            print(measure(kind, vectors, queries, exact), flush=True)


def resampled(real: Float32, size: int) -> Float32:
    """Return real vectors [shape=(n, d)], and as many between them as are missing."""
    rng = np.random.default_rng(size)
    neighbours = faiss.knn(real, real, N_NEIGHBOURS + 1, faiss.METRIC_INNER_PRODUCT)[1][:, 1:]
    vectors = np.empty((size, real.shape[1]), np.float32)
    own = min(size, len(real))
    vectors[:own] = real[rng.permutation(len(real))[:own]]
    for first in range(own, size, BLOCK):
        stop = min(first + BLOCK, size)
        chosen = rng.integers(0, len(real), stop - first)
        other = neighbours[chosen, rng.integers(0, N_NEIGHBOURS, stop - first)]
        share = rng.random((stop - first, 1), np.float32)
        between = (1 - share) * real[chosen] + share * real[other]
        vectors[first:stop] = between / np.linalg.norm(between, axis=1, keepdims=True)
    return vectors


def measure(kind: str, vectors: Float32, queries: Float32, exact: np.ndarray) -> str:  # type: ignore[type-arg]
    lists = 4 * int(len(vectors) ** 0.5)
    factory = {"IVF_SQ8": f"IVF{lists},SQ8", "IVF_PQ": f"IVF{lists},PQ64x8"}.get(kind, kind)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.faiss"
        begin = time.process_time()
        save_faiss(path, vectors, factory)
        built_sec = time.process_time() - begin
        opened = FaissVectors(path, vectors.shape[1])
        np.save(path.with_suffix(".npy"), vectors.astype(np.float16))
        halves = np.load(path.with_suffix(".npy"), mmap_mode="r")
        opened.search(queries[:5], K)  # reads the pages of the file that every search needs
        begin = time.process_time()
        found = [opened.search(query[None], N_FOUND)[1] for query in queries]
        refined = [refine(query[None], some, halves)[1] for query, some in zip(queries, found, strict=True)]
        ms = 1000 * (time.process_time() - begin) / len(queries)
        recalls = [
            np.mean([len(np.intersect1d(a[0, :K], b)) / K for a, b in zip(each, exact, strict=True)])
            for each in (refined, found)
        ]
        size_mb = path.stat().st_size / 1e6
    figures = f"{recalls[0]:.3f} | {recalls[1]:.3f} | {ms:.2f} | {size_mb:.0f} | {built_sec:.0f}"
    return f"| {len(vectors)} | {factory} | {figures} |"


if __name__ == "__main__":
    main()
