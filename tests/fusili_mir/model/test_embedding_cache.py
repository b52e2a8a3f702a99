from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from example_bundles import write_ink_bundle, write_pitch_bundle
from example_scores import melody

from fusili_mir.errors import InputError, OutputError
from fusili_mir.hearing.networks import find_network
from fusili_mir.model import embedding_cache
from fusili_mir.model.bundle import default_bundle
from fusili_mir.model.embedding_cache import (
    EmbeddingKey,
    embedding_key,
    encode_pages_cached,
    load_encoded_score,
    save_encoded_score,
)
from fusili_mir.model.encoded import EncodedScore
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import Pages, render_pages


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Encoder:
    return Encoder(write_pitch_bundle(folder / "pitch"), n_threads=1)


@pytest.fixture(scope="module")
def pages(folder: Path) -> Pages:
    (folder / "a.musicxml").write_text(melody(4))
    return render_pages(folder / "a.musicxml")


class NoEncoder(Encoder):
    """Fails when it is asked to encode."""

    def encode_pages(self, pages: Pages, progress: bool = False):
        raise AssertionError("encoded again")


class NoReader(NoEncoder):
    """Fails when it is asked to read notes."""

    def with_pitches(self, score: EncodedScore, pages: Pages, progress: bool = False):
        raise AssertionError("read again")


def test_embeddings_are_encoded_once_and_come_back_the_same(
    tmp_path: Path, encoder: Encoder, pages: Pages
) -> None:
    folder = tmp_path / "new folder"
    first = encode_pages_cached(pages, encoder, folder)
    again = encode_pages_cached(pages, NoEncoder(encoder.bundle), folder)
    assert np.array_equal(again.axis.columns, first.axis.columns)
    assert np.array_equal(again.embeddings, first.embeddings)
    assert np.array_equal(again.mask, first.mask)
    assert again.segment_embeddings is not None
    assert first.segment_embeddings is not None
    assert np.array_equal(again.segment_embeddings, first.segment_embeddings)
    assert [path.suffix for path in folder.iterdir()] == [".npz"]


def test_notes_are_read_once_and_come_back_the_same(tmp_path: Path, pages: Pages) -> None:
    images = replace(pages, score=None)
    encoder = Encoder(default_bundle(), n_threads=1)
    first = encode_pages_cached(images, encoder, tmp_path)
    again = encode_pages_cached(images, NoReader(encoder.bundle), tmp_path)
    assert first.pitches is not None
    assert again.pitches is not None
    assert first.pitches.max() > 0.9  # it has notes
    assert np.array_equal(again.pitches, first.pitches)


def test_the_key_depends_on_what_reads_notes(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle, another = default_bundle(), replace(find_network("reading"), sha256="another")
    key = embedding_key(pages, bundle)
    monkeypatch.setattr(embedding_cache, "find_network", lambda name: another)
    assert embedding_key(pages, bundle) != key


def test_pitches_of_another_shape_raise_an_error(tmp_path: Path, encoder: Encoder, pages: Pages) -> None:
    key = embedding_key(pages, encoder.bundle)
    save_encoded_score(encoder.encode_pages(pages), tmp_path / "a.npz", key)
    arrays = dict(np.load(tmp_path / "a.npz"))
    np.savez(tmp_path / "a.npz", **arrays, pitches=np.zeros((3, 88), np.float32))
    with pytest.raises(InputError, match="damaged"):
        load_encoded_score(tmp_path / "a.npz", key)


def test_the_key_depends_on_pixels_staves_and_bundle(
    tmp_path: Path, folder: Path, encoder: Encoder, pages: Pages
) -> None:
    key = embedding_key(pages, encoder.bundle)
    assert embedding_key(render_pages(folder / "a.musicxml"), encoder.bundle) == key
    (folder / "b.musicxml").write_text(melody(4).replace("<step>F</step>", "<step>G</step>"))
    other_notes = embedding_key(render_pages(folder / "b.musicxml"), encoder.bundle)
    assert other_notes.score != key.score
    assert other_notes.bundle == key.bundle
    moved = replace(pages, staves=pages.staves.copy())
    moved.staves["y0"] += 1
    assert embedding_key(moved, encoder.bundle).score != key.score
    other_bundle = embedding_key(pages, write_ink_bundle(tmp_path / "ink"))
    assert other_bundle.bundle != key.bundle
    assert other_bundle.score == key.score


def test_embeddings_of_another_bundle_lie_beside_them(tmp_path: Path, encoder: Encoder, pages: Pages) -> None:
    file = tmp_path / "cache"
    other = Encoder(write_ink_bundle(tmp_path / "ink"), n_threads=1)
    assert encode_pages_cached(pages, other, file).embeddings.shape[1:] == (7, 2)
    assert encode_pages_cached(pages, encoder, file).embeddings.shape[1:] == (1, 18)
    assert encode_pages_cached(pages, NoEncoder(encoder.bundle), file).embeddings.shape[1:] == (1, 18)


def bare_array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.zeros(3))


def object_archive(path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, format=np.array([{"a": 1}], dtype=object))


@pytest.mark.parametrize(
    "write",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"my thesis"),
        lambda path: path.write_bytes(pickle.dumps({"format": 1})),
        lambda path: path.write_bytes(b"PK\x03\x04 cut"),
        lambda path: np.savez(path, something=np.zeros(3)),
        bare_array,
        object_archive,
    ],
)
def test_a_file_that_is_not_ours_raises_an_error_and_is_left_alone(
    tmp_path: Path, encoder: Encoder, pages: Pages, write
) -> None:
    encode_pages_cached(pages, encoder, tmp_path / "cache")
    (file,) = (tmp_path / "cache").iterdir()
    write(file)
    before = file.read_bytes()
    with pytest.raises(InputError, match=rf"{file.name}: not a file of embeddings by fusili-mir"):
        encode_pages_cached(pages, encoder, tmp_path / "cache")
    assert file.read_bytes() == before


def test_a_damaged_file_raises_an_error(tmp_path: Path, encoder: Encoder, pages: Pages) -> None:
    encode_pages_cached(pages, encoder, tmp_path)
    (file,) = tmp_path.glob("*.npz")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)
    with pytest.raises(InputError, match="damaged"):
        encode_pages_cached(pages, encoder, tmp_path)


def test_a_cache_that_is_a_file_raises_an_error(tmp_path: Path, encoder: Encoder, pages: Pages) -> None:
    (tmp_path / "score.npz").write_text("mine")
    with pytest.raises(OutputError, match=r"score\.npz: cannot keep scores there .*; expected a folder"):
        encode_pages_cached(pages, encoder, tmp_path / "score.npz")
    assert (tmp_path / "score.npz").read_text() == "mine"


def test_an_unwritable_place_raises_a_one_line_error(tmp_path: Path, encoder: Encoder, pages: Pages) -> None:
    encoded = encoder.encode_pages(pages)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        save_encoded_score(encoded, tmp_path / "file" / "a.npz", EmbeddingKey("a", "b"))


def test_the_key_decides_what_is_loaded(tmp_path: Path, encoder: Encoder, pages: Pages) -> None:
    save_encoded_score(encoder.encode_pages(pages), tmp_path / "a.npz", EmbeddingKey("a", "b"))
    assert load_encoded_score(tmp_path / "a.npz", EmbeddingKey("a", "c")) is None
    assert load_encoded_score(tmp_path / "a.npz", EmbeddingKey("c", "b")) is None
    assert load_encoded_score(tmp_path / "a.npz", EmbeddingKey("a", "b")) is not None
