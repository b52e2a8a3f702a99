"""Correcting a result: anchors come in, it is decoded again, and its files are written anew.

Decoding takes a moment and is done while somebody waits; writing all files takes longer and is done behind it.
The files that were there before are kept in the folder `.before`, for one step of undo.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fusili_mir.alignment.anchors import Anchor, anchors_csv, as_anchors
from fusili_mir.alignment.results import Alignment
from fusili_mir.boundary import printable_lines, reading
from fusili_mir.errors import FusiliError, InputError
from fusili_mir.staging import staged_folder
from fusili_mir.viewer.view_data import result_tables

__all__ = ["ANCHORS_FILE", "BEFORE_FOLDER", "Correction"]

ANCHORS_FILE = "anchors.csv"
BEFORE_FOLDER = ".before"

_log = logging.getLogger("fusili_mir")


class Correction:
    """A result that is being corrected.

    Parameters
    ----------
    folder : Path
        Folder of the result.
    align : callable
        Aligns its score and recording; called once, in a thread of its own.
    save : callable
        Writes an alignment into a folder, in the formats of the result.

    Attributes
    ----------
    problem : str
        Why it cannot be decoded again; empty if it can.
    """

    def __init__(
        self, folder: Path, align: Callable[[], Alignment], save: Callable[[Alignment, Path], None]
    ) -> None:
        self.folder = folder
        self.problem = ""
        self._align_first, self._save = align, save
        self._aligned: Alignment | None = None
        self._lock = threading.Lock()  # one decoding at a time
        self._saving = threading.Lock()  # one writing at a time
        self._newest: Alignment | None = None
        self._prepared = threading.Thread(target=self._prepare, daemon=True)
        self._writer: threading.Thread | None = None
        self._prepared.start()

    @property
    def is_ready(self) -> bool:
        """Whether score and recording are encoded."""
        return self._aligned is not None

    @property
    def is_saved(self) -> bool:
        """Whether the files are those of the last correction."""
        return self._newest is None

    def anchors(self) -> tuple[Anchor, ...]:
        """Return the anchors of the files."""
        filename = self.folder / ANCHORS_FILE
        return as_anchors(filename) if filename.is_file() else ()

    def correct(self, anchors: tuple[Anchor, ...]) -> dict[str, Any]:
        """Decode again with anchors, begin to save, and return what a page shows of the result."""
        with self._lock:
            alignment = self._align(anchors)
            self._newest = alignment
            if self._writer is None or not self._writer.is_alive():
                self._writer = threading.Thread(target=self._write_newest)
                self._writer.start()
        return result_tables(alignment)

    def undo(self) -> tuple[dict[str, Any], tuple[Anchor, ...]]:
        """Exchange the files with those before the last correction; return tables and anchors."""
        self.finish()
        with self._lock, self._saving:
            before = self.folder / BEFORE_FOLDER
            if not before.is_dir():
                raise InputError("nothing was corrected yet, so there is nothing to undo")
            with staged_folder(self.folder, force=True, renewed=(BEFORE_FOLDER,)) as staged:
                for file in sorted(before.iterdir()):
                    shutil.copy2(file, staged / file.name)
                self._keep_before(staged)
            anchored = self.anchors()
            return result_tables(self._align(anchored)), anchored

    def finish(self) -> None:
        """Wait until everything is written."""
        if self._writer is not None:
            self._writer.join()

    def _prepare(self) -> None:
        try:
            with reading(self.folder, "align again"):
                self._aligned = self._align_first()
        except FusiliError as error:
            self.problem = str(error)

    def _align(self, anchors: tuple[Anchor, ...]) -> Alignment:
        self._prepared.join()
        if self._aligned is None:
            raise InputError(self.problem or "score and recording could not be aligned")
        return self._aligned.again(anchors)

    def _write_newest(self) -> None:
        while (alignment := self._newest) is not None:
            try:
                with self._saving, reading(self.folder, "align again"):
                    self._write(alignment)
            except FusiliError as error:
                self.problem = str(error)
                _log.warning("%s", printable_lines(str(error)))
            if self._newest is alignment:
                self._newest = None

    def _write(self, alignment: Alignment) -> None:
        with staged_folder(self.folder, force=True, renewed=(BEFORE_FOLDER,)) as staged:
            self._save(alignment, staged)
            (staged / ANCHORS_FILE).write_text(anchors_csv(alignment.anchors), encoding="utf-8")
            self._keep_before(staged)

    def _keep_before(self, staged: Path) -> None:
        """Copy the files that are about to be replaced; they appear together with the new ones."""
        before = staged / BEFORE_FOLDER
        replacing = [file for file in sorted(staged.iterdir()) if file.is_file()]
        before.mkdir()
        for file in replacing:
            if (self.folder / file.name).is_file():
                shutil.copy2(self.folder / file.name, before / file.name)
        if not (before / ANCHORS_FILE).exists():
            (before / ANCHORS_FILE).write_text(anchors_csv(()), encoding="utf-8")
