"""How a bundle is decoded: what was fitted for it, as its manifest says."""

from __future__ import annotations

from fusili_mir.dataclass_tables import read_table
from fusili_mir.decoding.rough_search import DecodingOptions
from fusili_mir.decoding.timing_law import TimingLaw
from fusili_mir.model.bundle import Bundle

__all__ = ["decoding_options"]


def decoding_options(bundle: Bundle) -> DecodingOptions:
    """Return how a bundle is decoded: with the law of timing that was fitted for it, or the usual one."""
    law = bundle.manifest.decoder.get("law", {})
    return DecodingOptions(law=read_table(TimingLaw, law, f"{bundle.folder}: decoder.law"))
