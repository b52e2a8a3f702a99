"""One aligner: scores that are opened once, several threads, results that are decoded again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from example_bundles import write_pitch_bundle
from example_performances import perform, record, tune

from fusili_mir.alignment.align_options import AlignOptions
from fusili_mir.alignment.aligner import Aligner
from fusili_mir.alignment.encoded_alignment import align_encoded
from fusili_mir.alignment.played import play_pages
from fusili_mir.errors import InputError
from fusili_mir.model.encoded import EncodedScore
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import Pages, render_pages


class CountingEncoder(Encoder):
    """An encoder that counts the scores it has encoded."""

    n_scores = 0

    def encode_pages(self, pages: Pages, progress: bool = False) -> EncodedScore:
        self.n_scores += 1
        return super().encode_pages(pages, progress)


@pytest.fixture
def encoder(tmp_path: Path) -> CountingEncoder:
    return CountingEncoder(write_pitch_bundle(tmp_path / "pitch"))


@pytest.fixture
def pages(tmp_path: Path) -> Pages:
    (tmp_path / "tune.musicxml").write_text(tune())
    return render_pages(tmp_path / "tune.musicxml")


def test_pages_are_encoded_once_and_give_what_they_give_with_each_recording_alone(
    pages: Pages, encoder: CountingEncoder
) -> None:
    recordings = [record(perform(play_pages(pages), slower=slower)) for slower in (0.0, 0.02)]
    aligner = Aligner(encoder)
    together = [aligner.align(pages, recording) for recording in recordings]
    assert encoder.n_scores == 1
    for recording, alignment in zip(recordings, together, strict=True):
        np.testing.assert_array_equal(alignment.notes, Aligner(encoder).align(pages, recording).notes)


def test_embeddings_go_with_their_pages(tmp_path: Path, encoder: CountingEncoder) -> None:
    (tmp_path / "tune.musicxml").write_text(tune())
    aligner = Aligner(encoder)
    for _ in range(3):
        aligner.encode(aligner.open_score(tmp_path / "tune.musicxml"))
    assert encoder.n_scores == 3
    assert not aligner._scores


def test_one_aligner_serves_several_threads(pages: Pages, encoder: CountingEncoder) -> None:
    recordings = [record(perform(play_pages(pages), slower=0.01 * number)) for number in range(4)]
    aligner = Aligner(encoder)
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda recording: aligner.align(pages, recording).notes, recordings))
    for recording, notes in zip(recordings, together, strict=True):
        np.testing.assert_array_equal(notes, aligner.align(pages, recording).notes)


def test_decoding_again_with_anchors_is_aligning_with_them(pages: Pages, encoder: CountingEncoder) -> None:
    recording = record(perform(play_pages(pages)))
    aligner, anchors = Aligner(encoder), {4: 3.5}
    first = aligner.align(pages, recording, AlignOptions(transpose=0))
    again = first.again(anchors)
    whole = aligner.align(pages, recording, AlignOptions(transpose=0, anchors=anchors))
    np.testing.assert_array_equal(again.notes, whole.notes)
    assert again.made_with == whole.made_with
    assert again.anchors == whole.anchors
    assert not np.array_equal(again.notes["onset_sec"], first.notes["onset_sec"])
    np.testing.assert_array_equal(again.again(()).notes, first.notes)


def test_a_result_of_embeddings_alone_cannot_be_decoded_again(pages: Pages, encoder: CountingEncoder) -> None:
    audio = encoder.encode_recording(record(perform(play_pages(pages))))
    result = align_encoded(pages, encoder.encode_pages(pages), audio, encoder.bundle.manifest.scale)
    with pytest.raises(InputError, match=r"made from embeddings; expected one of Aligner\.align"):
        result.again({4: 3.5})
