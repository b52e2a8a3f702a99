"""Matrices of other systems: how they are read, and how they are judged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from example_datasets import SAMPLE_RATE_HZ, MungObject, write_mung, write_performance
from PIL import Image

from fusili_mir.errors import InputError
from fusili_training.evaluation.compared_pairs import MatrixGrid
from fusili_training.evaluation.evaluating import MatrixRules, TaskOptions, evaluate_matrices
from fusili_training.evaluation.matching_rules import EXACT, SEQ2SEQ, SEQ2SEQ_POINT, MatchingRule
from fusili_training.evaluation.matrices import MatrixFiles, average_attention, parse_grid, read_matrix
from fusili_training.evaluation.msmd import MsmdTree
from fusili_training.evaluation.report import Report
from fusili_training.placed_notes import sounding_patches

SQUARES = MatrixGrid(7, 7, 20.0)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two systems of seven notes of 8 of the paper's frames, one per column of patches, all in the top row."""
    score = tmp_path / "msmd" / "Tune" / "scores" / "Tune_ly"
    (score / "img").mkdir(parents=True)
    Image.fromarray(np.full((600, 500), 255, np.uint8)).save(score / "img" / "01.png")
    events = np.array([[0.625 * k, 60, 0.625, 0, 0] for k in range(14)])
    objects = []
    for system in range(2):
        top = 60 + 240 * system
        objects.append(MungObject(system, "staff", (26, top, 448, 80)))
        for k in range(7):
            event = 7 * system + k
            data = (("take_onset_seconds", events[event, 0]), ("take_note_event_idx", event))
            box = (26 + 64 * k + 28, top + 36, 8, 8)
            objects.append(MungObject(100 + event, "notehead-full", box, (system,), data))
    write_mung(score / "mung" / "01.xml", objects)
    silence = np.zeros(9 * SAMPLE_RATE_HZ, np.float32)
    write_performance(tmp_path / "msmd" / "Tune" / "performances", "take", events, silence)
    return tmp_path / "msmd"


def truth_matrices(tree: Path) -> dict[str, np.ndarray]:
    """1 where a patch sounds; 256 frames."""
    found = {}
    for pair in MsmdTree(tree).read_piece("Tune"):
        right = sounding_patches(pair.truth, SQUARES.patches(pair), SQUARES.frames(256))
        found[pair.key] = np.zeros((49, 256))
        found[pair.key][:, : right.shape[1]] = right
    assert list(found) == ["Tune.0.0", "Tune.0.1"]
    return found


def judge(
    folder: Path, tree: Path, matrices: dict[str, np.ndarray], rules: MatrixRules, *tasks: str
) -> Report:
    folder.mkdir(exist_ok=True)
    for name, matrix in matrices.items():
        np.save(folder / f"{name}.npy", matrix)
    options = TaskOptions(tasks=tasks)  # type: ignore[arg-type]
    return evaluate_matrices(MatrixFiles([folder], 49), SQUARES, rules, tree, options).report


def test_a_matrix_of_the_truth_is_right_everywhere(tree: Path, tmp_path: Path) -> None:
    report = judge(tmp_path / "m", tree, truth_matrices(tree), MatrixRules(), "local")
    assert report.find("local", "top-1", "A2I") == 1
    # One patch of 49 has similarity 1: the perplexity is (e + 48) / e in every frame.
    assert report.find("local", "PPL", "A2I") == pytest.approx((np.e + 48) / np.e)
    (top1, _) = report.measurements
    assert top1.n == 2 * 7 * 8
    assert top1.baselines["chance"] == pytest.approx(1 / 49)
    assert top1.baselines["straight line"] == 1  # notes of one length, one per column


