"""Options shared by the commands that align a recording with a score."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fusili_mir.errors import FusiliWarning

if TYPE_CHECKING:
    from fusili_mir.alignment.results import Alignment

__all__ = ["AlignmentOptions", "alignment_options", "plain_warnings"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class AlignmentOptions:
    """Values of the options that `alignment_options` adds."""

    model: Path | None
    device: str
    unfold: str
    jumps: bool
    dpi: float
    cache: Path | None

    def align(self, score: Path, audio: Path) -> Alignment:
        """Align the recording with the score, with progress bars on a terminal."""
        from fusili_mir.alignment.aligning import align_recording
        from fusili_mir.model.bundle import default_bundle, load_bundle
        from fusili_mir.model.encoder import Encoder
        from fusili_mir.pages.pages import open_pages

        encoder = Encoder(load_bundle(self.model) if self.model else default_bundle(), self.device)
        pages = open_pages(score, dpi=self.dpi, progress=True)
        return align_recording(pages, audio, encoder, self.unfold, self.jumps, self.cache, progress=True)


def alignment_options(command: F) -> F:
    """Add the options of an alignment to a command, which passes them on to `AlignmentOptions`."""
    for option in (
        click.option(
            "--cache",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Keep the encoded score in FILE, for the next recording of it.",
        ),
        click.option(
            "--dpi",
            type=float,
            default=200.0,
            show_default=True,
            help="Resolution at which PDF pages are drawn.",
        ),
        click.option(
            "--jumps",
            is_flag=True,
            help="Find repeats from the recording alone; only for scores that are images.",
        ),
        click.option(
            "--unfold",
            type=click.Choice(["auto", "maximal", "minimal", "none"]),
            default="auto",
            show_default=True,
            help="How the repeats of a symbolic score are played. auto: as fits the recording best; "
            "maximal: all of them; minimal: no repeats, only last endings; none: the score as notated.",
        ),
        click.option(
            "--device",
            default="auto",
            show_default=True,
            help="Device that runs the model: auto, cpu or cuda.",
        ),
        click.option(
            "--model",
            type=click.Path(path_type=Path),
            metavar="BUNDLE",
            help="Folder of the model.  [default: the installed one]",
        ),
    ):
        command = option(command)
    return command


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print our warnings on standard error, one line each, and suppress all others."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", FusiliWarning)
        try:
            yield
        finally:
            for warning in caught:
                click.echo(f"fusili-mir: warning: {' '.join(str(warning.message).split())}", err=True)
