from __future__ import annotations

from pathlib import Path

import pytest
from example_bundles import write_pitch_bundle
from example_performances import perform, record, tune
from example_scores import VOLTAS, measure, note, score

from fusili_mir.alignment.played import play_pages
from fusili_mir.alignment.unfolding_choice import Unfolding, choose_unfolding
from fusili_mir.errors import InputError
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import Pages, render_pages
from fusili_mir.scores.unfolding import Unfold


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    return Encoder(write_pitch_bundle(tmp_path_factory.mktemp("bundle") / "pitch"))


def engraved(folder: Path, xml: str) -> Pages:
    (folder / "piece.musicxml").write_text(xml)
    return render_pages(folder / "piece.musicxml")


def choose(pages: Pages, encoder: Encoder, played_as: Unfold, unfold: str = "auto") -> Unfolding:
    recording = record(perform(play_pages(pages, played_as)))
    encoded = encoder.encode_pages(pages), encoder.encode_recording(recording)
    return choose_unfolding(pages, *encoded, encoder.bundle.manifest.scale, unfold)  # type: ignore[arg-type]


@pytest.mark.parametrize("played_as", ["maximal", "minimal"])
def test_the_unfolding_that_was_played_explains_the_recording_best(
    tmp_path: Path, encoder: Encoder, played_as: Unfold
) -> None:
    assert choose(engraved(tmp_path, VOLTAS), encoder, played_as).played.unfold == played_as


def test_a_score_without_repeats_keeps_the_ids_of_the_file(tmp_path: Path, encoder: Encoder) -> None:
    chosen = choose(engraved(tmp_path, tune(("C4", "E4", "G4", "B4"))), encoder, "none")
    assert chosen.played.unfold == "none"
    assert chosen.played.notes["id"].tolist() == ["p0n0", "p0n1", "p0n2", "p0n3"]


@pytest.mark.parametrize("unfold", ["maximal", "minimal", "none"])
def test_a_requested_unfolding_is_taken_whatever_was_played(
    tmp_path: Path, encoder: Encoder, unfold: str
) -> None:
    assert choose(engraved(tmp_path, VOLTAS), encoder, "maximal", unfold).played.unfold == unfold


def test_an_unknown_unfolding_is_refused(tmp_path: Path, encoder: Encoder) -> None:
    with pytest.raises(InputError, match="unfold is 'all', expected one of auto, none, maximal, minimal"):
        choose(engraved(tmp_path, VOLTAS), encoder, "none", "all")


def test_one_repeat_may_be_played_and_another_left_out(tmp_path: Path, encoder: Encoder) -> None:
    begin = "<barline location='left'><repeat direction='forward'/></barline>"
    end = "<barline location='right'><repeat direction='backward'/></barline>"
    pairs = [("C4", "E4"), ("G4", "B4"), ("D5", "F5"), ("A4", "F4")]
    bars = [note(one) + note(two) for one, two in pairs]
    twice = [begin + bars[0], bars[1] + end, begin + bars[2], bars[3] + end]
    pages = engraved(tmp_path, score([measure(bar, i + 1, first=i == 0) for i, bar in enumerate(twice)]))
    both, first, second, neither = ((0, 2), (0, 4), (2, 4)), ((0, 2), (0, 4)), ((0, 4), (2, 4)), ((0, 4),)
    for way in (both, first, second, neither):
        chosen = choose(pages, encoder, way)
        assert chosen.played.measures["measure"].tolist() == [m for a, b in way for m in range(a, b)]
        assert chosen.probability > 0.9
