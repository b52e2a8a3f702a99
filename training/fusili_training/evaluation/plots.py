"""Plots: recall curves, histograms of onset errors, and the similarity matrix of a segment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fusili_mir.alignment.match_onsets import TOLERANCES_MS
from fusili_mir.arrays import Float64
from fusili_mir.errors import OutputError
from fusili_training.evaluation.compared_pairs import ComparedPair
from fusili_training.evaluation.global_retrieval import Ranks
from fusili_training.evaluation.judging_grid import JudgingGrid
from fusili_training.placed_notes import sounding_patches

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_errors", "plot_recall", "plot_similarity", "save_plot"]

_MOST_K = 50
_COLOURS = {"I2A": "#b3541e", "A2I": "#1f5f8b"}
_LINES = {"pooled": "-", "summed": ":", "sinkhorn": "--", "reranked": "-."}


def plot_recall(ranks: Mapping[tuple[str, str], Ranks], title: str) -> Figure:
    """Draw recall at k against k, one curve per ranking and direction.

    Parameters
    ----------
    ranks : mapping of (ranking, direction) to Ranks
    title : str

    Returns
    -------
    Figure
    """
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    n = len(next(iter(ranks.values())).better)
    k = np.arange(1, min(_MOST_K, n) + 1)
    for (ranking, direction), found in ranks.items():
        recall = [found.recall(int(each)).mean() for each in k]
        label = f"{direction} by {ranking}"
        axes.plot(k, recall, color=_COLOURS[direction], linestyle=_LINES[ranking], label=label)
    axes.plot(k, k / n, color="0.6", linewidth=1, label="chance")
    axes.set(xlabel="k", ylabel="recall at k", ylim=(0, 1.02), title=f"{title}, {n} candidates")
    axes.set_xlim(1, max(2, int(k[-1])))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    return figure


def plot_errors(errors: Mapping[str, Float64], title: str) -> Figure:
    """Draw the distribution of onset errors, with the usual tolerances as lines.

    Parameters
    ----------
    errors : mapping of str to np.ndarray
        Absolute errors in seconds, by variant; infinite for notes that were not found.
    title : str

    Returns
    -------
    Figure
        One row per variant; the last bar also counts all larger errors.
    """
    figure = Figure(figsize=(6, 2.6 * len(errors) + 0.4), layout="constrained")
    figure.suptitle(title)
    edges_ms = np.geomspace(1, 4000, 61)
    rows = figure.subplots(len(errors), 1, squeeze=False, sharex=True)
    for axes, (variant, found) in zip(rows[:, 0], errors.items(), strict=True):
        shown_ms = np.clip(1000 * found, edges_ms[0], edges_ms[-1] * 0.999)
        axes.hist(shown_ms, bins=list(edges_ms), color="#1f5f8b")
        median_ms = 1000 * float(np.median(found))
        axes.axvline(
            np.clip(median_ms, edges_ms[0], edges_ms[-1]), color="#b3541e", label=f"median {median_ms:.3g} ms"
        )
        for tolerance in TOLERANCES_MS:
            axes.axvline(tolerance, color="0.6", linewidth=0.7, linestyle=":")
        axes.set(xscale="log", ylabel="notes", title=variant)
        axes.set_xticks([1, 10, *TOLERANCES_MS, 4000], ["1", "10", *map(str, TOLERANCES_MS), "4000+"])
        axes.minorticks_off()
        axes.set_xlim(edges_ms[0], edges_ms[-1])
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.tick_params(axis="x", labelsize=8)
        axes.legend(frameon=False, loc="upper right")
    rows[-1, 0].set_xlabel("absolute onset error (ms)")
    return figure


def plot_similarity(pair: ComparedPair, grid: JudgingGrid) -> Figure:
    """Draw the right patches of a segment beside the model's similarities, patches upwards, frames to the right.

    Parameters
    ----------
    pair : ComparedPair
    grid : JudgingGrid
        Grid on which the pair is judged.

    Returns
    -------
    Figure
        The truth on the left; on the right the similarities, with the most similar patch of each frame as a dot.
    """
    right = sounding_patches(pair.truth, grid.patches, grid.frames)
    n_frames = max(1, right.shape[1])
    similarity = grid.similarity(pair.similarity)[:, :n_frames]
    hits = right[similarity.argmax(axis=0)[: right.shape[1]], np.arange(right.shape[1])]
    # Patches are ordered column by column: as the music goes on, it moves upwards.
    order = np.arange(len(grid.patches)).reshape(grid.patches.rows, grid.patches.cols).T.ravel()
    figure = Figure(figsize=(10, 4), layout="constrained")
    truth_axes, model_axes = figure.subplots(1, 2, sharey=True)
    end_sec = n_frames * grid.frames.frame_sec
    extent = (0.0, end_sec, -0.5, len(order) - 0.5)
    truth_axes.imshow(
        right[order], origin="lower", aspect="auto", extent=extent, cmap="Greys", interpolation="nearest"
    )
    shown = model_axes.imshow(
        similarity[order],
        origin="lower",
        aspect="auto",
        extent=extent,
        cmap="viridis",
        interpolation="nearest",
    )
    chosen = np.argsort(order)[similarity.argmax(axis=0)]
    seconds = grid.frames.centre(np.arange(n_frames)) - grid.frames.start_sec
    colours = np.where(np.resize(hits, n_frames) if len(hits) else False, "white", "#ff5a36")
    model_axes.scatter(seconds, chosen, s=5, c=colours.tolist(), linewidths=0)
    truth_axes.set(title="truth", ylabel=_patch_label(grid))
    model_axes.set(title=f"similarity; dots: most similar patch, {hits.mean() if len(hits) else 0:.0%} right")
    figure.colorbar(shown, ax=model_axes, label="cosine")
    figure.suptitle(pair.key)
    for axes in (truth_axes, model_axes):
        axes.set_xlabel("seconds")
        _rule_columns(axes, grid)
    return figure


def _patch_label(grid: JudgingGrid) -> str:
    if grid.patches.rows == 1:
        return "column of the segment"
    return f"patch, column by column ({grid.patches.rows} rows each)"


def _rule_columns(axes: Axes, grid: JudgingGrid) -> None:
    """Draw a line where a column begins, if columns have several patches."""
    if grid.patches.rows > 1:
        for column in range(1, grid.patches.cols):
            axes.axhline(column * grid.patches.rows - 0.5, color="0.5", linewidth=0.5)


def save_plot(figure: Figure, out: Path) -> None:
    """Write a plot as PNG and as SVG: `out` with each of these suffixes."""
    FigureCanvasAgg(figure)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        for ending in ("png", "svg"):
            figure.savefig(out.with_name(f"{out.name}.{ending}"), dpi=150)
    except OSError as error:
        raise OutputError(f"{out}: cannot be written ({error.strerror or error})") from error
