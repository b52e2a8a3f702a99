from __future__ import annotations

import struct
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from example_collections import write_collection

import fusili_mir as fm
from fusili_mir.collection.milvus_vectors import MilvusVectors, save_to_milvus
from fusili_mir.collection.vectors import FaissVectors, save_faiss
from fusili_mir.errors import InputError

needs_milvus = pytest.mark.skipif(find_spec("milvus_lite") is None, reason="No module named 'milvus_lite'")


@pytest.fixture
def vectors() -> np.ndarray:  # type: ignore[type-arg]
    drawn = np.random.default_rng(0).normal(size=(3_000, 16)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("factory", "least_recall"), [("Flat", 1.0), ("SQ8", 0.9), ("HNSW16_SQ8", 0.9), ("IVF32,PQ8x4", 0.3)]
)
def test_every_kind_of_index_finds_neighbours_from_its_file(
    tmp_path: Path,
    vectors: np.ndarray,  # type: ignore[type-arg]
    factory: str,
    least_recall: float,
) -> None:
    save_faiss(tmp_path / "some.faiss", vectors, factory)
    exact = np.argsort(-(vectors[:20] @ vectors.T), axis=1)[:, :10]
    similarity, number = FaissVectors(tmp_path / "some.faiss", 16, first=100).search(vectors[:20], 10)
    found = [len(np.intersect1d(a - 100, b)) / 10 for a, b in zip(number, exact, strict=True)]
    assert np.mean(found) >= least_recall
    assert np.all(np.diff(similarity, axis=1) <= 0)


@needs_milvus
def test_milvus_and_faiss_give_the_same_neighbours(tmp_path: Path, vectors: np.ndarray) -> None:  # type: ignore[type-arg]
    server = str(tmp_path / "vectors.db")
    save_faiss(tmp_path / "some.faiss", vectors)
    save_to_milvus(server, "abc", "score", 1, vectors)
    nearby = np.asarray(vectors[:5] + 0.1, np.float32)
    ours = FaissVectors(tmp_path / "some.faiss", 16).search(nearby, 7)
    theirs = MilvusVectors(server, "abc", "score", 1).search(nearby, 7)
    assert np.allclose(ours[0], theirs[0], atol=1e-5)
    assert np.array_equal(ours[1], theirs[1])
    with pytest.raises(fm.FusiliError, match="the vectors of this index are not there"):
        MilvusVectors(server, "abc", "score", 2)


@needs_milvus
def test_an_index_on_a_server_gives_the_same_answers_and_cleans_up(tmp_path: Path) -> None:
    write_collection(tmp_path)
    model, paths = tmp_path / "bundle", [tmp_path / "scores" / "ash.musicxml", tmp_path / "recordings"]
    server = str(tmp_path / "vectors.db")
    fm.build_index(paths, tmp_path / "here", model=model)
    for path in (paths[0], paths[1]):  # in two steps, of which the second replaces the first
        fm.build_index([path], tmp_path / "there", model=model, server=server)
    assert not list((tmp_path / "there").glob("*.faiss"))
    for query in ("cedar.flac", "scores/beech.musicxml"):
        answers = [
            fm.search(fm.open_index(tmp_path / name), tmp_path / query, model=model)
            for name in ("here", "there")
        ]
        assert [match.to_json() for match in answers[0]] == [match.to_json() for match in answers[1]]
        assert len(answers[0]) == 3
    with pytest.raises(fm.FusiliError, match="the vectors of this index are not there"):
        fm.search(
            fm.open_index(tmp_path / "there", server=str(tmp_path / "other.db")),
            tmp_path / "cedar.flac",
            model=model,
        )


@needs_milvus
def test_a_server_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(fm.FusiliError, match=r"http://127.0.0.1:9: no Milvus server answers there") as caught:
        MilvusVectors("http://user:secret@127.0.0.1:9", "abc", "score", 1)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("place", "put"),
    [
        pytest.param(slice(25, None), b"", id="cut within its head"),
        pytest.param(slice(-100, None), b"", id="cut at its end"),
        pytest.param(slice(8, 16), struct.pack("<q", 2**40), id="more vectors than it holds"),
        pytest.param(slice(4, 8), struct.pack("<i", -16), id="negative dimension"),
        pytest.param(slice(0, 4), b"IxHe", id="another kind"),
        pytest.param(slice(37, 45), struct.pack("<q", 2**50), id="more numbers than it holds"),
    ],
)
def test_a_damaged_file_is_refused_before_faiss_reads_it(
    tmp_path: Path,
    vectors: np.ndarray,  # type: ignore[type-arg]
    place: slice,
    put: bytes,
) -> None:
    path = tmp_path / "some.faiss"
    save_faiss(path, vectors)
    data = bytearray(path.read_bytes())
    data[place] = put
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"some\.faiss: missing or damaged; call build_index again"):
        FaissVectors(path, 16)
