"""One model on one dataset: runs the tasks asked for, and returns a report and plots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from fusili_mir.errors import InputError, MissingExtraError
from fusili_mir.model.encoder import Encoder
from fusili_training.evaluation.chosen_pairs import ChosenPairs
from fusili_training.evaluation.compared_pairs import MatrixGrid, compare_by_bundle, compare_by_matrices
from fusili_training.evaluation.judging_grid import JudgingGrid
from fusili_training.evaluation.local_task import OWN_GRID, LocalResult, grids_of, measure_local
from fusili_training.evaluation.matching_rules import EXACT, POINT, MatchingRule
from fusili_training.evaluation.matrices import MatrixFiles
from fusili_training.evaluation.msmd import MsmdTree
from fusili_training.evaluation.onset_task import OnsetResult, measure_piece_onsets, measure_segment_onsets
from fusili_training.evaluation.point_task import measure_point, measure_point_matrices
from fusili_training.evaluation.report import Measurement, Report
from fusili_training.evaluation.retrieval_task import Ranking, measure_retrieval, needs_torch, paper_ranking
from fusili_training.evaluation.sinkhorn_ranking import require_torch
from fusili_training.evaluation.sources import PairSource, open_source
from fusili_training.evaluation.whole_pieces import MsmdPieces, ScoredPieces, is_score_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "TASKS",
    "Evaluation",
    "MatrixRules",
    "Task",
    "TaskOptions",
    "evaluate_bundle",
    "evaluate_matrices",
]

Task = Literal["local", "retrieval", "point", "onsets"]
TASKS: tuple[Task, ...] = get_args(Task)

_N_EXAMPLES = 3


@dataclass(frozen=True)
class TaskOptions:
    """What is measured, and how.

    Attributes
    ----------
    tasks : sequence of Task
        Tasks to run; empty: all that the data allow.
    splits : sequence of str
        Splits to use; empty: "test" for shards, all pieces otherwise.
    split_file : Path, optional
        Split file of MSMD.
    rankings : sequence of Ranking
        Rankings of retrieval; empty: the paper's for that model.
    one_per_piece : bool
        Whether to retrieve among the first segments of pieces only.
    n_segments : int, optional
        Number of segments to retrieve among, see `ChosenPairs`; None: all.
    n_shortlist : int
        Number of candidates that are re-ranked.
    plots : bool
        Whether to draw plots.
    progress : bool
        Whether to show bars on a terminal.
    """

    tasks: Sequence[Task] = ()
    splits: Sequence[str] = ()
    split_file: Path | None = None
    rankings: Sequence[Ranking] = ()
    one_per_piece: bool = False
    n_segments: int | None = None
    n_shortlist: int = 20
    plots: bool = False
    progress: bool = False

    def require_packages(self) -> None:
        """Raise `MissingExtraError` if a package that these options need is missing: now, not after hours."""
        if needs_torch(self.rankings) and (not self.tasks or "retrieval" in self.tasks):
            require_torch()
        if self.plots:
            try:
                import matplotlib  # noqa: F401
            except ImportError as error:
                raise MissingExtraError(
                    "plots need matplotlib; install it with `pip install 'fusili-mir[evaluate]'`"
                ) from error


@dataclass(frozen=True)
class MatrixRules:
    """When an answer from a matrix is right: in local alignment, and in both directions of point-and-retrieve."""

    local: MatchingRule = EXACT
    point_a2i: MatchingRule = POINT
    point_i2a: MatchingRule = EXACT


@dataclass(frozen=True)
class Evaluation:
    """A report, and its plots by name."""

    report: Report
    plots: dict[str, Figure]


@dataclass(frozen=True)
class _Part:
    """The results of one task."""

    measurements: tuple[Measurement, ...]
    n_pairs: int
    plots: dict[str, Figure] = field(default_factory=dict)


def evaluate_bundle(encoder: Encoder, data: str | Path, options: TaskOptions) -> Evaluation:
    """Evaluate a bundle on a dataset.

    Parameters
    ----------
    encoder : Encoder
    data : str or Path
        Dataset, see `open_source`; for onsets also a table of scores, see
        `fusili_training.evaluation.whole_pieces`.
    options : TaskOptions

    Returns
    -------
    Evaluation
    """
    options.require_packages()
    name = encoder.bundle.manifest.name
    if is_score_table(Path(data)):
        if any(task != "onsets" for task in options.tasks):
            raise InputError(f"{data}: a table of scores is for the task onsets only")
        scored = ScoredPieces(Path(data))
        part = _onset_part(measure_piece_onsets(encoder, scored, options.progress), scored.name, options)
        report = Report(name, scored.name, len(scored.pieces), part.n_pairs, {}, part.measurements)
        return Evaluation(report, part.plots)
    measure: dict[Task, Callable[[Encoder, PairSource, TaskOptions], _Part]] = {
        "local": _local,
        "retrieval": _retrieval,
        "point": _point,
        "onsets": _onsets,
    }

    def open_again() -> PairSource:
        return open_source(data, encoder.bundle.image, options.splits, options.split_file)

    tasks = options.tasks or _possible_tasks(open_again(), encoder)
    return _run(name, open_again, {task: partial(measure[task], encoder) for task in tasks}, options)


def evaluate_matrices(
    files: MatrixFiles, grid: MatrixGrid, rules: MatrixRules, data: str | Path, options: TaskOptions
) -> Evaluation:
    """Evaluate the similarity matrices of any other system.

    Parameters
    ----------
    files : MatrixFiles
        Matrices named after the pairs of the dataset.
    grid : MatrixGrid
    rules : MatrixRules
    data : str or Path
        Dataset, see `open_source`; images are the paper's squares, unless the shards are strips.
    options : TaskOptions
        Options; the tasks are "local" (the default) and "point".

    Returns
    -------
    Evaluation
    """
    tasks = options.tasks or ("local",)
    wrong = [task for task in tasks if task not in ("local", "point")]
    if wrong:
        raise InputError(f"matrices are for the tasks local and point, not {wrong[0]}")
    replace(options, tasks=tasks).require_packages()

    def local(source: PairSource, options: TaskOptions) -> _Part:
        compare = partial(compare_by_matrices, files, grid)
        grids = {OWN_GRID: JudgingGrid.own}
        n_examples = _N_EXAMPLES if options.plots else 0
        result = measure_local(source, compare, grids, rules.local, n_examples, options.progress)
        return _local_part(result, JudgingGrid.own)

    def point(source: PairSource, options: TaskOptions) -> _Part:
        result = measure_point_matrices(
            files, grid, source, rules.point_a2i, rules.point_i2a, options.progress
        )
        return _Part(result.measurements, result.n_pairs)

    measure: dict[Task, Callable[[PairSource, TaskOptions], _Part]] = {"local": local, "point": point}

    def open_again() -> PairSource:
        return open_source(data, None, options.splits, options.split_file)

    return _run(f"{len(files)} matrices", open_again, {task: measure[task] for task in tasks}, options)


def _run(
    name: str,
    open_again: Callable[[], PairSource],
    tasks: dict[Task, Callable[[PairSource, TaskOptions], _Part]],
    options: TaskOptions,
) -> Evaluation:
    parts: list[_Part] = []
    dropped: dict[str, int] = {}
    for task, measure in tasks.items():
        source = judged = open_again()
        if task != "retrieval" and not source.has_truth:
            raise InputError(
                f"{source.name}: its notes are not known, but the task {task} needs them; use the task retrieval"
            )
        if task == "retrieval" and options.n_segments is not None:
            judged = ChosenPairs(source, options.n_segments)
        parts.append(measure(judged, options))
        dropped |= {reason: max(number, dropped.get(reason, 0)) for reason, number in judged.dropped.items()}
    report = Report(
        name,
        source.name,
        len(source.pieces),
        max(part.n_pairs for part in parts),
        dropped,
        tuple(each for part in parts for each in part.measurements),
    )
    return Evaluation(report, {title: plot for part in parts for title, plot in part.plots.items()})


def _possible_tasks(source: PairSource, encoder: Encoder) -> tuple[Task, ...]:
    if not source.has_truth:
        return ("retrieval",)
    several_lines = encoder.bundle.image.segment == "square" and not isinstance(source, MsmdTree)
    return tuple(task for task in TASKS if not (task == "onsets" and several_lines))


def _local(encoder: Encoder, source: PairSource, options: TaskOptions) -> _Part:
    compare = partial(compare_by_bundle, encoder)
    n_examples = _N_EXAMPLES if options.plots else 0
    grids = grids_of(encoder.bundle.image)
    result = measure_local(source, compare, grids, EXACT, n_examples, options.progress)
    return _local_part(result, grids.get(OWN_GRID, JudgingGrid.paper))


def _local_part(result: LocalResult, grid_of: Callable[..., JudgingGrid]) -> _Part:
    plots: dict[str, Figure] = {}
    for pair in result.examples:
        from fusili_training.evaluation.plots import plot_similarity

        plots[f"similarity-{pair.key}"] = plot_similarity(pair, grid_of(pair.patch_grid, pair.frame_grid))
    return _Part(result.measurements, result.n_pairs, plots)


def _retrieval(encoder: Encoder, source: PairSource, options: TaskOptions) -> _Part:
    rankings = options.rankings or [paper_ranking(encoder.bundle)]
    result = measure_retrieval(
        encoder, source, rankings, options.one_per_piece, options.n_shortlist, options.progress
    )
    plots: dict[str, Figure] = {}
    if options.plots:
        from fusili_training.evaluation.plots import plot_recall

        plots["recall"] = plot_recall(result.ranks, source.name)
    return _Part(result.measurements, result.n_pairs, plots)


def _point(encoder: Encoder, source: PairSource, options: TaskOptions) -> _Part:
    result = measure_point(encoder, source, grids_of(encoder.bundle.image), options.progress)
    return _Part(result.measurements, result.n_pairs)


def _onsets(encoder: Encoder, source: PairSource, options: TaskOptions) -> _Part:
    if isinstance(source, MsmdTree):
        result = measure_piece_onsets(encoder, MsmdPieces(source), options.progress)
    else:
        result = measure_segment_onsets(encoder, source, options.progress)
    return _onset_part(result, source.name, options)


def _onset_part(result: OnsetResult, title: str, options: TaskOptions) -> _Part:
    plots: dict[str, Figure] = {}
    if options.plots:
        from fusili_training.evaluation.plots import plot_errors

        plots["onset-errors"] = plot_errors(result.errors, title)
    return _Part(result.measurements, result.n_pairs, plots)
