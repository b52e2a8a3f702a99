import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from fusili_mir.geometry import FrameGrid, PatchGrid
from fusili_training.model.targets import dense_targets
from fusili_training.pitches import LOWEST_PITCH
from fusili_training.placed_notes import place_notes, sounding_patches
from fusili_training.truth import TRUTH_DTYPE, TruthArray

PATCHES = PatchGrid(rows=2, cols=3, patch_width_px=10, patch_height_px=10)
FRAMES = FrameGrid(n_frames=8, frame_sec=0.5)


def head(
    x: float, y: float, onset_sec: float, offset_sec: float, pitch: int = 60, struck: bool = True
) -> tuple[object, ...]:
    return ("n", pitch, 0, 0, x - 1, y - 1, x + 1, y + 1, onset_sec, offset_sec, struck)


def truth(*heads: tuple[object, ...]) -> TruthArray:
    return np.array(list(heads), dtype=TRUTH_DTYPE)


def test_a_note_lies_where_the_centre_of_its_head_is_and_sounds_until_it_ends() -> None:
    notes = place_notes(truth(head(10, 15, 0.5, 1.5)), PATCHES, FRAMES)
    assert notes.patch.tolist() == [4]  # second row, second column
    assert (notes.first_frame.tolist(), notes.end_frame.tolist()) == ([1], [3])


def test_a_note_shorter_than_a_frame_sounds_in_one() -> None:
    notes = place_notes(truth(head(5, 5, 0.6, 0.6)), PATCHES, FRAMES)
    assert (notes.first_frame.tolist(), notes.end_frame.tolist()) == ([1], [2])


def test_notes_outside_the_grids_are_left_out() -> None:
    outside = truth(head(35, 5, 0, 1), head(5, 25, 0, 1), head(5, 5, 4.0, 5.0), head(5, 5, 3.9, 9.0))
    notes = place_notes(outside, PATCHES, FRAMES)
    assert (notes.first_frame.tolist(), notes.end_frame.tolist()) == ([7], [8])


def test_all_patches_that_sound_are_right_for_a_frame() -> None:
    right = sounding_patches(truth(head(5, 5, 0, 1), head(25, 5, 0.5, 1)), PATCHES, FRAMES)
    assert right.shape == (6, 2)  # up to the last note
    assert right[:, 0].nonzero()[0].tolist() == [0]
    assert right[:, 1].nonzero()[0].tolist() == [0, 2]


def test_a_silent_frame_takes_the_patch_nearest_in_time() -> None:
    # Frame 0 is before the first note; 2, 3 and 4 are silent, 3 is equally near to both.
    right = sounding_patches(truth(head(5, 5, 0.5, 1.0), head(15, 5, 2.5, 3.0)), PATCHES, FRAMES)
    assert right.argmax(axis=0).tolist() == [0, 0, 0, 0, 1, 1]
    assert right.sum(axis=0).tolist() == [1] * 6


def test_a_segment_without_notes_has_no_frames_to_judge() -> None:
    assert sounding_patches(truth(), PATCHES, FRAMES).shape == (6, 0)


def test_a_held_note_counts_half_after_the_recency_time() -> None:
    targets = dense_targets([truth(head(5, 5, 1.0, 3.0))], PATCHES, FRAMES, recency_sec=1.0)
    expected = torch.zeros(6, 8)
    expected[0, 2:6] = torch.tensor([1.0, 0.5**0.5, 0.5, 0.5**1.5])
    torch.testing.assert_close(targets.alignment, expected[None])


def test_a_frame_belongs_to_what_sounds_in_its_middle() -> None:
    notes = truth(head(5, 5, 0.7, 1.8), head(15, 5, 1.8, 2.6))  # middles at 0.25, 0.75, 1.25, ... s
    alignment = dense_targets([notes], PATCHES, FRAMES, recency_sec=1.0).alignment[0]
    assert alignment[0].nonzero().flatten().tolist() == [1, 2, 3]
    assert alignment[1].nonzero().flatten().tolist() == [4]


def test_pitches_are_found_where_they_lie_sound_and_begin() -> None:
    low = LOWEST_PITCH
    notes = truth(
        head(5, 5, 0, 1, pitch=low), head(15, 5, 1, 2, pitch=low, struck=False), head(5, 5, 0, 1, 108)
    )
    targets = dense_targets([notes], PATCHES, FRAMES, recency_sec=1.0).notes
    assert targets.patch_pitches[0].nonzero().tolist() == [[0, 0], [0, 87], [1, 0]]
    assert targets.frame_pitches[0, :, 0].tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
    assert targets.frame_onsets[0].nonzero().tolist() == [[0, 0], [0, 87]]  # the tied head has no onset


def test_pitches_that_no_piano_has_are_aligned_but_not_predicted() -> None:
    targets = dense_targets([truth(head(5, 5, 0, 1, pitch=12))], PATCHES, FRAMES, recency_sec=1.0)
    assert not targets.notes.frame_pitches.any()
    assert targets.alignment.any()


@given(
    st.lists(st.tuples(st.floats(0, 29), st.floats(0, 19), st.floats(0, 3.9), st.floats(0.01, 3)), min_size=1)
)
def test_every_frame_up_to_the_last_note_has_a_right_patch(notes: list[tuple[float, ...]]) -> None:
    right = sounding_patches(truth(*(head(x, y, on, on + long) for x, y, on, long in notes)), PATCHES, FRAMES)
    assert right.any(axis=0).all()
