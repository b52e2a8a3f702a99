from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fusili_mir.errors import InputError
from fusili_training.data.augmentation import Augmentation, augment
from fusili_training.data.shard_folder import Pair
from fusili_training.rendering.degrade import DegradationLimits
from fusili_training.sound.augment_audio import AudioAugmentation
from fusili_training.truth import TRUTH_DTYPE


def _pair() -> Pair:
    """Two strips of 128 px with a black square each, far from the middle, 60 px below its top."""
    image = np.full((256, 768), 255, np.uint8)
    truth = np.zeros(2, TRUTH_DTYPE)
    for row, top in enumerate((60, 188)):
        image[top : top + 8, 700:708] = 0
        truth[row]["x0"], truth[row]["x1"], truth[row]["y0"], truth[row]["y1"] = 700, 708, top, top + 8
        truth[row]["onset_sec"], truth[row]["offset_sec"] = row + 0.5, row + 0.9
    sound = np.random.default_rng(0).normal(scale=0.05, size=32_000).astype(np.float32)
    return Pair("a.whole.0", None, image, sound, truth, 128, 16_000)


def test_boxes_follow_the_turn_of_their_strip() -> None:
    limits = Augmentation(
        image_probability=1, image=DegradationLimits(rotation_deg=1.0), audio=AudioAugmentation()
    )
    moved = 0.0
    for seed in range(5):
        varied = augment(_pair(), limits, np.random.default_rng(seed))
        for row in varied.truth:
            x, y = (row["x0"] + row["x1"]) / 2, (row["y0"] + row["y1"]) / 2
            ink = np.argwhere(varied.image[int(y) - 12 : int(y) + 12, int(x) - 12 : int(x) + 12] < 128)
            found_y, found_x = ink.mean(axis=0) - 11.5
            assert (int(x) + found_x, int(y) + found_y) == pytest.approx((x, y), abs=0.6)
        moved = max(moved, abs(float(varied.truth["y0"][0]) - 60))
    assert moved > 2


def test_times_follow_a_change_of_tuning() -> None:
    limits = Augmentation(image_probability=0, audio_probability=1, audio=AudioAugmentation(detune_cents=100))
    pair = _pair()
    varied = augment(pair, limits, np.random.default_rng(0))
    stretch = len(varied.waveform) / len(pair.waveform)
    assert abs(stretch - 1) > 0.005
    assert varied.truth["onset_sec"].tolist() == pytest.approx([0.5 * stretch, 1.5 * stretch], rel=1e-3)
    assert np.array_equal(varied.image, pair.image)
    assert pair.truth["onset_sec"].tolist() == [0.5, 1.5]  # the pair itself is unchanged
    own = augment(replace(pair, own_sec=(0.4, 1.8)), limits, np.random.default_rng(0)).own_sec
    assert own == pytest.approx((0.4 * stretch, 1.8 * stretch), rel=1e-3)


def test_so_many_recordings_and_images_are_left_alone() -> None:
    limits = Augmentation(image_probability=0.25, audio_probability=0.75)
    pair, rng = _pair(), np.random.default_rng(0)
    varied = [augment(pair, limits, rng) for _ in range(400)]
    assert np.mean([each.image is not pair.image for each in varied]) == pytest.approx(0.25, abs=0.07)
    assert np.mean([each.waveform is not pair.waveform for each in varied]) == pytest.approx(0.75, abs=0.07)


def test_limits_are_checked() -> None:
    with pytest.raises(InputError, match="image_probability is 2; expected 0 to 1"):
        Augmentation(image_probability=2)
    with pytest.raises(InputError, match="noise is 2; expected 0 to 1"):
        Augmentation(image=DegradationLimits(noise=2))
