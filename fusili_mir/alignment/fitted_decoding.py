"""How a bundle is decoded: what was fitted for it, as its manifest says, or for the bundle that ships."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

from fusili_mir.dataclass_tables import read_table
from fusili_mir.decoding.rough_search import DecodingOptions
from fusili_mir.decoding.timing_law import TimingLaw
from fusili_mir.errors import FusiliWarning, InputError
from fusili_mir.model.bundle import Bundle, default_bundle

__all__ = ["CalibrationWarning", "decoding_options", "is_calibrated"]


class CalibrationWarning(FusiliWarning):
    """Probabilities and intervals that may be wrong: they were fitted for another model."""


def is_calibrated(bundle: Bundle) -> bool:
    """Return whether it was fitted for this bundle how sure its results are."""
    return {"certainty", "read_certainty"} <= _fitted_law(bundle).keys()


def decoding_options(bundle: Bundle) -> DecodingOptions:
    """Return how a bundle is decoded.

    Parameters
    ----------
    bundle : Bundle
        What was not fitted for it is that of the bundle that ships, the only one whose values are known.

    Warns
    -----
    CalibrationWarning
        If it was not fitted for this bundle how sure its results are.
    """
    known = default_bundle()
    if not is_calibrated(bundle):
        warnings.warn(
            f"{bundle.folder}: probabilities and intervals are not calibrated for this model, with frames of "
            f"{1000 * bundle.audio.frame_sec:g} ms: they were fitted for {known.manifest.name!r}, with frames of "
            f"{1000 * known.audio.frame_sec:g} ms",
            CalibrationWarning,
            stacklevel=2,
        )
    law = {**_fitted_law(known), **_fitted_law(bundle)}
    return DecodingOptions(law=read_table(TimingLaw, law, f"{bundle.folder}: decoder.law"))


def _fitted_law(bundle: Bundle) -> Mapping[str, Any]:
    """Return the parameters of `TimingLaw` that were fitted for a bundle, as a table of numbers."""
    law, place = bundle.manifest.decoder.get("law", {}), f"{bundle.folder}: decoder.law"
    if not isinstance(law, Mapping):
        raise InputError(f"{place} is {law!r}; expected a table")
    _check_numbers(law, place)
    return law


def _check_numbers(value: object, place: str) -> None:
    """Raise if one of the numbers in a table is infinite or none."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            _check_numbers(item, f"{place}.{key}")
    elif value is None or (isinstance(value, float) and not math.isfinite(value)):
        raise InputError(f"{place} is {value}; expected a number")
