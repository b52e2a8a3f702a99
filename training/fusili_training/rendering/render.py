"""Rendering a corpus into shards of training pairs: on all cores or a cluster, and resumable.

The unit of work is a shard, which holds some complete pieces; the corpus and the recipe alone decide which. A
shard whose JSON file exists is not rendered again, so a run that was killed continues where it stopped. At the
end, the manifest is compiled from these files. ``render.json`` records the settings of the folder; a run with
other settings is refused.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import joblib
from joblib.parallel import LokyBackend

from fusili_mir import __version__
from fusili_mir.boundary import reason, unexpected
from fusili_mir.dataclass_tables import read_table
from fusili_mir.errors import FusiliError, InputError, MissingExtraError, OutputError
from fusili_mir.folder_lock import LOCK_FILE, locked_folder
from fusili_mir.progress import counted, stage
from fusili_mir.staging import interrupts_held
from fusili_mir.whole_files import is_part
from fusili_mir.worker_process import begin_worker, end_with_parent, withheld_from_workers
from fusili_training.rendering.corpus import CorpusPiece
from fusili_training.rendering.pair_segments import PieceReport, Sample, render_piece
from fusili_training.rendering.render_recipe import RenderRecipe
from fusili_training.rendering.shards import shard_name, sidecar_of, write_json, write_shard
from fusili_training.rendering.sound_choice import bake_banks
from fusili_training.sound.played_clip import BANKS, bank_name
from fusili_training.sound.soundbank import save_soundbank
from fusili_training.sound.soundfonts import Soundfont, choose_soundfont, find_soundfont
from fusili_training.splits import SPLITS, stable_fraction

__all__ = ["FORMAT", "PieceRenderer", "render_corpus", "save_manifest_so_far"]

FORMAT = 1
_SETTINGS, _MANIFEST = "render.json", "manifest.json"
_LIBRARIES = ("verovio", "partitura", "numpy", "pillow", "soundfile", "skia-python", "resvg_py")

PieceRenderer: TypeAlias = Callable[[CorpusPiece, RenderRecipe, PieceReport], Iterator[Sample]]
"""Yields the pairs of a piece and fills its report."""


@dataclass(frozen=True)
class _ShardPlan:
    name: str
    split: str
    pieces: tuple[CorpusPiece, ...]


def render_corpus(
    pieces: Sequence[CorpusPiece],
    out: str | Path,
    recipe: RenderRecipe,
    jobs: int = -1,
    backend: str | None = None,
    backend_options: Mapping[str, Any] | None = None,
    progress: bool = False,
    render: PieceRenderer = render_piece,
) -> dict[str, Any]:
    """Render a corpus into shards.

    Parameters
    ----------
    pieces : sequence of CorpusPiece
    out : str or Path
        A new folder, or the folder of the same run, interrupted.
    recipe : RenderRecipe
        Soundfonts that it names and that are not installed are replaced by others, unless it is strict.
    jobs : int
        Number of processes; -1: one per core (or all workers of a cluster).
    backend : str, optional
        Any backend of joblib: "loky", "dask", "ray", ...; by default the active one.
    backend_options : mapping, optional
        Options of the backend, such as ``scheduler_host`` for Dask.
    progress : bool
        Whether to show progress on standard error.
    render : PieceRenderer
        Renders one piece; it must go to other processes with pickle.

    Returns
    -------
    dict
        The content of ``manifest.json``.

    Warns
    -----
    SoundfontWarning
        For each soundfont that another one replaces; ``render.json`` and the JSON files of shards record both.
    """
    folder = Path(out).absolute()
    with _backend(backend, backend_options or {}):
        plans = _plan_shards(pieces, recipe.pieces_per_shard)
        fonts = {
            name: choose_soundfont(name, recipe.audio.strict_soundfonts) for name in recipe.audio.soundfonts
        } | {name: _solo_folder(name) for name, _, _ in recipe.audio.solo_samples}
        settings = _settings(pieces, recipe, fonts)
        _check_folder(folder)
        with locked_folder(folder):
            _claim(folder, settings)
            # Workers get the names of what is used: on a cluster, all machines then use the same.
            used = tuple(fonts[name].name for name in recipe.audio.soundfonts)
            recipe = replace(recipe, audio=replace(recipe.audio, soundfonts=used))
            return _render(plans, folder, recipe, settings, jobs, progress, render)


def _render(
    plans: Sequence[_ShardPlan],
    out: Path,
    recipe: RenderRecipe,
    settings: dict[str, Any],
    jobs: int,
    progress: bool,
    render: PieceRenderer,
) -> dict[str, Any]:
    n_pieces = sum(len(plan.pieces) for plan in plans)
    open_plans = [plan for plan in plans if not sidecar_of(out / plan.name).is_file()]
    if open_plans:
        with stage("making sound banks", shown=progress):
            for bank in bake_banks(recipe.audio):
                if recipe.audio.codec == "notes":
                    save_soundbank(bank, out / BANKS / bank_name(bank))
    n_open = sum(len(plan.pieces) for plan in open_plans)
    with counted("rendering", n_pieces, n_pieces - n_open, progress) as count:
        parallel = joblib.Parallel(n_jobs=jobs, return_as=_result_order(), batch_size=1)
        task = joblib.delayed(_render_shard)
        _start_trackers()
        done: Iterable[_ShardPlan] = ()
        try:
            with interrupts_held(), withheld_from_workers(signal.SIGINT):  # the call starts them
                done = parallel(task(plan, out, recipe, os.getpid(), render) for plan in open_plans)
            for plan in done:
                count.advance(len(plan.pieces))
        finally:
            _give_up(done)
    manifest = _manifest(settings, [_read_json(sidecar_of(out / plan.name)) for plan in plans])
    write_json(out / _MANIFEST, manifest)
    return manifest


def save_manifest_so_far(out: str | Path) -> dict[str, Any]:
    """Write the manifest of the shards that a run has finished, so that they can be read while it goes on.

    Parameters
    ----------
    out : str or Path
        Folder of a run.

    Returns
    -------
    dict
        The content of ``manifest.json``, which the run replaces at its end.
    """
    folder = Path(out)
    sidecars = [_read_json(file) for file in sorted(folder.glob("shard-*.json"))]
    manifest = _manifest(_read_json(folder / _SETTINGS), sidecars)
    write_json(folder / _MANIFEST, manifest)
    return manifest


def _solo_folder(name: str) -> Soundfont:
    """Return a folder of samples of one instrument."""
    font = find_soundfont(name)
    if not font.is_sample_folder:
        raise InputError(f"audio.solo_samples names {name}, a soundfont; expected a folder of samples")
    return font


def _plan_shards(pieces: Sequence[CorpusPiece], pieces_per_shard: int) -> list[_ShardPlan]:
    """Distribute the pieces of each split over shards, in the order of the hashes of their ids."""
    plans = []
    for split in SPLITS:
        mixed = sorted((p for p in pieces if p.split == split), key=lambda piece: stable_fraction(piece.id))
        for number, start in enumerate(range(0, len(mixed), pieces_per_shard)):
            chosen = tuple(mixed[start : start + pieces_per_shard])
            plans.append(_ShardPlan(shard_name(split, number), split, chosen))
    return plans


def _settings(
    pieces: Sequence[CorpusPiece], recipe: RenderRecipe, fonts: Mapping[str, Soundfont]
) -> dict[str, Any]:
    """Return everything that the output depends on."""
    listing = [
        [p.id, p.licence, p.split, p.performance is not None] for p in sorted(pieces, key=lambda p: p.id)
    ]
    return {
        "format": FORMAT,
        "made_by": f"fusili-mir {__version__}",
        "recipe": json.loads(json.dumps(recipe.to_dict())),
        "n_pieces": len(pieces),
        "corpus_sha256": hashlib.sha256(json.dumps(listing).encode()).hexdigest(),
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "soundfonts": {
            name: {"used": font.name, "licence": font.licence, "bytes": font.path.stat().st_size}
            for name, font in fonts.items()
        },
    }


def _version(library: str) -> str | None:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return None


def _check_folder(out: Path) -> None:
    """Refuse a folder with files of others, but for what a run leaves that was killed at its very beginning."""
    try:
        if out.exists() and not out.is_dir():
            raise OutputError(f"{out}: is a file; expected a folder, or a new name")
        is_new = out.is_dir() and not (out / _SETTINGS).is_file()
        if is_new and any(file.name != LOCK_FILE and not is_part(file) for file in out.iterdir()):
            raise OutputError(f"{out}: the folder holds other files; choose a new folder")
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{out}: cannot be written ({error.strerror})") from error


def _claim(out: Path, settings: dict[str, Any]) -> None:
    """Claim a folder that is new or has the same settings, and delete what a run left that was killed."""
    for file in out.iterdir():
        if is_part(file):
            file.unlink(missing_ok=True)
    found = out / _SETTINGS
    if not found.is_file():
        write_json(found, settings)
        return
    difference = _first_difference(_with_new_settings(_read_json(found)), settings)
    if difference is not None:
        raise OutputError(
            f"{out}: was rendered with other settings ({difference}); choose a new folder, or use those settings"
        )


def _with_new_settings(found: dict[str, Any]) -> dict[str, Any]:
    """Add settings that recipes have had since, with their defaults: those that leave everything as it was."""
    try:
        recipe = read_table(RenderRecipe, found.get("recipe"))
    except InputError:  # a recipe of another version, which differs anyway
        return found
    return found | {"recipe": json.loads(json.dumps(recipe.to_dict()))}


def _first_difference(found: Any, wanted: Any, where: str = "") -> str | None:
    if not (isinstance(found, dict) and isinstance(wanted, dict)):
        return None if found == wanted else f"{where} was {found!r}, now it is {wanted!r}"
    for key in sorted(found.keys() | wanted.keys()):
        difference = _first_difference(found.get(key), wanted.get(key), f"{where}.{key}".lstrip("."))
        if difference is not None:
            return difference
    return None


def _backend(backend: str | None, options: Mapping[str, Any]) -> AbstractContextManager[Any]:
    if backend is None:
        active, _ = joblib.parallel.get_active_backend()
        if not isinstance(active, LokyBackend):
            return nullcontext()
        backend = "loky"
    if backend == "loky":
        options = {"initializer": begin_worker, "initargs": (os.getpid(),), **options}
    if backend == "ray":
        try:
            from ray.util.joblib import register_ray  # type: ignore[import-not-found]
        except ImportError as error:
            raise InputError(
                "the backend ray needs the package ray; install it with `pip install ray`"
            ) from error
        register_ray()
    try:
        config: AbstractContextManager[Any] = joblib.parallel_config(backend=backend, **options)
    except (ValueError, TypeError, OSError) as error:
        raise InputError(f"the backend {backend!r} cannot be used: {' '.join(str(error).split())}") from error
    return config


def _give_up(results: Iterable[Any]) -> None:
    """End what is still at work on results that nobody waits for; joblib would advise against that."""
    if isinstance(results, Generator):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            results.close()


def _start_trackers() -> None:
    """Start the processes that keep account of semaphores: whoever starts them lets signals through again."""
    if os.name == "posix":
        from multiprocessing import resource_tracker

        from joblib.externals.loky.backend import resource_tracker as loky_tracker

        resource_tracker.ensure_running()
        loky_tracker.ensure_running()


def _result_order() -> str:
    """Return how the active backend can return results: as they become ready, or else all at the end."""
    active, _ = joblib.parallel.get_active_backend()
    return "generator_unordered" if active.supports_return_generator else "list"


def _render_shard(
    plan: _ShardPlan, out: Path, recipe: RenderRecipe, parent: int, render: PieceRenderer
) -> _ShardPlan:
    """Write one shard and its JSON file; if this is a worker of `parent`, it does not outlive it."""
    end_with_parent(parent)
    reports: list[PieceReport] = []
    written = write_shard(out / plan.name, _samples(plan.pieces, recipe, reports, render))
    content = {
        "shard": plan.name,
        "split": plan.split,
        "soundfonts": list(recipe.audio.soundfonts),
        "bytes": written["bytes"],
        "sha256": written["sha256"],
        "pieces": [report.to_json() for report in reports],
        "samples": written["samples"],
    }
    write_json(sidecar_of(out / plan.name), content)
    return plan


def _samples(
    pieces: Iterable[CorpusPiece], recipe: RenderRecipe, reports: list[PieceReport], render: PieceRenderer
) -> Iterator[Sample]:
    """Yield the pairs of some pieces; a piece that fails half-way yields none."""
    for piece in pieces:
        report = PieceReport(piece.id, piece.licence)
        try:
            samples = list(render(piece, recipe, report))
        except (OutputError, MissingExtraError):
            raise
        except Exception as error:  # noqa: BLE001 - one broken score must not stop the corpus
            samples = []
            found = str(error) if isinstance(error, FusiliError) else unexpected(error)
            report = PieceReport(piece.id, piece.licence, error=" ".join(found.split()))
        reports.append(report)
        yield from samples


def _manifest(settings: dict[str, Any], sidecars: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Compile the manifest."""
    reports = [(sidecar["split"], report) for sidecar in sidecars for report in sidecar["pieces"]]
    dropped: Counter[str] = Counter()
    licences: Counter[str] = Counter()
    for _, report in reports:
        dropped.update(report["dropped"])
        licences[report["licence"]] += report["segments"] + report["mutants"]
    return {
        **settings,
        "pieces": len(reports),
        "segments": sum(report["segments"] for _, report in reports),
        "mutants": sum(report["mutants"] for _, report in reports),
        "dropped": dict(sorted(dropped.items())),
        "licences": dict(sorted(licences.items())),
        "broken": [
            {"piece": report["id"], "error": report["error"]} for _, report in reports if report["error"]
        ],
        "splits": {
            split: {
                "pieces": sum(1 for own, _ in reports if own == split),
                "segments": sum(report["segments"] for own, report in reports if own == split),
                "mutants": sum(report["mutants"] for own, report in reports if own == split),
                "shards": [
                    {"name": sidecar["shard"], "bytes": sidecar["bytes"], "sha256": sidecar["sha256"]}
                    for sidecar in sidecars
                    if sidecar["split"] == split
                ],
            }
            for split in SPLITS
        },
    }


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: cannot be read ({reason(error)}); delete this file and its shard, then render again"
        ) from error
    return content
