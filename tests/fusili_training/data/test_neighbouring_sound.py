from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fusili_mir.errors import InputError
from fusili_training.data.augmentation import Augmentation
from fusili_training.data.batch_plan import BatchOptions
from fusili_training.data.loader import PairLoader
from fusili_training.data.neighbouring_sound import with_neighbours
from fusili_training.data.shard_folder import HeardClip, Pair, ShardFolder
from fusili_training.truth import TRUTH_DTYPE

RATE = 1000
PIECE = np.random.default_rng(0).normal(size=20 * RATE).astype(np.float32)
"""The sound of a whole piece, of which clips are parts."""


def _clip(start_sec: float, end_sec: float) -> HeardClip:
    return HeardClip(PIECE[round(start_sec * RATE) : round(end_sec * RATE)], RATE, start_sec, 0.2)


def _pair(start_sec: float = 6.0, end_sec: float = 10.0) -> Pair:
    """A clip with one note, from 0.5 to 1.5 s after its beginning."""
    truth = np.zeros(1, TRUTH_DTYPE)
    truth["onset_sec"], truth["offset_sec"], truth["struck"] = 0.5, 1.5, True
    image, sound = np.full((128, 64), 255, np.uint8), _clip(start_sec, end_sec).waveform
    return Pair("a.whole.1", None, image, sound, truth, 128, RATE, start_sec)


@pytest.mark.parametrize("seed", range(12))
def test_overlapping_clips_become_one_recording_of_the_piece(seed: int) -> None:
    joined = with_neighbours(_pair(), _clip(1.0, 6.4), _clip(9.7, 15.0), np.random.default_rng(seed))
    begin = 6.5 - float(joined.truth["onset_sec"][0])  # in the piece, where the note begins at 6.5 s
    assert 2.0 <= begin < 6.0
    assert joined.truth["offset_sec"][0] == pytest.approx(7.5 - begin)
    # from the first note of the segment to that of the next one, 0.2 s after its clip begins
    assert joined.own_sec == pytest.approx((6.5 - begin, 9.9 - begin))
    part = PIECE[round(begin * RATE) :][: len(joined.waveform)]
    np.testing.assert_allclose(joined.waveform, part, atol=1e-5)
    assert 9.7 < begin + len(joined.waveform) / RATE <= 13.7


def test_a_piece_of_one_system_stays_as_it_is() -> None:
    pair = _pair()
    joined = with_neighbours(pair, None, None, np.random.default_rng(0))
    assert np.array_equal(joined.waveform, pair.waveform)
    assert joined.truth["onset_sec"][0] == pair.truth["onset_sec"][0] == 0.5


@pytest.mark.parametrize("seed", range(8))
def test_an_audience_is_heard_where_a_piece_begins_and_ends(seed: int) -> None:
    pair = _pair()
    joined = with_neighbours(pair, None, None, np.random.default_rng(seed), (True, True))
    begin = round((float(joined.truth["onset_sec"][0]) - 0.5) * RATE)
    end = begin + len(pair.waveform)
    assert 0 < begin <= 4 * RATE
    assert joined.own_sec == pytest.approx((begin / RATE, end / RATE))
    assert 0 < len(joined.waveform) - end <= 4 * RATE
    np.testing.assert_array_equal(joined.waveform[begin:end], pair.waveform)
    around = _clip(1.0, 6.4), _clip(9.7, 15.0)
    between = with_neighbours(pair, *around, np.random.default_rng(seed), (True, True))
    plain = with_neighbours(pair, *around, np.random.default_rng(seed))
    np.testing.assert_array_equal(between.waveform, plain.waveform)


def test_a_gap_between_clips_is_left_out_and_times_follow() -> None:
    joined = with_neighbours(_pair(), _clip(1.0, 4.0), None, np.random.default_rng(1))
    begin = round((float(joined.truth["onset_sec"][0]) - 0.5) * RATE)
    np.testing.assert_array_equal(joined.waveform[begin + 400 :], _pair().waveform[400:])


def test_an_audience_is_no_louder_than_a_recording_can_be() -> None:
    loud = replace(_pair(), waveform=np.sign(_pair().waveform) * np.float32(0.9))
    for seed in range(20):
        joined = with_neighbours(loud, None, None, np.random.default_rng(seed), (True, True))
        assert np.abs(joined.waveform).max() <= 0.98 + 1e-6


