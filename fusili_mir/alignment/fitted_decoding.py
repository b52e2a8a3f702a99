"""How a bundle is decoded: what was fitted for it, as its manifest says."""

from __future__ import annotations

import math
from collections.abc import Mapping

from fusili_mir.dataclass_tables import read_table
from fusili_mir.decoding.rough_search import DecodingOptions
from fusili_mir.decoding.timing_law import TimingLaw
from fusili_mir.errors import InputError
from fusili_mir.model.bundle import Bundle

__all__ = ["decoding_options"]


def decoding_options(bundle: Bundle) -> DecodingOptions:
    """Return how a bundle is decoded: with the law of timing that was fitted for it, or the usual one."""
    law = bundle.manifest.decoder.get("law", {})
    place = f"{bundle.folder}: decoder.law"
    _check_finite(law, place)
    return DecodingOptions(law=read_table(TimingLaw, law, place))


def _check_finite(value: object, place: str) -> None:
    """Raise if one of the numbers in a table is infinite or none."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            _check_finite(item, f"{place}.{key}")
    elif isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{place} is {value}; expected a number")
