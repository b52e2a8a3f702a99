"""Where and how the bundles of an evaluation run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from fusili_mir.cli.device_options import device_options
from fusili_mir.cli.evaluating.sections import add_options

if TYPE_CHECKING:
    from fusili_mir.model.bundle import Bundle
    from fusili_mir.model.encoder import Encoder

__all__ = ["Running", "running_options"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Running:
    """Values of the options that `running_options` adds."""

    device: str = "auto"
    batch_size: int | None = None
    device_options: Mapping[str, str] | None = None

    def encoder(self, bundle: Bundle) -> Encoder:
        """Return the encoder of a bundle."""
        from fusili_mir.model.encoder import Encoder

        return Encoder(bundle, self.device, batch_size=self.batch_size, device_options=self.device_options)


def running_options(command: F) -> F:
    """Add `--device`, `--batch` and `--device-option` to a command."""
    return add_options(command, device_options()[::-1])