def test_an_audience_is_heard_at_the_ends_of_pieces_only(rendered: Path) -> None:
    folder = ShardFolder(rendered)
    augmentation = Augmentation(
        image_probability=0, audio_probability=0, neighbour_probability=1, audience_probability=1
    )
    places = {entry.key: place for place, entry in enumerate(folder.entries)}
    n_lengthened = 0
    for batch in PairLoader(folder, BatchOptions(1), augmentation):
        place = places[batch.keys[0]]
        is_lengthened = batch.waveforms.shape[1] > len(folder.read(folder.entries[place]).waveform)
        has_neighbour = any(each is not None for each in folder.neighbours(place))
        assert is_lengthened == (any(folder.ends(place)) or has_neighbour)
        assert batch.own_sec[0] is not None
        n_lengthened += is_lengthened
    assert n_lengthened


def test_a_segment_is_at_an_end_by_its_number(rendered: Path) -> None:
    folder = ShardFolder(rendered)
    renderings = {entry.rendering for entry in folder.entries}
    for rendering in renderings:
        numbers = [entry.number for entry in folder.entries if entry.rendering == rendering]
        for place, entry in enumerate(folder.entries):
            if entry.rendering == rendering:
                assert folder.ends(place) == (entry.number == 0, entry.number == max(numbers))


def test_clips_that_do_not_say_when_they_begin_are_refused() -> None:
    with pytest.raises(InputError, match=r"a\.whole\.1 does not say when it begins .* render it again"):
        with_neighbours(_pair(), replace(_clip(1, 6), start_sec=None), None, np.random.default_rng(0))
    with pytest.raises(InputError, match="have 2000 and 1000 Hz"):
        with_neighbours(_pair(), replace(_clip(1, 6), sample_rate_hz=2000), None, np.random.default_rng(0))


def test_neighbours_are_the_originals_next_to_an_entry(rendered: Path) -> None:
    folder = ShardFolder(rendered)
    keys = {entry.key for entry in folder.entries}
    found = 0
    for place, entry in enumerate(folder.entries):
        for step, other in zip((-1, 1), folder.neighbours(place), strict=True):
            key = f"{entry.rendering}.{entry.number + step}"
            assert (None if other is None else other.key) == (key if key in keys else None)
            found += other is not None
    assert found


def test_rendered_clips_sound_alike_where_they_overlap(rendered: Path) -> None:
    folder = ShardFolder(rendered)
    alike = []
    for place, entry in enumerate(folder.entries):
        _, after = folder.neighbours(place)
        if after is None or entry.mutant_of is not None:
            continue
        own, later = folder.read_clip(entry), folder.read_clip(after)
        assert own.start_sec is not None
        assert later.start_sec is not None
        n_between = round((later.start_sec - own.start_sec) * own.sample_rate_hz)
        onset = float(folder.read(after).truth["onset_sec"].min())
        n_shared = min(len(own.waveform) - n_between, round(onset * own.sample_rate_hz))
        if n_shared > 200:
            a, b = own.waveform[n_between : n_between + n_shared], later.waveform[:n_shared]
            alike.append(float(a @ b / max(1e-9, float(np.linalg.norm(a) * np.linalg.norm(b)))))
    assert len(alike) > 1
    assert np.median(alike) > 0.99


@pytest.mark.parametrize("probability", [0.0, 0.5, 1.0])
def test_a_loader_lets_about_so_many_recordings_go_on(rendered: Path, probability: float) -> None:
    folder = ShardFolder(rendered)
    places = {entry.key: place for place, entry in enumerate(folder.entries)}
    augmentation = Augmentation(image_probability=0, audio_probability=0, neighbour_probability=probability)
    loader = PairLoader(folder, BatchOptions(batch_size=2, seed=1), augmentation)
    longer, n_surrounded = 0, 0
    for epoch in range(4):
        for batch in loader.epoch(epoch):
            for key, truth in zip(batch.keys, batch.truths, strict=True):
                own = folder.read(folder.entries[places[key]])
                before, _ = folder.neighbours(places[key])
                if before is not None:
                    n_surrounded += 1
                    longer += bool(truth["onset_sec"][0] > own.truth["onset_sec"][0])
    assert n_surrounded > 10
    assert longer / n_surrounded == pytest.approx(probability, abs=0.25 if probability == 0.5 else 0.0)


def test_squares_are_refused_and_the_share_is_checked(rendered: Path) -> None:
    folder = ShardFolder(rendered)
    folder.manifest["recipe"]["segment"]["shape"] = "square"
    with pytest.raises(InputError, match=r"squares with augmentation\.neighbour_probability = 0\.5"):
        PairLoader(folder, BatchOptions(batch_size=2), Augmentation(neighbour_probability=0.5))
    with pytest.raises(InputError, match="neighbour_probability is -1; expected 0 to 1"):
        Augmentation(neighbour_probability=-1)