@pytest.mark.parametrize(
    ("shift", "rule", "share"),
    [
        ((1, 0), EXACT, 0),
        ((1, 0), MatchingRule(vertical=1), 1),
        ((2, 0), MatchingRule(vertical=1), 0),
        ((2, 0), SEQ2SEQ, 1),  # the notes of the first three columns are not asked for
        ((3, 0), SEQ2SEQ, 0),
        ((3, 0), SEQ2SEQ_POINT, 1),
        ((0, 1), MatchingRule(horizontal=1), 6 / 7),  # the last column is shifted out of the grid
        ((1, 1), MatchingRule(vertical=1, horizontal=1), 0),
    ],
)
def test_relaxed_rules_tolerate_as_much_as_they_say(
    tree: Path, tmp_path: Path, shift: tuple[int, int], rule: MatchingRule, share: float
) -> None:
    shifted = {}
    for key, matrix in truth_matrices(tree).items():
        cells = np.full((7, 7, 256), 0.1)
        cells[6, 3] = 0.2  # chosen where there is nothing else
        down, right = shift
        cells[down:, right:] += matrix.reshape(7, 7, 256)[: 7 - down, : 7 - right]
        shifted[key] = cells.reshape(49, 256)
    report = judge(tmp_path / "m", tree, shifted, MatrixRules(local=rule), "local")
    assert report.find("local", "top-1", "A2I") == pytest.approx(share)


def test_point_and_retrieve_takes_a_matrix_for_every_two_segments(tree: Path, tmp_path: Path) -> None:
    truth = truth_matrices(tree)
    blocks = {
        f"{image}@{recording}": truth[image] if image == recording else 0.5 * truth[image]
        for image in truth
        for recording in truth
    }
    report = judge(tmp_path / "right", tree, blocks, MatrixRules(), "point")
    assert report.find("point", "top-1", "A2I") == report.find("point", "top-1", "I2A") == 1
    blocks["Tune.0.0@Tune.0.1"] = 2 * truth["Tune.0.0"]  # the second recording finds the first image
    report = judge(tmp_path / "half", tree, blocks, MatrixRules(), "point")
    assert report.find("point", "top-1", "A2I") == 0.5
    assert report.find("point", "top-1", "I2A") == 0.5
    (tmp_path / "half" / "Tune.0.1@Tune.0.0.npy").unlink()
    with pytest.raises(InputError, match=r"no matrix Tune\.0\.1@Tune\.0\.0\.npy"):
        judge(tmp_path / "half", tree, {}, MatrixRules(), "point")


def test_matrices_that_match_no_pair_are_refused(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no pairs to judge.*named KEY\.npy"):
        judge(tmp_path / "m", tree, {"other": np.zeros((49, 256))}, MatrixRules(), "local")
    with pytest.raises(InputError, match="local and point, not retrieval"):
        judge(tmp_path / "m", tree, {}, MatrixRules(), "retrieval")


def test_attention_is_averaged_over_layers_7_to_9_and_heads(tmp_path: Path) -> None:
    stack = np.zeros((12, 2, 3, 4))
    stack[6:9, 0] = np.array([3.0, 6.0, 9.0])[:, None, None]  # layers 7, 8, 9; the other head gives 0
    stack[9] = 100
    assert (average_attention(stack) == 3).all()
    np.save(tmp_path / "a.npy", stack)
    assert read_matrix(tmp_path / "a.npy").shape == (3, 4)
    assert (average_attention(stack[6:9]) == 3).all()
    with pytest.raises(InputError, match="5 layers; expected 3, or all of at least 9"):
        average_attention(stack[:5])


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda file: file.write_bytes(b""), "cannot be read"),
        (lambda file: np.save(file, np.zeros(3)), r"shape \(3,\); expected \(patches, frames\)"),
        (lambda file: np.save(file, np.full((49, 2), np.nan)), "not all finite"),
        (lambda file: np.save(file, np.array([["a"]])), "not all finite"),
        (
            lambda file: np.save(file, np.zeros((50, 8))),
            r"50 patches by 8 frames; the grid has 49 patches, row by row",
        ),
    ],
)
def test_the_error_says_why_a_matrix_cannot_be_used(
    tmp_path: Path, write: Callable[[Path], object], message: str
) -> None:
    file = tmp_path / "key.npy"
    write(file)
    with pytest.raises(InputError, match=message) as raised:
        MatrixFiles([file], 49).read("key")
    assert "key.npy" in str(raised.value)


def test_files_that_are_not_matrices_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not found"):
        MatrixFiles([tmp_path / "a.npy"], 49)
    with pytest.raises(InputError, match=r"no \.npy files"):
        MatrixFiles([tmp_path], 49)
    assert parse_grid("7x14") == (7, 14)
    with pytest.raises(InputError, match="ROWSxCOLS"):
        parse_grid("49")
