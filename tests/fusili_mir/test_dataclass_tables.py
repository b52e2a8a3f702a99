from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from fusili_mir.dataclass_tables import read_table
from fusili_mir.errors import InputError


@dataclass(frozen=True)
class Ink:
    colour: Literal["black", "red"] = "black"
    depth: float = 1.0


@dataclass(frozen=True)
class Print:
    name: str
    copies: int = 1
    colour: bool = False
    margins_mm: tuple[float, float] = (10.0, 10.0)
    fonts: tuple[str, ...] = ("Leland",)
    dpi: int | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    notes: list[Any] = field(default_factory=list)
    ink: Ink = field(default_factory=lambda: Ink("red", 0.5))

    def __post_init__(self) -> None:
        if self.copies < 1:
            raise InputError(f"copies is {self.copies}; expected at least 1")


def test_values_get_the_types_of_their_fields() -> None:
    table = {
        "name": "proof",
        "margins_mm": [5, 7.5],
        "fonts": ["Bravura", "Leipzig"],
        "dpi": 300,
        "weights": {"a": 1},
        "notes": [1, [2]],
    }
    found = read_table(Print, table)
    assert found == Print(
        "proof", 1, False, (5.0, 7.5), ("Bravura", "Leipzig"), 300, {"a": 1.0}, notes=[1, [2]]
    )
    assert isinstance(found.margins_mm[0], float)
    assert isinstance(found.weights["a"], float)
    assert read_table(Print, {"name": "proof", "dpi": None}).dpi is None


def test_a_nested_table_changes_only_what_it_names() -> None:
    assert read_table(Print, {"name": "proof", "ink": {"depth": 2}}).ink == Ink("red", 2.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"copeis": 2}, "unknown key copeis; did you mean copies? the top level has name, copies, colour,"),
        ({"ink": {"shade": 1}}, "unknown key ink.shade; [ink] has colour, depth"),
        ({"name": 3}, "name is 3; expected a string"),
        ({"copies": 1.0}, "copies is 1.0; expected a whole number"),
        ({"copies": True}, "copies is True; expected a whole number"),
        ({"colour": 1}, "colour is 1; expected true or false"),
        ({"ink": {"depth": False}}, "ink.depth is False; expected a number"),
        ({"ink": {"depth": 10**400}}, "ink.depth is 1000"),
        ({"ink": {"colour": "green"}}, "ink.colour is 'green'; expected one of black, red"),
        ({"ink": 3}, "ink is 3; expected a table"),
        ({"margins_mm": [1.0]}, "margins_mm is [1.0]; expected a list of 2"),
        ({"margins_mm": [1.0, "wide"]}, "margins_mm[1] is 'wide'; expected a number"),
        ({"fonts": "Leland"}, "fonts is 'Leland'; expected a list"),
        ({"fonts": ["Leland", 2]}, "fonts[1] is 2; expected a string"),
        ({"dpi": "high"}, "dpi is 'high'; expected a whole number"),
        ({"weights": {"a": "b"}}, "weights.a is 'b'; expected a number"),
        ({"weights": 1}, "weights is 1; expected a table"),
        ({"notes": "none"}, "notes is 'none'; expected a list"),
        ({"copies": 0}, "copies is 0; expected at least 1"),
    ],
)
def test_a_slip_is_named_with_what_was_expected(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_table(Print, {"name": "proof"} | change)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_field_without_a_default_must_be_there() -> None:
    with pytest.raises(InputError, match="the recipe lacks name"):
        read_table(Print, {}, name="the recipe")


def test_a_complete_table_has_every_field() -> None:
    assert read_table(Ink, {"colour": "red", "depth": 1}, complete=True) == Ink("red", 1.0)
    with pytest.raises(InputError, match=r"\[ink\] lacks colour, depth"):
        read_table(Ink, {}, "ink", complete=True)


@pytest.mark.parametrize("table", [None, 3, [], "name"])
def test_what_is_no_table_is_refused(table: object) -> None:
    with pytest.raises(InputError, match="expected a table"):
        read_table(Print, table)
