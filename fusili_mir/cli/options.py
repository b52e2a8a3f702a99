"""Options shared by the commands that align: those of `AlignOptions` and of `Aligner`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.shell_completion import CompletionItem

from fusili_mir.alignment.align_options import AlignOptions, OptionText, option_texts
from fusili_mir.boundary import printable
from fusili_mir.cli.device_options import device_options, read_device_options
from fusili_mir.errors import InputError

if TYPE_CHECKING:
    from fusili_mir.alignment.aligner import Aligner

__all__ = ["align_flags", "alignment_arguments", "alignment_options", "open_aligner", "read_align_options"]

F = TypeVar("F", bound=Callable[..., Any])


class _Value(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2
    """The value of an option, which the option itself reads."""

    def __init__(self, option: OptionText) -> None:
        self.name, self._option = option.name, option

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        assert self._option.read is not None  # noqa: S101
        try:
            return self._option.read(value) if isinstance(value, str) else value
        except InputError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(word) for word in self._option.words if word.startswith(incomplete)]


def align_flags(command: F) -> F:
    """Add a flag for each field of `AlignOptions` to a command; `read_align_options` reads them."""
    usual = AlignOptions()
    for option in reversed(option_texts().values()):
        names = [f"--{option.name}", option.field]
        if option.read is None:
            added = click.option(*names, is_flag=True, help=option.help)
        else:
            default = getattr(usual, option.field)
            several = isinstance(default, tuple)
            added = click.option(
                *names,
                type=_Value(option),
                metavar=option.metavar,
                help=option.help,
                multiple=several,
                default=() if several else default,
                show_default=default not in (None, (), 0.0),
            )
        command = added(command)
    return command


def read_align_options(values: dict[str, Any]) -> AlignOptions:
    """Take the values of the flags of `align_flags` out of those of a command."""
    own = {each.name: values.pop(each.name) for each in fields(AlignOptions)}
    own["anchors"] = tuple(anchor for several in own["anchors"] for anchor in several)
    try:
        return AlignOptions(**own)
    except InputError as error:
        raise click.UsageError(str(error)) from error


def open_aligner(values: dict[str, Any]) -> Aligner:
    """Open the aligner of a command from what remains of its values."""
    from fusili_mir.alignment.aligner import Aligner

    chosen = {**values, "device_options": read_device_options(values.get("device_options", ()))}
    return Aligner(**chosen, progress=True)


def alignment_arguments(command: F) -> F:
    """Add the arguments SCORE... and AUDIO to a command."""

    @functools.wraps(command)
    def checked(*arguments: Any, score: tuple[Path, ...], audio: str | None, **options: Any) -> Any:
        if not score or audio is None:
            raise click.UsageError(_lacking(audio))
        return command(*arguments, score=score, audio=audio, **options)

    # Neither is required for click, which would always miss the first one.
    arguments = (
        click.argument("audio", metavar="AUDIO", required=False, type=click.Path(allow_dash=True)),
        click.argument("score", metavar="SCORE...", nargs=-1, type=click.Path(path_type=Path)),
    )
    for argument in arguments:
        checked = argument(checked)
    return cast(F, checked)


def _lacking(only: str | None) -> str:
    """Say which argument is missing, by what the only one is."""
    if only is None:
        return "Missing arguments SCORE and AUDIO."
    from fusili_mir.brought_files import is_picture, is_sound
    from fusili_mir.scores.score_formats import is_score_file

    shown = printable(only)
    if is_picture(only) or is_score_file(only):
        return f"Missing argument AUDIO: {shown} is a score; give the recording after it."
    if only == "-" or is_sound(only):
        return f"Missing argument SCORE: {shown} is a recording; give the score before it."
    return f"Expected two arguments, SCORE and AUDIO; found only {shown}."


def alignment_options(command: F) -> F:
    """Add the options of an alignment to a command, for `read_align_options` and then `open_aligner`."""
    command = click.option(
        "--cache",
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        help="Keep encoded scores in FOLDER, for the next recordings of them.",
    )(command)
    for option in device_options():
        command = option(command)
    command = align_flags(command)
    return click.option(
        "--model",
        type=click.Path(path_type=Path),
        metavar="BUNDLE",
        help="Folder of the model.  [default: the installed one]",
    )(command)
