"""Counting the bytes of live tensors on any device, without the help of an allocator."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

__all__ = ["LiveMemory"]


class LiveMemory(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A context that counts all new tensors; `peak_bytes` is the largest number of bytes alive at once.

    Parameters
    ----------
    known : iterable of Tensor
        Tensors that do not count, such as parameters.
    """

    def __init__(self, known: Iterable[Tensor] = ()) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.live_bytes: int = 0
        self.peak_bytes: int = 0
        self._known = [
            tensor.untyped_storage() for tensor in known
        ]  # held, so that no identity is used twice
        self._seen = {storage._cdata for storage in self._known}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor):
                self._watch(leaf)
        return result

    def _watch(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        if storage._cdata in self._seen:
            return
        self._seen.add(storage._cdata)
        self.live_bytes += storage.nbytes()
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        weakref.finalize(storage, self._forget, storage._cdata, storage.nbytes())

    def _forget(self, identity: int, n_bytes: int) -> None:
        self._seen.discard(identity)
        self.live_bytes -= n_bytes
