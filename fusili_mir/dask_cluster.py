"""Connecting to the machines of a Dask cluster, which must see all files under the same names."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fusili_mir.boundary import reason
from fusili_mir.errors import InputError, MissingExtraError

__all__ = ["connect_to_dask"]

_PATIENCE_SEC = 15


def connect_to_dask(address: str) -> Any:
    """Return a client of the scheduler at an address such as ``tcp://10.0.0.1:8786``, to be closed after use."""
    try:
        distributed: Any = import_module("distributed")
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "a Dask cluster needs the package distributed; install it with `pip install 'fusili-mir[cluster]'`"
        ) from error
    try:
        return distributed.Client(address, timeout=_PATIENCE_SEC, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"{address}: no Dask scheduler answers ({reason(error)}); expected the address of one"
        ) from error
