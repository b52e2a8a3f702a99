"""The warning about a score that can be used, but not quite as it was brought."""

from __future__ import annotations

from fusili_mir.errors import FusiliWarning

__all__ = ["ScoreWarning"]


class ScoreWarning(FusiliWarning):
    """Something in a score was left out, was named anew, or is not where it should be on the page."""
