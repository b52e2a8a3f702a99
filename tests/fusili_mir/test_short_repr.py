from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fusili_mir.short_repr import short_repr


@short_repr
@dataclass(frozen=True)
class Inner:
    values: np.ndarray


@short_repr
@dataclass(frozen=True)
class Outer:
    table: np.ndarray
    text: str
    inner: Inner
    numbers: tuple[int, ...]
    nothing: None = None
    secret: str = field(default="secret", repr=False)


def test_arrays_tables_texts_and_lists_are_told_by_their_size() -> None:
    table = np.zeros(268, [("id", "U8"), ("onset_sec", "f8")])
    outer = Outer(table, "x" * 1000, Inner(np.zeros((3, 4), np.float32)), tuple(range(99)))
    assert repr(outer) == (
        f"Outer(table=<268 rows>, text='{'x' * 60}'..., inner=Inner(values=<float32 3x4>), numbers=<99 items>, "
        "nothing=None)"
    )


def test_a_short_value_is_shown_as_it_is() -> None:
    outer = Outer(np.zeros(0), "piece.musicxml", Inner(np.zeros(2)), (1, 2))
    assert repr(outer).startswith("Outer(table=<float64 0>, text='piece.musicxml', ")
    assert "numbers=(1, 2)" in repr(outer)
