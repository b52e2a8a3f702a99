"""The options that say where and how a model runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

__all__ = ["device_options", "read_device_options"]


def device_options() -> list[Callable[..., Any]]:
    """Return `--device`, `--batch` and `--device-option`, as decorators of a command."""
    return [
        click.option(
            "--device-option",
            "device_options",
            multiple=True,
            metavar="KEY=VALUE",
            help="Option of onnxruntime's execution provider, such as gpu_mem_limit=2000000000; repeatable.",
        ),
        click.option(
            "--batch",
            "batch_size",
            type=click.IntRange(1),
            help="Segments or clips that go through the model together.  [default: what the memory allows]",
        ),
        click.option(
            "--device",
            default="auto",
            show_default=True,
            help="Where the model runs: auto, cpu, cuda, cuda:1, tensorrt, dml (DirectML), coreml.",
        ),
    ]


def read_device_options(texts: Sequence[str]) -> dict[str, str]:
    """Read ``KEY=VALUE`` options."""
    options = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise click.BadParameter(f"{text!r}; expected KEY=VALUE", param_hint="--device-option")
        options[key] = value
    return options
