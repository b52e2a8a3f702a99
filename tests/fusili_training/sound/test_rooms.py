import numpy as np
import pytest
from scipy import signal

from fusili_training.sound.rooms import draw_plate, draw_room, play_in_room
from fusili_training.sound.wear import wear

RATE_HZ = 16_000


@pytest.mark.parametrize("seed", range(8))
def test_the_direct_sound_comes_first_and_nothing_is_as_loud_after_it(seed: int) -> None:
    room = draw_room(RATE_HZ, 2.0, np.random.default_rng(seed))
    assert room[0] == pytest.approx(1.0, abs=0.35)  # noise begins with it where the room is small
    assert np.isfinite(room).all()
    late = room[len(room) // 2 :]
    assert np.square(late).sum() < 0.02 * np.square(room).sum()


def test_rooms_reverberate_for_as_long_as_they_may() -> None:
    lengths = [len(draw_room(RATE_HZ, 2.0, np.random.default_rng(seed))) / RATE_HZ for seed in range(30)]
    assert 0.16 <= min(lengths) < max(lengths) <= 2.001


@pytest.mark.parametrize("seed", range(6))
def test_a_plate_follows_the_direct_sound_and_low_sounds_come_later_in_it(seed: int) -> None:
    plate = draw_plate(RATE_HZ, 2.0, np.random.default_rng(seed))
    assert plate[0] == pytest.approx(1.0, abs=0.3)
    assert np.square(plate[1:]).sum() < 1.1  # at most as loud as the direct sound
    assert 0.6 <= len(plate) / RATE_HZ <= 2.001
    tail = np.concatenate([[0.0], plate[1:]])
    low, high = (
        signal.sosfilt(signal.butter(4, band, "bandpass", fs=RATE_HZ, output="sos"), tail)
        for band in ((80, 160), (4000, 6000))
    )
    begun = [
        np.searchsorted(np.cumsum(np.square(sound)), 0.01 * np.square(sound).sum()) for sound in (low, high)
    ]
    assert begun[0] > begun[1]


def test_a_sound_begins_in_a_room_when_it_did_before() -> None:
    clip = np.zeros(RATE_HZ, np.float32)
    clip[4000] = 1.0
    played = play_in_room(clip, draw_room(RATE_HZ, 1.0, np.random.default_rng(0)))
    assert len(played) == len(clip)
    assert np.abs(played[:3999]).max() < 1e-5
    assert np.argmax(np.abs(played)) == 4000


@pytest.mark.parametrize("seed", range(6))
def test_wear_keeps_length_and_onset(seed: int) -> None:
    rng = np.random.default_rng(seed)
    time_sec = np.arange(RATE_HZ) / RATE_HZ
    clip = np.where(time_sec >= 0.5, 0.3 * np.sin(2 * np.pi * 440 * time_sec), 0).astype(np.float32)
    worn = wear(clip, RATE_HZ, rng)
    assert worn.shape == clip.shape
    assert np.isfinite(worn).all()
    power = np.square(worn).reshape(-1, 80).mean(axis=1)  # steps of 5 ms
    loud = np.median(power[110:])
    assert abs(int(np.argmax(np.convolve(power > loud / 4, [1, 1, 1], "valid") == 3)) - 100) <= 2
