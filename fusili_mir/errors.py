"""The errors and warnings that fusili-mir raises on purpose.

Every message is one line: what was found, what was expected, and what to do. The command line prints it and
exits with code 1; any exception that is not a `FusiliError` is a bug.
"""

__all__ = ["FusiliError", "FusiliWarning", "InputError", "MissingExtraError", "OutputError"]


class FusiliError(Exception):
    """Base of all errors raised on purpose."""


class FusiliWarning(UserWarning):
    """Base of all warnings; the command line prints each as one line."""


class InputError(FusiliError, ValueError):
    """A value or a file that cannot be used."""


class MissingExtraError(FusiliError, ImportError):
    """An optional dependency that is needed but not installed."""


class OutputError(FusiliError, OSError):
    """A result that cannot be written to the requested place."""
