"""Every metric on cases small enough to be worked out by hand, or against a slow implementation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusili_mir.errors import InputError
from fusili_mir.geometry import FrameGrid, PatchGrid
from fusili_training.evaluation.baselines import (
    chance_local,
    shuffled_frames,
    straight_line,
)
from fusili_training.evaluation.judging_grid import PAPER_FRAME_SEC, JudgingGrid
from fusili_training.evaluation.local import judge_local, local_perplexity, local_top1
from fusili_training.evaluation.matching_rules import SEQ2SEQ, MatchingRule
from fusili_training.evaluation.point_and_retrieve import PointSegment, chance_point, judge_point
from fusili_training.loop.validation import count_hits
from fusili_training.truth import TRUTH_DTYPE, TruthArray

SQUARE = PatchGrid(7, 7, 32, 32)


def notes(*rows: tuple[float, float, float, float]) -> TruthArray:
    """Heads of 2 x 2 px: middle x and y, onset and offset."""
    truth = np.zeros(len(rows), TRUTH_DTYPE)
    for row, (x, y, onset_sec, offset_sec) in zip(truth, rows, strict=True):
        row["x0"], row["x1"], row["y0"], row["y1"] = x - 1, x + 1, y - 1, y + 1
        row["onset_sec"], row["offset_sec"], row["struck"] = onset_sec, offset_sec, True
    return truth


def small_grid(rows: int = 1, cols: int = 3, n_frames: int = 6) -> JudgingGrid:
    """Patches of 10 x 10 px, frames of 1 s."""
    return JudgingGrid.own(PatchGrid(rows, cols, 10, 10), FrameGrid(n_frames, 1.0))


def one_hot(choices: list[int], n_patches: int) -> np.ndarray:
    similarity = np.zeros((n_patches, len(choices)), np.float32)
    similarity[choices, np.arange(len(choices))] = 1
    return similarity


# --- local alignment


def test_a_frame_in_silence_takes_the_patch_that_is_nearest_in_time() -> None:
    # Patch 0 sounds in frame 0, patch 2 in frame 4: frames 1 and 2 take 0 (2 is equally near to both), 3 takes 2.
    truth = notes((5, 5, 0.0, 1.0), (25, 5, 4.0, 5.0))
    for choices, n_right in (([0, 0, 0, 2, 2, 0], 5), ([0, 0, 2, 2, 2, 0], 4), ([0, 2, 2, 0, 2, 0], 2)):
        counts = judge_local(one_hot(choices, 3), truth, small_grid())
        assert (counts.n_right, counts.n_frames) == (n_right, 5)


def test_a_note_ends_at_the_frame_of_its_end() -> None:
    # floor(1.5) = 1: the note sounds in frame 0 only, and nothing after it is judged.
    truth = notes((5, 5, 0.0, 1.5))
    counts = judge_local(one_hot([0, 0, 1, 1, 1, 1], 3), truth, small_grid())
    assert (counts.n_right, counts.n_frames) == (1, 1)


def test_a_note_within_one_frame_is_the_nearest_one_there() -> None:
    # Patch 1 begins and ends in frame 2, in which nothing else sounds; patch 0 ended at 1.
    truth = notes((5, 5, 0.0, 1.0), (15, 5, 2.2, 2.7), (25, 5, 3.0, 4.0))
    for choices, n_right in (([0, 0, 1, 2], 4), ([0, 0, 0, 2], 3)):
        counts = judge_local(one_hot([*choices, 0, 0], 3), truth, small_grid())
        assert (counts.n_right, counts.n_frames) == (n_right, 4)


def test_any_of_several_sounding_patches_is_right() -> None:
    truth = notes((5, 5, 0.0, 1.0), (25, 5, 0.0, 1.0))
    grid = small_grid(n_frames=1)
    assert [judge_local(one_hot([patch], 3), truth, grid).n_right for patch in range(3)] == [1, 0, 1]


def test_among_equally_similar_patches_the_first_counts() -> None:
    similarity = np.array([[0.5], [0.5], [0.1]], np.float32)
    grid = small_grid(n_frames=1)
    assert judge_local(similarity, notes((5, 5, 0, 1)), grid).n_right == 1
    assert judge_local(similarity, notes((15, 5, 0, 1)), grid).n_right == 0


def test_the_frame_of_a_time_is_the_floor_of_t_times_256_over_20() -> None:
    grid = JudgingGrid.paper(SQUARE, FrameGrid(64, 0.3125))
    assert len(grid.frames) == 256
    seconds = np.array([0.0, 0.078, 0.0782, 1.0, 19.99])
    assert grid.frames.index(seconds).tolist() == [math.floor(t * 256 / 20) for t in seconds]


def test_the_64_frames_of_the_published_encoder_count_four_times_each() -> None:
    grid = JudgingGrid.paper(SQUARE, FrameGrid(64, 0.3125))
    assert grid.own_frame.tolist() == [frame // 4 for frame in range(256)]
    truth = notes((16, 16, 0.0, 0.3125), (48, 16, 0.3125, 0.625))
    own = np.zeros((49, 64), np.float32)
    own[0, 0] = own[0, 1] = 1  # the second of the two is wrong
    counts = judge_local(grid.similarity(own), truth, grid)
    assert (counts.n_right, counts.n_frames) == (4, 8)


def test_a_uniform_guess_over_49_patches_has_a_perplexity_of_49() -> None:
    grid = JudgingGrid.paper(SQUARE, FrameGrid(64, 0.3125))
    truth = notes((16, 16, 0.0, 3.0), (100, 16, 0.0, 3.0), (200, 200, 4.0, 20.0))
    counts = judge_local(np.full((49, 256), 0.3, np.float32), truth, grid)
    assert counts.n_entropy_frames == 256
    assert local_perplexity([counts]).value == pytest.approx(49)
    assert local_perplexity([chance_local(truth, grid)]).value == pytest.approx(49)


def test_the_perplexity_has_no_temperature() -> None:
    # One frame, cosines 1, 0, 0: p = e / (e + 2), and the perplexity is 1 / p.
    counts = judge_local(one_hot([0], 3), notes((5, 5, 0, 1)), small_grid(n_frames=1))
    assert local_perplexity([counts]).value == pytest.approx((math.e + 2) / math.e)


def test_several_right_patches_share_a_frame_equally() -> None:
    # Patches 0 and 1 are right: the mean of -ln(e / (e + 2)) and -ln(1 / (e + 2)) is ln(e + 2) - 1/2.
    truth = notes((5, 5, 0, 1), (15, 5, 0, 1))
    counts = judge_local(one_hot([0], 3), truth, small_grid(n_frames=1))
    assert counts.cross_entropy == pytest.approx(math.log(math.e + 2) - 0.5, rel=1e-6)


def test_frames_of_all_segments_count_equally() -> None:
    long = judge_local(one_hot([0] * 6, 3), notes((5, 5, 0, 6)), small_grid())
    short = judge_local(one_hot([1, 0], 3), notes((5, 5, 0, 2)), small_grid(n_frames=2))
    assert local_top1([long, short]).value == pytest.approx(7 / 8)


def test_a_segment_without_notes_counts_for_nothing() -> None:
    counts = judge_local(one_hot([0] * 6, 3), notes(), small_grid())
    assert (counts.n_frames, counts.n_entropy_frames) == (0, 0)


def test_a_matrix_of_another_size_is_refused() -> None:
    with pytest.raises(InputError, match=r"shape \(50, 6\); expected 3 patches by 6 frames"):
        judge_local(np.zeros((50, 6), np.float32), notes((5, 5, 0, 1)), small_grid())


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_top1_agrees_with_validation_in_training(seed: int) -> None:
    rng = np.random.default_rng(seed)
    onsets = rng.uniform(0, 12, 8)
    truth = notes(*((*rng.uniform(0, 224, 2), onset, onset + rng.uniform(0.05, 3)) for onset in onsets))
    own = rng.normal(size=(49, 64)).astype(np.float32)
    frames = FrameGrid(64, 0.3125)
    grid = JudgingGrid.paper(SQUARE, frames)
    counts = judge_local(grid.similarity(own), truth, grid)
    hits = count_hits(own, truth, SQUARE, frames, frame_repeats=4)
    assert (counts.n_right, counts.n_frames) == (hits.n_right, hits.n_frames)


# --- finer grids


def test_a_finer_model_is_judged_on_seven_cells_by_the_best_of_their_columns() -> None:
    patches = PatchGrid(1, 14, 4, 128)
    grid = JudgingGrid.paper(patches, FrameGrid(4, PAPER_FRAME_SEC))
    assert grid.patches == PatchGrid(1, 7, 8, 128)
    own = np.zeros((14, 4), np.float32)
    own[[0, 3, 4, 13], [0, 1, 2, 3]] = [0.1, 0.2, 0.3, 0.4]
    assert grid.similarity(own).argmax(axis=0).tolist() == [0, 1, 2, 6]
    assert grid.similarity(own).max(axis=0) == pytest.approx([0.1, 0.2, 0.3, 0.4])


def test_columns_are_merged_where_no_frame_is_judged() -> None:
    grid = JudgingGrid.paper(PatchGrid(2, 14, 4, 16), FrameGrid(3, 0.04))
    assert grid.merge_columns(np.zeros((28, 0), np.float32)).shape == (14, 0)


@given(st.integers(1, 300), st.integers(1, 7))
def test_every_column_is_in_one_cell_and_no_cell_is_empty(cols: int, rows: int) -> None:
    grid = JudgingGrid.paper(PatchGrid(rows, cols, 4, 16), FrameGrid(3, 0.04))
    assert grid.patches.cols == min(7, cols)
    sizes = np.diff(grid.first_column, append=cols)
    assert sizes.min() >= 1
    assert sizes.max() - sizes.min() <= 1
    assert grid.patches.width_px == pytest.approx(4 * cols)


def test_frames_of_another_length_are_taken_at_the_middle_of_the_papers_frames() -> None:
    grid = JudgingGrid.paper(PatchGrid(1, 7, 4, 16), FrameGrid(500, 0.04))
    assert len(grid.frames) == 256
    assert grid.own_frame[:4].tolist() == [0, 2, 4, 6]  # 39.06, 117.2, 195.3 and 273.4 ms


# --- matching rules


def test_a_vertical_tolerance_ends_at_the_border_of_the_grid() -> None:
    grid = PatchGrid(3, 2, 10, 10)
    right = np.zeros((6, 1), bool)
    right[0] = True  # the top left patch
    assert np.flatnonzero(MatchingRule(vertical=1).widen(right, grid)).tolist() == [0, 2]
    right[:] = False
    right[5] = True  # the bottom right patch
    assert np.flatnonzero(MatchingRule(vertical=1).widen(right, grid)).tolist() == [3, 5]
    assert np.flatnonzero(MatchingRule(vertical=None).widen(right, grid)).tolist() == [1, 3, 5]


def test_a_horizontal_tolerance_does_not_run_on_into_the_next_row() -> None:
    grid = PatchGrid(2, 3, 10, 10)
    right = np.zeros((6, 1), bool)
    right[2] = True  # the last of the first row
    assert np.flatnonzero(MatchingRule(horizontal=1).widen(right, grid)).tolist() == [1, 2]


def test_the_relaxed_match_is_a_cross_not_a_box() -> None:
    grid = PatchGrid(5, 5, 10, 10)
    right = np.zeros((25, 1), bool)
    right[12] = True  # the middle
    found = MatchingRule(vertical=2, horizontal=1).widen(right, grid).reshape(5, 5)
    assert np.argwhere(found).tolist() == [[0, 2], [1, 2], [2, 1], [2, 2], [2, 3], [3, 2], [4, 2]]


def test_columns_left_out_are_never_predicted() -> None:
    grid = JudgingGrid.own(PatchGrid(1, 5, 10, 10), FrameGrid(1, 1.0))
    similarity = np.array([[9.0], [8], [7], [1], [2]], np.float32)
    truth = notes((35, 5, 0, 1))
    rule = MatchingRule(columns_left_out=3)
    counts = judge_local(similarity, truth, grid, rule)
    assert counts.n_right == 0  # column 4 is chosen, column 3 is right
    assert judge_local(similarity, truth, grid, SEQ2SEQ).n_right == 1
    assert counts.cross_entropy == pytest.approx(math.log(math.exp(1) + math.exp(2)) - 1, rel=1e-6)


def test_a_frame_whose_patches_are_all_left_out_is_not_judged() -> None:
    grid = JudgingGrid.own(PatchGrid(1, 4, 10, 10), FrameGrid(1, 1.0))
    counts = judge_local(np.zeros((4, 1), np.float32), notes((5, 5, 0, 1)), grid, SEQ2SEQ)
    assert (counts.n_frames, counts.n_right, counts.n_entropy_frames) == (0, 0, 0)


def test_leaving_out_all_columns_is_refused() -> None:
    with pytest.raises(InputError, match="7 columns left out of 7"):
        MatchingRule(columns_left_out=7).candidates(SQUARE)


# --- baselines


def test_chance_is_the_share_of_right_patches() -> None:
    truth = notes((5, 5, 0, 1), (15, 5, 0, 1), (25, 5, 1, 2))
    counts = chance_local(truth, small_grid())
    assert counts.n_right == pytest.approx(2 / 3 + 1 / 3)
    assert counts.n_frames == 2


def test_an_even_reader_is_right_on_even_music() -> None:
    grid = small_grid(rows=2, cols=3)
    even = notes(*((5 + 10 * place, 15, place, place + 1) for place in range(3)))
    counts = judge_local(straight_line(even, grid), even, grid)
    assert (counts.n_right, counts.n_frames) == (3, 3)
    late = notes((25, 15, 0, 3))
    assert judge_local(straight_line(late, grid), late, grid).n_right == 1


def test_shuffling_keeps_the_frames_that_are_judged_together() -> None:
    similarity = np.arange(6, dtype=np.float32)[None]
    shuffled = shuffled_frames(similarity, 4, "a")
    assert sorted(shuffled[0, :4]) == [0, 1, 2, 3]
    assert shuffled[0, 4:].tolist() == [4, 5]
    assert shuffled_frames(similarity, 4, "a").tolist() == shuffled.tolist()


# --- point-and-retrieve


def point_piece() -> list[PointSegment]:
    """Two segments of 3 x 2 patches; in the first, patch 0 then 1 sound, in the second, patch 4."""
    grid = JudgingGrid.own(PatchGrid(3, 2, 10, 10), FrameGrid(2, 1.0))
    return [
        PointSegment.of(notes((5, 5, 0, 1), (15, 5, 1, 2)), grid),
        PointSegment.of(notes((5, 25, 0, 1)), grid),
    ]


def point_blocks(*answers: tuple[int, int, int, int, float]) -> dict[tuple[int, int], np.ndarray]:
    blocks = {(i, j): np.zeros((6, 2), np.float32) for i in range(2) for j in range(2)}
    for image, recording, patch, frame, value in answers:
        blocks[image, recording][patch, frame] = value
    return blocks


def test_point_and_retrieve_by_hand() -> None:
    # Frame 0 of recording 0 finds the row below (right, within 1), frame 1 finds the right patch; the frame of
    # recording 1 finds a patch at the right place of the wrong segment.
    blocks = point_blocks((0, 0, 2, 0, 0.9), (0, 0, 1, 1, 0.8), (0, 1, 4, 0, 0.7), (1, 1, 4, 0, 0.6))
    counts = judge_point(point_piece(), lambda i, j: blocks[i, j])
    assert (counts.n_frames, counts.n_frames_right) == (3, 2)
    # Patch 0 of image 0 resembles nothing: among equals the first frame counts, which is its own. Patch 1
    # of image 0 and patch 4 of image 1 find their frames.
    assert (counts.n_patches, counts.n_patches_right) == (3, 3)


def test_the_vertical_tolerance_does_not_reach_into_the_next_segment() -> None:
    # The bottom row of image 0 is not a neighbour of the top row of image 1.
    grid = JudgingGrid.own(PatchGrid(2, 1, 10, 10), FrameGrid(1, 1.0))
    segments = [PointSegment.of(notes((5, 15, 0, 1)), grid), PointSegment.of(notes((5, 5, 0, 1)), grid)]
    blocks = {(i, j): np.zeros((2, 1), np.float32) for i in range(2) for j in range(2)}
    blocks[1, 0][0, 0] = 1  # recording 0 finds the top row of image 1
    blocks[1, 1][1, 0] = 1  # recording 1 finds the bottom row of image 1, one below the right one
    counts = judge_point(segments, lambda i, j: blocks[i, j])
    assert (counts.n_frames, counts.n_frames_right) == (2, 1)


def test_chance_in_point_and_retrieve_by_hand() -> None:
    counts = chance_point(point_piece())
    # Of 12 patches: 0 and 2, 1 and 3, then 4 and 2 of the second segment: 2 each. Of 3 frames: 1 each.
    assert counts.n_frames_right == pytest.approx(3 * 2 / 12)
    assert counts.n_patches_right == pytest.approx(3 * 1 / 3)


def test_point_and_retrieve_is_the_argmax_of_the_whole_matrix() -> None:
    rng = np.random.default_rng(3)
    grid = JudgingGrid.own(PatchGrid(4, 5, 10, 10), FrameGrid(7, 1.0))
    truths = [  # about 3, 5 and 7 frames long
        notes(*((*rng.uniform(0, 40, 2), onset, onset + 1.5) for onset in rng.uniform(0, latest, 5)))
        for latest in (2, 4, 6)
    ]
    segments = [PointSegment.of(truth, grid) for truth in truths]
    blocks = rng.normal(size=(3, 3, 20, 7)).astype(np.float32)
    counts = judge_point(segments, lambda i, j: blocks[i, j], MatchingRule(), MatchingRule())
    lengths = [segment.right.shape[1] for segment in segments]
    whole = np.block([[blocks[i, j][:, : lengths[j]] for j in range(3)] for i in range(3)])
    right = np.zeros(whole.shape, bool)
    first = 0
    for number, segment in enumerate(segments):
        right[20 * number : 20 * (number + 1), first : first + lengths[number]] = segment.right
        first += lengths[number]
    frames = right[whole.argmax(axis=0), np.arange(whole.shape[1])]
    asking = right.any(axis=1)
    patches = right[np.arange(60), whole.argmax(axis=1)][asking]
    assert (counts.n_frames, counts.n_frames_right) == (len(frames), frames.sum())
    assert (counts.n_patches, counts.n_patches_right) == (asking.sum(), patches.sum())
