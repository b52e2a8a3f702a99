"""The numbers of the paper's two tables, and the recipe whose bundle each row is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["COLUMNS", "TABLES", "Column", "PublishedRow", "TableName"]

TableName = Literal["table1", "table2"]


@dataclass(frozen=True)
class Column:
    """A column of both tables: which number it shows, on which dataset."""

    title: str
    data: str  # "msmd", "pdmx" or "ytsv"
    task: str
    metric: str
    direction: str
    digits: int = 2


COLUMNS = (
    Column("local top-1", "msmd", "local", "top-1", "A2I"),
    Column("local PPL", "msmd", "local", "PPL", "A2I"),
    Column("point I2A", "msmd", "point", "top-1", "I2A"),
    Column("point A2I", "msmd", "point", "top-1", "A2I"),
    *(
        Column(f"{data} {direction} {metric}", data.lower(), "retrieval", metric, direction)
        for data in ("PDMX", "YTSV", "MSMD")
        for direction in ("I2A", "A2I")
        for metric in ("R@1", "MRR")
    ),
)


@dataclass(frozen=True)
class PublishedRow:
    """A row: its title, the recipe whose bundle fills it, and the published numbers in the order of `COLUMNS`."""

    title: str
    recipe: str | None
    numbers: tuple[float | None, ...]

    def __post_init__(self) -> None:
        if len(self.numbers) != len(COLUMNS):
            raise ValueError(f"{self.title}: {len(self.numbers)} numbers for {len(COLUMNS)} columns")


_BEST = (0.30, 34.24, 0.14, 0.14, 0.72, 0.83, 0.73, 0.83, 0.05, 0.10, 0.04, 0.08, 0.25, 0.38, 0.25, 0.39)
_NO_RETRIEVAL = (None,) * 12

# fmt: off
TABLES: dict[TableName, tuple[PublishedRow, ...]] = {
    "table1": (
        PublishedRow("Random, Baseline", "table1-random-baseline",
            (0.19, 35.08, 0.01, 0.05, 0.75, 0.85, 0.75, 0.85, 0.01, 0.05, 0.02, 0.05, 0.19, 0.29, 0.12, 0.22)),
        PublishedRow("Random, +FuSiLi", "table1-random-fusili",
            (0.24, 35.51, 0.10, 0.11, 0.72, 0.83, 0.72, 0.83, 0.01, 0.04, 0.01, 0.05, 0.06, 0.15, 0.10, 0.20)),
        PublishedRow("Random, +Neg. Mutations", "table1-random-negative-mutations",
            (0.26, 36.03, 0.09, 0.09, 0.68, 0.79, 0.65, 0.76, 0.02, 0.05, 0.02, 0.05, 0.13, 0.24, 0.16, 0.28)),
        PublishedRow("Random, +Pos. Mutations", "table1-random-positive-mutations",
            (0.17, 37.73, 0.09, 0.08, 0.67, 0.79, 0.67, 0.79, 0.02, 0.06, 0.01, 0.04, 0.17, 0.29, 0.24, 0.35)),
        PublishedRow("Same Piece, Baseline", "table1-same-piece-baseline",
            (0.16, 38.11, 0.01, 0.05, 0.77, 0.86, 0.76, 0.86, 0.04, 0.11, 0.04, 0.09, 0.22, 0.34, 0.24, 0.37)),
        PublishedRow("Same Piece, +FuSiLi", "table1-same-piece-fusili",
            (0.21, 33.86, 0.19, 0.11, 0.76, 0.86, 0.76, 0.86, 0.05, 0.11, 0.03, 0.08, 0.27, 0.37, 0.27, 0.39)),
        PublishedRow("Same Piece, +Neg. Mutations", "table1-same-piece-negative-mutations",
            (0.27, 34.39, 0.16, 0.12, 0.71, 0.82, 0.72, 0.83, 0.02, 0.07, 0.03, 0.08, 0.31, 0.43, 0.29, 0.42)),
        PublishedRow("Same Piece, +Pos. Mutations", "table1-same-piece-positive-mutations", _BEST),
        PublishedRow("U-MusT", None, (0.20, 101.27, 0.23, 0.12, *_NO_RETRIEVAL)),
    ),
    "table2": (
        PublishedRow("alpha 0.5, FuSiLi", "table2-hybrid-fusili", _BEST),
        PublishedRow("alpha 0.5, Cosine", "table2-hybrid-cosine",
            (0.02, 42.49, 0.02, 0.02, 0.51, 0.66, 0.51, 0.67, 0.00, 0.02, 0.00, 0.02, 0.05, 0.11, 0.06, 0.14)),
        PublishedRow("alpha 0", "table2-global",
            (0.24, 36.55, 0.01, 0.05, 0.73, 0.83, 0.73, 0.83, 0.07, 0.12, 0.03, 0.07, 0.27, 0.38, 0.28, 0.41)),
        PublishedRow("alpha 1, FuSiLi", "table2-local-fusili",
            (0.16, 32.41, 0.16, 0.08, 0.27, 0.38, 0.13, 0.24, 0.00, 0.03, 0.01, 0.02, 0.09, 0.16, 0.06, 0.13)),
        PublishedRow("alpha 1, Cosine", "table2-local-cosine",
            (0.03, 42.46, 0.01, 0.01, 0.00, 0.02, 0.00, 0.02, 0.01, 0.02, 0.00, 0.01, 0.00, 0.02, 0.00, 0.02)),
    ),
}
# fmt: on
