"""The errors that fusili-mir raises on purpose.

Every message is one line: what was found, what was expected, and the way out. The command line prints it
and leaves with exit code 1; anything that is not a `FusiliError` is a defect of ours.
"""

__all__ = ["FusiliError", "InputError", "MissingExtraError", "OutputError"]


class FusiliError(Exception):
    """Base of all errors raised on purpose."""


class InputError(FusiliError, ValueError):
    """A value or a file that cannot be worked with."""


class MissingExtraError(FusiliError, ImportError):
    """An optional dependency that a call needs and this installation lacks."""


class OutputError(FusiliError, OSError):
    """A result that cannot be written where it was asked for."""
