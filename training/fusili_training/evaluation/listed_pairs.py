"""Pairs listed in a CSV table, the form of YTSV and PDMX: columns `image_filename` and `audio_filename`.

Paths are relative to the table. A column `piece` says which rows belong together; without it every row is a
piece of its own. The notes are not known: only global retrieval can be measured.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from fusili_mir.audio.recording import AudioFile
from fusili_mir.boundary import reason
from fusili_mir.errors import InputError
from fusili_mir.model.bundle import ImageSpec
from fusili_mir.pages.page_sources import ImagePage
from fusili_training.data.shard_folder import Pair
from fusili_training.evaluation.pair_encoder import PROTOCOL_SEC
from fusili_training.evaluation.recordings import Sound, read_sound
from fusili_training.evaluation.segment_images import SIDE_PX, fit_square, strips_of_image
from fusili_training.truth import TRUTH_DTYPE

__all__ = ["ListedPairs"]

_COLUMNS = ("image_filename", "audio_filename")


class ListedPairs:
    """The pairs of a table; those over 20 s are dropped, and those without staves where staves are needed.

    Parameters
    ----------
    table : Path
    image : ImageSpec, optional
        Images that the bundle takes.
    """

    has_truth = False

    def __init__(self, table: Path, image: ImageSpec | None = None) -> None:
        self.name, self._table, self._spec = table.stem, table, image
        self.dropped: Counter[str] = Counter()
        self._rows: dict[str, list[tuple[int, Path, Path]]] = {}
        for number, row in enumerate(_read_rows(table), start=1):
            image_file, audio_file = (table.parent / row[column] for column in _COLUMNS)
            for file in (image_file, audio_file):
                if not file.is_file():
                    raise InputError(f"{table}: row {number} names {file}, which does not exist")
            piece = row.get("piece") or f"row-{number}"
            self._rows.setdefault(piece, []).append((number, image_file, audio_file))
        if not self._rows:
            raise InputError(f"{table}: no rows; expected one per pair")
        self.pieces: Sequence[str] = list(self._rows)

    def read_piece(self, piece: str) -> Iterator[Pair]:
        """Yield the pairs of a piece in the order of the table."""
        for number, image_file, audio_file in self._rows[piece]:
            sound = read_sound(AudioFile(audio_file))
            if sound.duration_sec > PROTOCOL_SEC:
                self.dropped["over 20 s"] += 1
                continue
            pair = self._pair(f"{piece}.listed.{number}", image_file, sound)
            if pair is None:
                self.dropped["no staves found"] += 1
                continue
            yield pair

    def _pair(self, key: str, image_file: Path, sound: Sound) -> Pair | None:
        page = ImagePage(image_file).read()
        if self._spec is None or self._spec.segment == "square":
            segment = fit_square(page, SIDE_PX if self._spec is None else self._spec.height_px)
        else:
            found = strips_of_image(page, self._spec)
            if found is None:
                return None
            segment = found
        return Pair(
            key=key,
            mutant_of=None,
            image=segment.image,
            waveform=sound.samples,
            truth=np.zeros(0, TRUTH_DTYPE),
            strip_height_px=segment.strip_height_px,
            sample_rate_hz=sound.sample_rate_hz,
        )


def _read_rows(table: Path) -> list[dict[str, str]]:
    try:
        with table.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            missing = [column for column in _COLUMNS if column not in (reader.fieldnames or ())]
            if missing:
                raise InputError(
                    f"{table}: has no column {' and '.join(missing)}; found {', '.join(reader.fieldnames or ())}"
                )
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{table}: cannot be read as a table ({reason(error)})") from error
    for number, row in enumerate(rows, start=1):
        if any(not row[column] for column in _COLUMNS):
            raise InputError(f"{table}: row {number} lacks {' or '.join(_COLUMNS)}")
    return rows
