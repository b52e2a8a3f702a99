from __future__ import annotations

import copy
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_bundles import write_pitch_bundle
from example_performances import perform, record, tune

from fusili_mir.alignment.aligning import align_recording
from fusili_mir.alignment.fitted_decoding import CalibrationWarning, decoding_options
from fusili_mir.alignment.played import play_pages
from fusili_mir.errors import InputError
from fusili_mir.model.bundle import Bundle, default_bundle
from fusili_mir.pages.pages import render_pages


def with_rival(weight: Any) -> Bundle:
    """The shipped bundle with another weight for one of its clues."""
    bundle = default_bundle()
    decoder = copy.deepcopy(dict(bundle.manifest.decoder))
    decoder["law"]["certainty"]["right"]["rival"] = weight
    return replace(bundle, manifest=replace(bundle.manifest, decoder=decoder))


def test_a_weight_is_read_from_the_manifest() -> None:
    certainty = decoding_options(with_rival(0.25)).law.certainty
    assert certainty is not None
    assert certainty.right.rival == 0.25


@pytest.mark.parametrize("weight", ["x", math.nan, -math.inf, True, None])
def test_a_weight_that_is_no_number_names_the_bundle_and_the_clue(weight: Any) -> None:
    with pytest.raises(
        InputError, match=r"small: decoder.law.certainty.right.rival is .*; expected a number"
    ):
        decoding_options(with_rival(weight))


def with_law(**law: Any) -> Bundle:
    """The shipped bundle, for which nothing but this was fitted."""
    bundle = default_bundle()
    return replace(bundle, manifest=replace(bundle.manifest, decoder={"law": law}))


def test_what_was_not_fitted_for_a_bundle_is_that_of_the_one_that_ships_and_a_warning_says_so() -> None:
    shipped = decoding_options(default_bundle()).law
    with pytest.warns(
        CalibrationWarning, match="not calibrated for this model, with frames of 40 ms: they were"
    ):
        law = decoding_options(with_law(grace_sec=0.5)).law
    assert law == replace(shipped, grace_sec=0.5)


def test_a_law_that_is_no_table_is_refused() -> None:
    bundle = default_bundle()
    wrong = replace(bundle, manifest=replace(bundle.manifest, decoder={"law": [1, 2]}))
    with pytest.raises(InputError, match=r"decoder.law is \[1, 2\]; expected a table"):
        decoding_options(wrong)


def test_a_bundle_at_48_khz_for_which_nothing_was_fitted_hears_onsets_and_says_that_it_is_not_calibrated(
    tmp_path: Path,
) -> None:
    (tmp_path / "tune.musicxml").write_text(tune())
    pages = render_pages(tmp_path / "tune.musicxml")
    performed = perform(play_pages(pages), slower=0.013)  # onsets lie anywhere in a frame
    bundle = write_pitch_bundle(tmp_path / "bundle", sample_rate_hz=48_000, is_calibrated=False)
    with pytest.warns(CalibrationWarning, match="probabilities and intervals are not calibrated"):
        alignment = align_recording(pages, record(performed), model=bundle, transpose=0)
    errors_sec = np.abs(alignment.notes["onset_sec"] - performed["onset_sec"])
    assert errors_sec.max() < 0.02
    assert np.median(errors_sec) < 0.01
    assert alignment.made_with is not None
    assert not alignment.made_with.model.is_calibrated
    assert "not calibrated for this model" in repr(alignment)
