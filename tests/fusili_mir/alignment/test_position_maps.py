from __future__ import annotations

import numpy as np
import pytest

from fusili_mir.alignment.frame_places import FRAME_DTYPE
from fusili_mir.alignment.position_maps import PlaceMoments, get_certainty_map, get_position_maps
from fusili_mir.errors import InputError
from fusili_mir.pages.original_pixels import places_to_original
from fusili_mir.pages.skew import Skew


def frames_at(*places: tuple[int, int, float, float]) -> np.ndarray:
    """One frame per second, at (page, system, x, y)."""
    frames = np.zeros(len(places), FRAME_DTYPE)
    frames["onset_sec"] = np.arange(len(places))
    for name, values in zip(("page", "system", "x", "y"), zip(*places, strict=True), strict=True):
        frames[name] = values
    return frames


TWO_SYSTEMS = frames_at((0, 0, 100, 50), (0, 0, 200, 50), (0, 1, 100, 250), (1, 2, 100, 50), (1, 2, 300, 50))


def test_the_middle_of_each_frame_is_at_its_place() -> None:
    page, x, y = get_position_maps(TWO_SYSTEMS).seconds_to_position(np.arange(5) + 0.5)
    assert page.tolist() == [0, 0, 0, 1, 1]
    assert x.tolist() == [100, 200, 100, 100, 300]
    assert y.tolist() == [50, 50, 250, 50, 50]


def test_the_place_moves_evenly_within_a_system_and_jumps_between_systems() -> None:
    page, x, y = get_position_maps(TWO_SYSTEMS).seconds_to_position([1.0, 1.75, 2.25])
    assert page.tolist() == [0, 0, 0]
    assert x.tolist() == [150, 200, 100]
    assert y.tolist() == [50, 50, 250]


def test_before_and_after_the_recording_the_place_stays() -> None:
    _, x, _ = get_position_maps(TWO_SYSTEMS).seconds_to_position([-5, 99])
    assert x.tolist() == [100, 300]


def test_places_map_back_to_the_seconds_they_came_from() -> None:
    maps = get_position_maps(TWO_SYSTEMS)
    seconds = np.array([0.5, 0.9, 1.5, 2.5, 3.5, 4.0, 4.5])
    back = maps.position_to_seconds(*maps.seconds_to_position(seconds))
    assert back == pytest.approx(seconds)


def test_a_place_left_of_its_system_is_at_its_beginning_and_one_off_the_line_in_the_nearest_system() -> None:
    maps = get_position_maps(TWO_SYSTEMS)
    assert maps.position_to_seconds(0, 20, 50) == 0.5
    assert maps.position_to_seconds(0, 100, 190) == 2.5


def test_frames_cut_to_the_recording_keep_their_middles() -> None:
    frames = frames_at(*[(0, 0, 100 * number, 50) for number in range(6)])
    frames["onset_sec"] = np.clip(np.arange(6) - 0.3, 0.0, 4.2)
    _, x, _ = get_position_maps(frames).seconds_to_position(np.arange(5) + 0.2)
    assert x == pytest.approx([0, 100, 200, 300, 400])


def test_a_page_that_is_not_played_has_no_seconds() -> None:
    assert np.isnan(get_position_maps(TWO_SYSTEMS).position_to_seconds([0, 7], 100, 50)).tolist() == [
        False,
        True,
    ]


def test_a_repeated_place_sounds_when_it_is_first_played() -> None:
    twice = frames_at(*[(0, 0, x, 50) for x in (100, 200, 300, 200, 300, 400)])
    maps = get_position_maps(twice)
    assert maps.position_to_seconds(0, [250, 400], 50).tolist() == [2.0, 5.5]


def test_a_table_without_frames_is_refused() -> None:
    with pytest.raises(InputError, match="no frames"):
        get_position_maps(np.empty(0, FRAME_DTYPE))


def test_what_lies_to_the_right_of_a_place_sounds_after_the_music_has_left_it() -> None:
    maps = get_position_maps(frames_at(*[(0, 0, 100, 50)] * 4, (0, 0, 200, 50)))
    assert maps.position_to_seconds(0, [100, 150], 50).tolist() == [0.5, 4.0]


def moments_at(*places: tuple[int, float, float, float]) -> PlaceMoments:
    """Places from x0 to x1 of a system, each of which begins at a second: (system, x0, x1, seconds)."""
    system, x0, x1, seconds = (np.array(values) for values in zip(*places, strict=True))
    number = np.arange(len(places), dtype=np.float64)
    confidence, margin_sec = 0.9 - 0.1 * number, 0.01 * (number + 1)
    return PlaceMoments(
        system, x0.astype(float), x1.astype(float), seconds.astype(float), confidence, margin_sec
    )


def test_a_place_sounds_when_it_begins_however_long_the_frames_stay_there() -> None:
    maps = get_position_maps(
        TWO_SYSTEMS, moments_at((0, 90, 110, 0.2), (0, 190, 210, 1.3), (1, 90, 120, 2.1))
    )
    assert maps.position_to_seconds(0, [90, 100, 110, 200], 50) == pytest.approx([0.2, 0.2, 0.2, 1.3])
    assert maps.position_to_seconds(0, [90, 120], 250) == pytest.approx([2.1, 2.1])


