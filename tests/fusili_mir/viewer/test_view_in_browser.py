"""The page in a real browser. A window fails on an error in its console and on a request to elsewhere."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from example_browser import Window

from fusili_mir.alignment.results import Alignment
from fusili_mir.pages.pages import PageImages
from fusili_mir.viewer.view_page import save_view


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("views")


@pytest.fixture(scope="module")
def view(folder: Path, played: Alignment) -> Path:
    save_view(played, folder / "played.html")
    return folder / "played.html"


@pytest.fixture(scope="module")
def repeated_view(folder: Path, repeated: Alignment) -> Path:
    save_view(repeated, folder / "repeated.html")
    return folder / "repeated.html"


@pytest.fixture(scope="module")
def tilted_view(folder: Path, of_tilted_images: Alignment) -> Path:
    save_view(of_tilted_images, folder / "tilted.html")
    return folder / "tilted.html"


@pytest.mark.parametrize("name", ["played", "repeated", "of_tilted_images"])
def test_the_cursor_is_where_the_alignment_says(
    name: str, folder: Path, window: Window, request: pytest.FixtureRequest
) -> None:
    alignment: Alignment = request.getfixturevalue(name)
    save_view(alignment, folder / f"cursor-{name}.html")
    window.open(folder / f"cursor-{name}.html")
    music = alignment.grid.centre(np.flatnonzero(~alignment.path.is_filler))
    for second in np.linspace(music[0], music[-1], 10):
        window.seek(float(second))
        second = window.seconds  # sliders have steps
        page, x, y = alignment.position_maps.seconds_to_position(second)
        cursor = window.cursor()
        assert cursor["page"] == page
        # the line runs through the middle of the system, above and below which it goes on as far
        slant = abs(cursor["y"] - float(y)) * np.tan(np.radians(2))
        assert cursor["x"] == pytest.approx(float(x), abs=0.2 + slant)


def test_a_click_on_a_note_plays_from_its_onset(view: Path, window: Window, played: Alignment) -> None:
    window.open(view)
    for row in (5, 20, 41):
        note = played.notes[row]
        window.click_score(
            int(note["page"]), float(note["x0"] + note["x1"]) / 2, float(note["y0"] + note["y1"]) / 2
        )
        window.until("document.body.classList.contains('playing')")
        window.page.keyboard.press("Space")
        window.until("!document.body.classList.contains('playing')")
        assert window.seconds == pytest.approx(note["onset_sec"], abs=0.35)  # it has played a moment
        assert window.seconds >= note["onset_sec"] - 0.011
    window.page.evaluate("HTMLMediaElement.prototype.play = async () => {}")  # stay where the click went
    for row in (3, 30, 47):
        note = played.notes[row]
        window.click_score(int(note["page"]), float(note["x0"]) + 1, float(note["y0"] + note["y1"]) / 2)
        assert window.seconds == pytest.approx(note["onset_sec"], abs=0.011)


def test_a_second_click_plays_the_second_time_that_a_note_sounds(
    repeated_view: Path, window: Window, repeated: Alignment
) -> None:
    window.open(repeated_view)
    window.page.evaluate("HTMLMediaElement.prototype.play = async () => {}")
    heads, counts = np.unique(repeated.notes["notated_id"], return_counts=True)
    twice = repeated.notes[repeated.notes["notated_id"] == heads[counts == 2][0]]
    x, y = float(twice["x0"][0] + twice["x1"][0]) / 2, float(twice["y0"][0] + twice["y1"][0]) / 2
    found = []
    for _ in range(3):
        window.click_score(int(twice["page"][0]), x, y)
        found.append(window.seconds)
    first, second = np.sort(twice["onset_sec"]).tolist()
    assert found == pytest.approx([first, second, first], abs=0.011)


def test_notes_light_up_while_they_sound(view: Path, window: Window, played: Alignment) -> None:
    window.open(view)
    note = played.notes[17]
    window.seek(float(note["onset_sec"] + note["offset_sec"]) / 2)
    lit = window.page.locator(".notes rect").evaluate_all(
        "all => all.map(e => ['x', 'y', 'width', 'height'].map(name => Number(e.getAttribute(name))))"
    )
    assert len(lit) == 1
    x, y, width, height = lit[0]
    assert x + width / 2 == pytest.approx((note["x0"] + note["x1"]) / 2, abs=0.1)
    assert y + height / 2 == pytest.approx((note["y0"] + note["y1"]) / 2, abs=0.1)


def test_arrow_keys_go_from_measure_to_measure(view: Path, window: Window, played: Alignment) -> None:
    window.open(view)
    starts = played.measures["start_sec"]
    window.seek(float(starts[4]) + 0.6)
    for key, expected in (
        ("ArrowLeft", starts[4]),
        ("ArrowLeft", starts[3]),
        ("ArrowRight", starts[4]),
        ("ArrowRight", starts[5]),
        ("Shift+ArrowRight", starts[5] + 1),
    ):
        window.page.keyboard.press(key)
        assert window.seconds == pytest.approx(expected, abs=0.011), key


def test_plus_and_minus_change_the_tempo_and_keep_the_pitch(view: Path, window: Window) -> None:
    window.page.add_init_script(
        "window.Audio = function () { return window.heard = document.createElement('audio'); }"
    )
    window.open(view)
    for key in ("-", "-", "-", "-"):
        window.page.keyboard.press(key)
    assert window.page.locator("#rate-text").inner_text() == "80 %"
    assert window.page.evaluate("[heard.playbackRate, heard.preservesPitch]") == [0.8, True]
    window.page.keyboard.press("0")
    window.page.keyboard.press("+")
    assert window.page.evaluate("heard.playbackRate") == 1.05


def test_a_stretch_is_repeated_from_bar_to_bar(view: Path, window: Window, played: Alignment) -> None:
    window.page.add_init_script(
        "window.Audio = function () { return window.heard = document.createElement('audio'); }"
    )
    window.open(view)
    start, end = float(played.measures["start_sec"][2]), float(played.measures["end_sec"][2])
    window.seek(start + 0.2)
    window.page.keyboard.press("l")
    window.page.keyboard.press("l")
    assert window.page.locator("#loop").get_attribute("aria-pressed") == "true"
    window.seek(end - 0.15)
    window.page.keyboard.press("Space")
    window.until(f"heard.currentTime < {end - 0.3}")
    assert window.page.evaluate("heard.currentTime") >= start - 0.01
    window.page.keyboard.press("Space")
    window.page.locator("#loop-to").select_option(index=3)
    window.seek(float(played.measures["end_sec"][3]) - 0.1)
    window.page.keyboard.press("Space")
    window.until(f"heard.currentTime < {start + 0.3}")
    window.page.keyboard.press("Escape")
    assert window.page.locator("#loop").get_attribute("aria-pressed") == "false"


def test_hovering_tells_measure_beat_second_and_probability(
    view: Path, window: Window, played: Alignment
) -> None:
    window.open(view)
    note = played.notes[11]  # the second note of the sixth measure
    sheet = window.page.locator(f'figure[data-page="{note["page"]}"]')
    scale = sheet.evaluate("e => e.clientWidth / e.querySelector('svg').viewBox.baseVal.width")
    sheet.hover(position={"x": float(note["x0"] + 2) * scale, "y": float(note["y0"] + 3) * scale})
    percent = round(100 * float(note["confidence"]))
    text = window.page.locator("#tip").inner_text()
    assert text.startswith(f"bar 6 · beat 2 · {note['onset_sec']:.2f} s · ")
    assert abs(int(text.split()[-2]) - percent) <= 1


def test_a_click_on_a_scan_plays_the_place(
    tilted_view: Path, window: Window, of_tilted_images: Alignment
) -> None:
    window.open(tilted_view)
    window.page.evaluate("HTMLMediaElement.prototype.play = async () => {}")
    second = float(np.nanmedian(of_tilted_images.moments.seconds))  # type: ignore[union-attr]
    page, x, y = of_tilted_images.position_maps.seconds_to_position(second + 0.1)
    window.click_score(int(page), float(x), float(y))
    expected = float(of_tilted_images.position_maps.position_to_seconds(page, x, y))
    assert window.seconds == pytest.approx(expected, abs=0.06)


def test_another_recording_goes_on_at_the_same_bar(
    folder: Path, window: Window, played: Alignment, slower: Alignment
) -> None:
    save_view([played, slower], folder / "both.html")
    window.open(folder / "both.html")
    window.seek(float(played.measures["start_sec"][9]) + 0.01)
    window.page.keyboard.press("r")
    window.until("document.getElementById('results').value === '1'")
    assert window.page.locator("#bar").inner_text() == "bar 10"
    assert window.seconds == pytest.approx(float(slower.measures["start_sec"][9]), abs=0.05)


def test_html_in_names_is_text(folder: Path, window: Window, played: Alignment) -> None:
    evil = "</script><img src=x onerror=alert(1)><b>bold"
    made_with = played.made_with
    assert made_with is not None
    recording = replace(made_with.recording, name=evil)
    measures = played.measures.copy()
    measures["number"] = "<b>1</b>"
    named = replace(
        played,
        pages=replace(played.pages, filename=evil, score=None),
        measures=measures,
        made_with=replace(made_with, recording=recording),
    )
    save_view(named, folder / "evil.html")
    dialogs: list[str] = []
    window.page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    window.open(folder / "evil.html")
    assert window.page.locator("#recording").inner_text() == evil
    assert window.page.locator("b, img[src='x']").count() == 0
    window.page.keyboard.press("ArrowRight")
    assert window.page.locator("#bar").inner_text() == "bar <b>1</b>"
    assert dialogs == []


def test_a_page_without_a_recording_still_shows_places(
    folder: Path, window: Window, played: Alignment
) -> None:
    save_view(replace(played, recording=None), folder / "silent.html")
    window.open(folder / "silent.html")
    assert "without a recording" in window.page.locator("#message").inner_text()
    note = played.notes[8]
    window.click_score(
        int(note["page"]), float(note["x0"] + note["x1"]) / 2, float(note["y0"] + note["y1"]) / 2
    )
    assert window.seconds == pytest.approx(note["onset_sec"], abs=0.011)
    assert window.page.locator("#play").is_disabled()


def test_sixty_pages_open_in_two_seconds_and_are_decoded_when_they_are_near(
    folder: Path, window: Window, of_tilted_images: Alignment
) -> None:
    pages = of_tilted_images.pages
    many = replace(
        pages,
        images=PageImages([pages.images.source(0)] * 60),
        skews=pages.skews * 60,
    )
    save_view(replace(of_tilted_images, pages=many), folder / "sixty.html")
    window.open(folder / "sixty.html")
    opened_ms = window.page.evaluate("performance.now()")
    assert window.page.locator("figure").count() == 60
    assert 1 <= window.page.locator("figure img[src]").count() < 20
    assert opened_ms < 2000
    window.page.locator("#scroller").evaluate("e => e.scrollTo(0, e.scrollHeight)")
    window.page.wait_for_selector('figure[data-page="59"] img[src]')


def test_colours_zoom_and_names_for_screen_readers(view: Path, window: Window) -> None:
    window.page.emulate_media(color_scheme="dark")
    window.open(view)
    assert window.page.evaluate("document.documentElement.dataset.shown") == "dark"
    window.page.keyboard.press("d")
    assert window.page.evaluate("document.documentElement.dataset.shown") == "light"
    width = window.page.locator("figure").first.evaluate("e => e.clientWidth")
    window.page.keyboard.press("z")
    assert window.page.locator("figure").first.evaluate("e => e.clientWidth") == pytest.approx(
        1.2 * width, abs=2
    )
    unnamed = window.page.locator("button, select, input, img").evaluate_all(
        """all => all.filter(e => !(e.getAttribute("aria-label") || e.alt || e.textContent.trim()
            || e.labels?.[0]?.textContent.trim())).map(e => e.outerHTML)"""
    )
    assert unnamed == []


def test_anchors_set_on_the_page_are_downloaded_as_a_table(
    view: Path, window: Window, played: Alignment, tmp_path: Path
) -> None:
    window.open(view)
    window.page.keyboard.press("c")
    window.seek(float(played.measures["start_sec"][3]) + 0.1)
    window.page.keyboard.press("t")
    window.seek(float(played.measures["start_sec"][4]) + 0.2)
    window.page.keyboard.press("t")
    note = played.notes[20]
    window.click_score(
        int(note["page"]), float(note["x0"] + note["x1"]) / 2, float(note["y0"] + note["y1"]) / 2
    )
    window.seek(float(note["onset_sec"]) + 0.05)
    window.page.keyboard.press("a")
    with window.page.expect_download() as download:
        window.page.locator("#download").click()
    download.value.save_as(tmp_path / "anchors.csv")
    with (tmp_path / "anchors.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [(row["measure"], row["pass"], row["note"]) for row in rows] == [
        ("4", "1", ""),
        ("5", "1", ""),
        ("", "", str(note["id"])),
    ]
    assert [float(row["second"]) for row in rows] == pytest.approx(
        [
            float(played.measures["start_sec"][3]) + 0.1,
            float(played.measures["start_sec"][4]) + 0.2,
            float(note["onset_sec"]) + 0.05,
        ],
        abs=0.02,
    )
