"""Building an index, and adding to one.

Each file is encoded on its own, and what comes out is written at once, so a run that is killed goes on where it
was. The tables of all pieces are written at the end, as a new generation.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from fusili_mir import __version__
from fusili_mir.arrays import Int64
from fusili_mir.collection.encoded_piece import Float16, load_piece
from fusili_mir.collection.encoding_tasks import EncodedFile, EncodingTask, encode_task
from fusili_mir.collection.file_states import file_state, is_gone, piece_id, sha256_of
from fusili_mir.collection.index import Index, open_index
from fusili_mir.collection.index_files import (
    INDEX_FORMAT,
    MANIFEST,
    WINDOW_DTYPE,
    IndexedPiece,
    IndexManifest,
    bundle_fingerprint,
    piece_file,
    read_index_manifest,
    read_pieces,
    write_json,
    write_manifest,
)
from fusili_mir.collection.index_report import CHANGES, IndexedFile, IndexReport, Status, write_report
from fusili_mir.collection.kinds import KINDS, kind_of, list_files
from fusili_mir.collection.vectors import import_faiss, save_faiss
from fusili_mir.collection.workers import run_everywhere
from fusili_mir.errors import InputError, OutputError, option
from fusili_mir.folder_lock import LOCK_FILE, locked_folder
from fusili_mir.model.bundle import Bundle, as_bundle
from fusili_mir.progress import counted, progress_bar
from fusili_mir.whole_files import is_part, write_bytes, write_whole

__all__ = ["build_index"]

_Rows: TypeAlias = tuple[Float16, Int64]
"""The vectors of a piece, and the spans of their windows."""


def build_index(
    paths: Iterable[str | os.PathLike[str]] | str | os.PathLike[str],
    out: str | Path,
    *,
    jobs: int = 1,
    dask: str | None = None,
    model: str | Path | Bundle | None = None,
    device: str = "auto",
    remove_missing: bool = False,
    repair: bool = False,
    server: str | None = None,
    progress: bool = False,
) -> IndexReport:
    """Index scores and recordings, or add them to an index.

    Parameters
    ----------
    paths : path or iterable of paths
        Scores, PDFs, images, recordings, and folders of them. Files that are in the index and have not changed
        since are left as they are, also under another name; there may be none to `repair` or `remove_missing`.
    out : str or Path
        Folder of the index, new or old.
    jobs : int
        Number of processes that encode files.
    dask : str, optional
        Address of a Dask scheduler whose workers encode files instead; they must see the same files.
    model : str, Path or Bundle, optional
        Model to encode with; by default the bundle that is installed with the package.
    device : str
        See `fusili_mir.sessions.graph_session.open_session`.
    remove_missing : bool
        Whether to remove from the index what is no longer on the disk.
    repair : bool
        Whether to check the file of every piece, and to encode those again that are damaged.
    server : str, optional
        Address of a Milvus server that shall hold the vectors; by default they are in the folder. The token is
        read from the environment variable MILVUS_TOKEN.
    progress : bool
        Whether to show progress on standard error.

    Returns
    -------
    IndexReport
        The index, and what was done with each file. A file that cannot be used is a line in it.
    """
    folder = Path(out)
    bundle = as_bundle(model)
    import_faiss()
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    files = list_files(given)
    if not files and not (repair or remove_missing):
        where = ", ".join(str(path) for path in given[:3]) or "no paths"
        raise InputError(
            f"{where}: no scores or recordings; expected files such as .mxl, .pdf, .jpg or .flac"
        )
    is_index = (folder / MANIFEST).exists()
    if folder.is_dir() and not is_index and any(_is_other(file) for file in folder.iterdir()):
        raise OutputError(f"{folder}: a folder that is not an index; choose a new name")
    with locked_folder(folder):
        manifest = _manifest_of(folder, bundle, server)
        return _Building(folder, manifest, bundle, device).run(
            files, jobs, dask, remove_missing, repair, progress
        )


def _is_other(file: Path) -> bool:
    """Return whether a file is none that a run leaves that was killed before its first file was whole."""
    return file.name != LOCK_FILE and not is_part(file)


def _manifest_of(folder: Path, bundle: Bundle, server: str | None) -> IndexManifest:
    """Read the manifest of an index, or write that of a new one."""
    if not (folder / MANIFEST).exists():
        manifest = IndexManifest(
            INDEX_FORMAT,
            secrets.token_hex(8),
            f"fusili-mir {__version__}",
            bundle_fingerprint(bundle),
            bundle.manifest.name,
            bundle.manifest.embedding_dim,
            server=server,
        )
        write_manifest(folder, manifest)
        return manifest
    manifest = read_index_manifest(folder)
    if server is not None and server != manifest.server:
        manifest = replace(manifest, server=server)
    return manifest


@dataclass(frozen=True)
class _Building:
    """One run."""

    folder: Path
    manifest: IndexManifest
    bundle: Bundle
    device: str

    def run(
        self,
        files: Sequence[Path],
        jobs: int,
        dask: str | None,
        remove_missing: bool,
        repair: bool,
        progress: bool,
    ) -> IndexReport:
        known = {piece.id: piece for piece in read_pieces(self.folder, self.manifest.generation)}
        Index(self.folder, self.manifest).check_bundle(self.bundle)
        if repair:
            checked = progress_bar([*known.values()], "checking", shown=progress)
            for each in [each for each in checked if not self._is_whole(each)]:
                del known[each.id]
                files = [*files, Path(each.path)] if Path(each.path) not in files else files
        missing = [each for each in known.values() if is_gone(Path(each.path))]
        fresh: dict[str, IndexedPiece] = {}
        report: list[IndexedFile] = []
        todo: list[EncodingTask] = []

        def add(path: Path, piece: IndexedPiece, seconds: float = 0.0) -> None:
            fresh[piece.id] = piece
            status = _status(piece, known, missing)
            report.append(IndexedFile(str(path), status, piece.kind, piece.n_windows, seconds))

        for path in files:
            piece = self._kept(path, known) or self._moved(path, missing)
            if piece is None:
                todo.append(EncodingTask(path, self.bundle.folder, self.device))
            else:
                add(path, piece)
        with (
            closing(run_everywhere(encode_task, todo, jobs, dask)) as results,
            counted("indexing", len(todo), shown=progress) as count,
        ):
            for task, done in self._written(results):
                if done.piece is None:
                    kind = kind_of(task.path)
                    report.append(IndexedFile(str(task.path), "failed", kind, 0, done.seconds, done.message))
                else:
                    add(task.path, done.piece, done.seconds)
                count.advance()
        place = {str(path): number for number, path in enumerate(files)}
        report.sort(key=lambda file: place[file.path])  # whichever process was done first
        contents = {(piece.kind, piece.sha256) for piece in fresh.values() if piece.id not in known}
        for each in missing:
            if (each.kind, each.sha256) in contents:  # under another name
                del known[each.id]
            elif remove_missing:
                del known[each.id]
                report.append(IndexedFile(each.path, "removed", each.kind))
            else:
                forget = option("--remove-missing", "remove_missing=True")
                message = f"{each.path}: no longer there; {forget} removes it from the index"
                report.append(IndexedFile(each.path, "missing", each.kind, each.n_windows, 0.0, message))
        changed = repair or any(file.status in CHANGES for file in report)
        manifest = self.manifest
        if changed or manifest.generation == 0 or manifest != read_index_manifest(self.folder):
            manifest = self._write_generation({**known, **fresh}, {} if repair else self._old_rows())
        self._remove_before(manifest)
        write_report(self.folder / "report.csv", report)
        return IndexReport(open_index(self.folder), report)

    def _is_whole(self, piece: IndexedPiece) -> bool:
        try:
            load_piece(piece_file(self.folder, piece.id))
        except InputError:
            return False
        return True

    def _kept(self, path: Path, known: dict[str, IndexedPiece]) -> IndexedPiece | None:
        """Return the piece of a file that need not be encoded: indexed, or encoded by a run that was killed."""
        name = piece_id(path)
        piece = known.get(name)
        file = piece_file(self.folder, name)
        if not file.exists():
            return None
        try:
            state = file_state(path)
            if piece is None:
                piece = IndexedPiece(**load_piece(file)[1]["piece"])
            if not state.is_as_indexed(piece):
                return None
        except (InputError, KeyError, TypeError):
            return None
        return piece

    def _moved(self, path: Path, missing: Sequence[IndexedPiece]) -> IndexedPiece | None:
        """Give the embeddings of a file that is missing to the one that has its content, if this is it."""
        try:
            state = file_state(path)
            likely = [each for each in missing if each.size == state.size]
            sha256 = sha256_of(path) if likely else ""
            old = next(each for each in likely if each.sha256 == sha256 and each.kind == kind_of(path))
            encoded, _ = load_piece(piece_file(self.folder, old.id))
        except (InputError, StopIteration):
            return None
        piece = replace(old, id=piece_id(path), path=str(path), mtime_ns=state.mtime_ns)
        write_bytes(piece_file(self.folder, piece.id), encoded.to_bytes({"piece": asdict(piece)}))
        return piece

    def _written(
        self, results: Iterable[tuple[EncodingTask, EncodedFile | BaseException]]
    ) -> Iterator[tuple[EncodingTask, EncodedFile]]:
        """Write each file as it comes."""
        for task, result in results:
            if isinstance(result, BaseException):
                reason = f"{task.path}: the process that encoded it died ({type(result).__name__})"
                result = EncodedFile(None, b"", 0.0, reason)
            if result.piece is not None:
                write_bytes(piece_file(self.folder, result.piece.id), result.content)
            yield task, result

    def _write_generation(
        self, pieces: dict[str, IndexedPiece], old: dict[IndexedPiece, _Rows]
    ) -> IndexManifest:
        """Write the tables of all pieces, of which some are known, and remove the generation before."""
        before, number = self.manifest, self.manifest.generation + 1
        listed = sorted(pieces.values(), key=lambda piece: (KINDS.index(piece.kind), piece.path))
        windows, vectors = [np.empty(0, WINDOW_DTYPE)], [np.empty((0, before.embedding_dim), np.float16)]
        for place, piece in enumerate(listed):
            rows, spans = old.get(piece) or self._rows_of(piece)
            table = np.empty(len(rows), WINDOW_DTYPE)
            table["piece"], table["first"], table["stop"] = place, spans[:, 0], spans[:, 1]
            windows.append(table)
            vectors.append(rows)
        every, where = np.concatenate(vectors), np.concatenate(windows)
        manifest = replace(
            before,
            made_by=f"fusili-mir {__version__}",
            generation=number,
            n_pieces=len(listed),
            n_windows=len(where),
        )
        write_json(self.folder / f"pieces-{number}.json", [asdict(piece) for piece in listed])
        write_whole(self.folder / f"windows-{number}.npy", lambda file: np.save(file, where))
        write_whole(self.folder / f"vectors-{number}.npy", lambda file: np.save(file, every))
        kinds = np.array([KINDS.index(piece.kind) for piece in listed], np.int64)[where["piece"]]
        for code, kind in enumerate(KINDS):
            chosen = every[kinds == code].astype(np.float32)
            if manifest.server is None:
                save_faiss(self.folder / f"{kind}-{number}.faiss", chosen)
            elif len(chosen):
                from fusili_mir.collection.milvus_vectors import save_to_milvus

                save_to_milvus(manifest.server, manifest.id, kind, number, chosen)
        write_manifest(self.folder, manifest)
        return manifest

    def _old_rows(self) -> dict[IndexedPiece, _Rows]:
        """Return vectors and spans of the pieces of the last generation, as far as they can be read."""
        try:
            index = Index(self.folder, self.manifest)
            vectors, windows = index.vectors, index.windows
        except InputError:
            return {}
        last = np.cumsum([piece.n_windows for piece in index.pieces])
        found = {}
        for piece, stop in zip(index.pieces, last.tolist(), strict=True):
            rows = slice(stop - piece.n_windows, stop)
            spans = np.stack([windows["first"][rows], windows["stop"][rows]], axis=1)
            found[piece] = (np.asarray(vectors[rows]), spans)
        return found

    def _rows_of(self, piece: IndexedPiece) -> _Rows:
        encoded, _ = load_piece(piece_file(self.folder, piece.id))
        return encoded.windows, encoded.spans

    def _remove_before(self, manifest: IndexManifest) -> None:
        """Remove what nothing names any more: by this run, or by one that was killed."""
        kept = {piece.id for piece in read_pieces(self.folder, manifest.generation)}
        tables = {f"{name}-{manifest.generation}" for name in ("pieces", "windows", "vectors", *KINDS)}
        for path in self.folder.iterdir():
            is_table = path.suffix in (".npy", ".json", ".faiss") and path.name != MANIFEST
            if is_part(path) or (is_table and path.stem not in tables):
                path.unlink(missing_ok=True)
        for path in (self.folder / "pieces").rglob("*"):
            if path.is_file() and path.stem not in kept:
                path.unlink(missing_ok=True)
        before = self.manifest
        if before.server is not None and before.generation and before.generation != manifest.generation:
            from fusili_mir.collection.milvus_vectors import drop_from_milvus

            drop_from_milvus(before.server, before.id, before.generation)


def _status(
    piece: IndexedPiece, known: Mapping[str, IndexedPiece], missing: Iterable[IndexedPiece]
) -> Status:
    """Say what a piece is to the index as it was."""
    if piece.id in known:
        return "unchanged" if known[piece.id] == piece else "changed"
    is_moved = any((piece.kind, piece.sha256) == (each.kind, each.sha256) for each in missing)
    return "moved" if is_moved else "added"
