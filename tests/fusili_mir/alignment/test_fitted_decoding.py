from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import pytest

from fusili_mir.alignment.fitted_decoding import decoding_options
from fusili_mir.errors import InputError
from fusili_mir.model.bundle import Bundle, default_bundle


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
