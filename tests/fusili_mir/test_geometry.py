from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusili_mir.errors import InputError
from fusili_mir.geometry import FrameGrid, PatchGrid

grids = st.builds(
    PatchGrid,
    rows=st.integers(1, 9),
    cols=st.integers(1, 300),
    patch_width_px=st.floats(0.5, 64),
    patch_height_px=st.floats(0.5, 64),
)
frame_grids = st.builds(
    FrameGrid, n_frames=st.integers(1, 5000), frame_sec=st.floats(0.005, 1), start_sec=st.floats(-10, 600)
)


def test_the_patches_of_clip_are_7_by_7_of_32_pixels() -> None:
    grid = PatchGrid(7, 7, 32, 32)
    assert (len(grid), grid.width_px, grid.height_px) == (49, 224, 224)
    x, y = grid.centre([0, 6, 7, 48])
    assert x.tolist() == [16, 208, 16, 208]
    assert y.tolist() == [16, 16, 48, 208]
    assert grid.index([0, 31.9, 32, 223.9, 224, -0.1], [0, 0, 33, 223.9, 0, 0]).tolist() == [
        0,
        0,
        8,
        48,
        -1,
        -1,
    ]


@given(grids)
def test_the_centre_of_every_patch_lies_in_that_patch(grid: PatchGrid) -> None:
    patches = np.arange(len(grid))
    assert grid.index(*grid.centre(patches)).tolist() == patches.tolist()


@given(frame_grids)
def test_the_middle_of_every_frame_lies_in_that_frame(grid: FrameGrid) -> None:
    frames = np.arange(len(grid))
    assert grid.index(grid.centre(frames)).tolist() == frames.tolist()


def test_frames_of_the_paper_are_256_in_20_seconds() -> None:
    grid = FrameGrid(256, 20 / 256)
    assert grid.duration_sec == 20
    seconds = np.array([0.0, 0.078, 0.0782, 10.0, 19.999, 20.0, -0.001])
    assert grid.index(seconds).tolist() == [0, 0, 1, 128, 255, -1, -1]
    assert grid.index(seconds[:-2]).tolist() == np.floor(seconds[:-2] * 256 / 20).tolist()


def test_frames_count_from_where_the_grid_starts() -> None:
    grid = FrameGrid(10, 0.5, start_sec=3.0)
    assert grid.centre([0, 9]).tolist() == [3.25, 7.75]
    assert grid.index([2.9, 3.0, 7.9, 8.0]).tolist() == [-1, 0, 9, -1]


def test_the_audio_ends_where_its_length_says_or_else_after_full_frames() -> None:
    assert FrameGrid(10, 0.5, audio_sec=4.7).end_sec == 4.7
    assert FrameGrid(10, 0.5, start_sec=-0.3, audio_sec=4.7).end_sec == 4.7
    assert FrameGrid(10, 0.5).end_sec == 5.0
    assert FrameGrid(10, 0.5, start_sec=3.0).end_sec == 8.0
    assert FrameGrid(10, 0.5, start_sec=-0.3).end_sec == 5.0


def test_times_outside_the_audio_are_moved_to_its_ends() -> None:
    grid = FrameGrid(10, 0.5, start_sec=-0.3, audio_sec=4.7)
    moved = grid.within([-0.3, 0.0, 2.5, 4.7, 4.71, np.inf, np.nan])
    assert moved[:-1].tolist() == [0.0, 0.0, 2.5, 4.7, 4.7, 4.7]
    assert np.isnan(moved[-1])


def test_places_that_are_not_numbers_lie_nowhere() -> None:
    assert PatchGrid(2, 2, 1, 1).index([np.nan, np.inf, -np.inf], [0, 0, 0]).tolist() == [-1, -1, -1]
    assert FrameGrid(2, 1).index([np.nan, np.inf]).tolist() == [-1, -1]


def test_a_patch_outside_the_grid_is_named() -> None:
    with pytest.raises(
        InputError, match=r"patch 49 is outside the 7x7 grid \(0..48\); was the class token left in"
    ):
        PatchGrid(7, 7, 32, 32).centre([3, 49])
    with pytest.raises(InputError, match=r"frame -1 is outside the audio \(0..9\)"):
        FrameGrid(10, 1).centre(-1)


@pytest.mark.parametrize("wrong", [(0, 1, 1, 1), (1, 0, 1, 1), (1, 1, 0, 1), (1, 1, 1, -1)])
def test_an_empty_grid_is_refused(wrong: tuple[int, int, float, float]) -> None:
    with pytest.raises(InputError, match="expected at least one patch"):
        PatchGrid(*wrong)


def test_a_frame_grid_without_frames_is_refused() -> None:
    with pytest.raises(InputError, match="expected at least one, of positive length"):
        FrameGrid(0, 1)
    with pytest.raises(InputError, match="expected at least one, of positive length"):
        FrameGrid(1, float("nan"))