def test_time_is_even_between_places_and_constant_beside_them() -> None:
    maps = get_position_maps(TWO_SYSTEMS, moments_at((0, 90, 110, 0.2), (0, 190, 210, 1.2)))
    assert maps.position_to_seconds(0, [20, 130, 150, 500], 50) == pytest.approx([0.2, 0.45, 0.7, 1.2])


def test_overlapping_places_are_divided_in_the_middle() -> None:
    maps = get_position_maps(TWO_SYSTEMS, moments_at((0, 90, 130, 0.2), (0, 110, 150, 1.2)))
    assert maps.position_to_seconds(0, [119, 121], 50) == pytest.approx([0.2, 1.2])


def test_a_place_that_is_played_again_has_its_first_moment() -> None:
    twice = moments_at((0, 90, 110, 0.2), (0, 190, 210, 1.2), (0, 90, 110, 2.2), (0, 190, 210, 3.2))
    maps = get_position_maps(TWO_SYSTEMS, twice)
    assert maps.position_to_seconds(0, [100, 200], 50) == pytest.approx([0.2, 1.2])


def test_a_system_without_a_place_that_was_heard_has_no_seconds() -> None:
    maps = get_position_maps(TWO_SYSTEMS, moments_at((0, 90, 110, 0.2)))
    assert np.isnan(maps.position_to_seconds(0, 100, 250))


def test_moments_do_not_change_the_places_of_seconds() -> None:
    seconds = np.linspace(-1, 6, 20)
    plain, with_moments = (
        get_position_maps(TWO_SYSTEMS),
        get_position_maps(TWO_SYSTEMS, moments_at((0, 90, 110, 0.2))),
    )
    for found, expected in zip(
        with_moments.seconds_to_position(seconds), plain.seconds_to_position(seconds), strict=True
    ):
        assert found.tolist() == expected.tolist()


TILTED = (Skew(1.3, 400, 300), Skew(-1.0, 400, 300))


def tilted(frames: np.ndarray) -> np.ndarray:
    turned = frames.copy()
    turned["x"], turned["y"] = places_to_original(TILTED, frames["page"], frames["x"], frames["y"])
    return turned


def test_on_tilted_pages_both_maps_are_in_pixels_of_the_original_page() -> None:
    upright = get_position_maps(TWO_SYSTEMS)
    maps = get_position_maps(tilted(TWO_SYSTEMS), skews=TILTED)
    seconds = np.linspace(0, 5, 40)
    page, x, y = upright.seconds_to_position(seconds)
    turned_x, turned_y = places_to_original(TILTED, page, x, y)
    found = maps.seconds_to_position(seconds)
    assert found[0].tolist() == page.tolist()
    assert found[1] == pytest.approx(turned_x, abs=1e-3)
    assert found[2] == pytest.approx(turned_y, abs=1e-3)
    above = places_to_original(TILTED, page, x, y - 30)  # a head above the middle of its system
    assert maps.position_to_seconds(page, *above) == pytest.approx(
        upright.position_to_seconds(page, x, y - 30), abs=1e-4
    )


def test_moments_are_found_on_tilted_pages() -> None:
    moments = moments_at((0, 90, 110, 0.2), (0, 190, 210, 1.3), (1, 90, 120, 2.1))
    maps = get_position_maps(tilted(TWO_SYSTEMS), moments, TILTED)
    x, y = places_to_original(TILTED, 0, [92, 208, 118], [20, 80, 250])
    assert maps.position_to_seconds(0, x, y) == pytest.approx([0.2, 1.3, 2.1])


def test_without_skews_a_tilted_system_is_still_the_nearest_along_its_whole_length() -> None:
    # A system that falls by 200 px from left to right, above one that falls as much.
    steep = frames_at((0, 0, 0, 0), (0, 0, 1000, 200), (0, 1, 0, 150), (0, 1, 1000, 350))
    maps = get_position_maps(steep)
    assert maps.position_to_seconds(0, [900, 900], [190, 320]) == pytest.approx([1.4, 3.4])


def test_a_place_is_as_sure_as_itself_and_between_two_as_the_less_sure_one() -> None:
    moments = moments_at((0, 90, 110, 0.2), (0, 190, 210, 1.3), (1, 90, 120, 2.1))
    certainty = get_certainty_map(TWO_SYSTEMS, moments)(0, [100, 150, 200], 50)
    assert certainty.confidence == pytest.approx([0.9, 0.8, 0.8])
    assert certainty.earliest_sec == pytest.approx([0.19, 0.19, 1.28])
    assert certainty.latest_sec == pytest.approx([0.21, 1.32, 1.32])
    elsewhere = get_certainty_map(TWO_SYSTEMS, moments)(7, 100.0, 50)
    assert np.isnan(elsewhere).all()  # a page that is not played


def test_without_moments_a_place_is_as_sure_as_its_frame() -> None:
    frames = TWO_SYSTEMS.copy()
    frames["confidence"] = 0.5 + 0.1 * np.arange(len(frames))
    frames["earliest_sec"], frames["latest_sec"] = frames["onset_sec"] - 1, frames["onset_sec"] + 2
    certainty = get_certainty_map(frames)(0, float(frames["x"][0]), float(frames["y"][0]))
    assert (certainty.confidence, certainty.earliest_sec) == (pytest.approx(0.5), pytest.approx(-1.0))
