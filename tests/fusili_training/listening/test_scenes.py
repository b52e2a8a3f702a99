import numpy as np
import pytest

from fusili_training.listening.scenes import Instruments, Scene, SceneMaker, onset_targets
from fusili_training.listening.textures import draw_texture
from fusili_training.pitches import N_PITCHES
from fusili_training.sound.soundbank import SoundBank

RATE_HZ = 16_000


def plucked_bank() -> SoundBank:
    """Decaying sines of half a second, at one velocity."""
    time_sec = np.arange(RATE_HZ // 2) / RATE_HZ
    hz = 440 * 2 ** ((np.arange(21, 109) - 69) / 12)
    notes = np.sin(2 * np.pi * hz[:, None] * time_sec) * np.exp(-6 * time_sec)
    length = np.full((1, N_PITCHES), notes.shape[1])
    return SoundBank(
        name="plucked",
        licence="CC0",
        sample_rate_hz=RATE_HZ,
        velocities=(64,),
        samples=np.rint(20_000 * notes.ravel()).astype(np.int16),
        start=np.arange(N_PITCHES)[None] * notes.shape[1],
        length=length,
        release_db_per_sec=np.full(N_PITCHES, 120.0),
        loop_length=0,
        gain=1e-5,
    )


@pytest.mark.parametrize("monophonic", [False, True])
def test_textures_stay_on_the_keyboard_and_within_the_fastest_pace(monophonic: bool) -> None:
    for seed in range(30):
        notes = draw_texture(5.0, np.random.default_rng(seed), monophonic, fastest_hz=12.0)
        assert ((notes["pitch"] >= 21) & (notes["pitch"] <= 108)).all()
        assert (np.minimum(notes["duration_sec"], notes["sounding_sec"]) > 0).all()
        if monophonic:
            for part in np.unique(notes["part"]):
                strokes = np.unique(notes["onset_sec"][notes["part"] == part])
                assert len(strokes) <= 5.5 * 2 * 12.0 * 1.5  # short notes last half a step, tempo wavers


def test_the_same_seed_gives_the_same_scene() -> None:
    maker = SceneMaker([], Instruments([plucked_bank()], []), 1.0)
    first, again = (maker.draw(np.random.default_rng(7)) for _ in range(2))
    assert np.array_equal(first.samples, again.samples)
    assert np.array_equal(first.onset_sec, again.onset_sec)


def test_lines_that_a_singer_can_reach_are_sung_where_the_recipe_says_so() -> None:
    plucked = [(plucked_bank(), (21, 108))]
    played, sung = (
        SceneMaker([], Instruments([plucked_bank()], plucked), 1.0, keyboard_share=0.0, singing=share)
        for share in (0.0, 1.0)
    )
    n_other = 0
    for seed in range(8):
        first, again, instead = (maker.draw(np.random.default_rng(seed)) for maker in (sung, sung, played))
        assert np.array_equal(first.samples, again.samples)
        n_other += not np.array_equal(first.samples, instead.samples)
    assert n_other > 4


def test_the_sound_of_a_scene_rises_where_its_notes_begin() -> None:
    maker = SceneMaker([], Instruments([plucked_bank()], []), 2.0)
    quieter = louder = 0.0
    for seed in range(12):
        scene = maker.draw(np.random.default_rng(seed))
        for second in scene.onset_sec:
            at = round(float(second) * RATE_HZ)
            if 800 < at < len(scene.samples) - 800:
                quieter += float(np.square(scene.samples[at - 480 : at - 160]).mean())
                louder += float(np.square(scene.samples[at + 80 : at + 400]).mean())
    assert louder > 1.1 * quieter


def test_a_target_is_highest_at_the_step_of_its_onset() -> None:
    scene = Scene(np.zeros(16_000, np.float32), np.array([0.105, 0.5]), np.array([60, 21]))
    targets = onset_targets(scene, 100, 0.01)
    assert targets.shape == (100, N_PITCHES)
    assert targets[10, 39] == pytest.approx(1.0)  # the middle of step 10 is at 0.105 s
    assert targets[9, 39] == targets[11, 39] == pytest.approx(np.exp(-0.5 / 0.81))
    assert targets[49, 0] == targets[50, 0] == pytest.approx(np.exp(-0.125 / 0.81))  # between two steps
    assert np.count_nonzero(targets.sum(axis=0)) == 2
