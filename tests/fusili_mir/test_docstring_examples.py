"""The examples in docstrings (`>>>`) give what they say."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import fusili_mir

ROOT = Path(fusili_mir.__file__).parent
WITH_EXAMPLES = [
    ".".join(("fusili_mir", *file.relative_to(ROOT).with_suffix("").parts))
    for file in sorted(ROOT.rglob("*.py"))
    if ">>> " in file.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_the_examples_of_a_module_are_right(module: str) -> None:
    found = doctest.testmod(import_module(module))
    assert found.attempted > 0
    assert found.failed == 0
