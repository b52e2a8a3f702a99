"""A result is corrected in the browser, and nobody else can ask the server for anything."""

from __future__ import annotations

import csv
import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile
from example_browser import Window
from example_performances import perform, record

from fusili_mir.alignment.aligner import Aligner
from fusili_mir.alignment.played import play_pages
from fusili_mir.alignment.results import Alignment
from fusili_mir.model.encoder import Encoder
from fusili_mir.output.alignment_files import save_alignment, write_formats
from fusili_mir.pages.pages import Pages
from fusili_mir.viewer.correction import Correction
from fusili_mir.viewer.embedded import Embedded
from fusili_mir.viewer.view_reading import read_view
from fusili_mir.viewer.view_server import ViewServer

FORMATS = ("html", "notes", "measures")


@pytest.fixture
def folder(tmp_path: Path, played: Alignment) -> Path:
    save_alignment(played, tmp_path / "result", FORMATS)
    return tmp_path / "result"


@pytest.fixture
def server(folder: Path, song: Pages, encoder: Encoder, tmp_path: Path) -> Iterator[ViewServer]:
    soundfile.write(tmp_path / "song.wav", record(perform(play_pages(song))).samples, 16_000)
    correction = Correction(
        folder,
        lambda: Aligner(encoder).align(song, tmp_path / "song.wav"),
        lambda alignment, staged: write_formats(alignment, staged, FORMATS),
    )
    server = ViewServer(read_view(folder), [correction])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
    correction.finish()


def starts(folder: Path) -> list[float]:
    with (folder / "measures.csv").open(newline="") as lines:
        return [float(row["start_sec"]) for row in csv.DictReader(lines)]


def ask(
    server: ViewServer, path: str, method: str = "GET", body: object = None, **headers: str
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=30)
    content = None if body is None else json.dumps(body)
    usual = {"Origin": server.origin, "Content-Type": "application/json"} if method == "POST" else {}
    connection.request(method, path, content, {**usual, **headers})
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def test_dragging_a_bar_line_changes_the_files_between_its_neighbours_and_undo_brings_them_back(
    server: ViewServer, folder: Path, window: Window
) -> None:
    window.open(server.url)
    window.page.keyboard.press("c")
    before = starts(folder)
    box = window.page.locator("#ruler").bounding_box()
    assert box is not None
    duration = float(window.page.evaluate("Number(document.getElementById('seek').max)"))

    def drag(measure: int, by_sec: float, number: int) -> None:
        x = box["x"] + starts(folder)[measure] / duration * box["width"]
        y = box["y"] + box["height"] / 2
        window.page.mouse.move(x, y)
        window.page.mouse.down()
        window.page.mouse.move(x + by_sec / duration * box["width"], y, steps=4)
        window.page.mouse.up()
        window.until(f"document.body.dataset.decoded === '{number}'", 60)
        window.until("document.getElementById('message').textContent === 'Saved.'", 60)

    drag(5, 0.05, 1)
    drag(15, 0.05, 2)
    settled = starts(folder)
    drag(10, 0.3, 3)
    after = starts(folder)
    assert after[10] == pytest.approx(settled[10] + 0.3, abs=0.03)
    assert after[:6] == settled[:6]
    assert after[15:] == settled[15:]
    assert len((folder / "anchors.csv").read_text().splitlines()) == 4
    window.page.locator("#undo").click()
    window.until("document.body.dataset.decoded === '4'", 60)
    assert starts(folder) == settled
    assert len((folder / "anchors.csv").read_text().splitlines()) == 3
    assert window.page.locator("#anchors li").count() == 2
    assert np.abs(np.array(settled) - before).max() < 0.2


def test_impossible_anchors_are_refused_and_change_nothing(server: ViewServer, folder: Path) -> None:
    before = (folder / "measures.csv").read_bytes()
    anchors = [{"measure": "5", "second": 6.0}, {"measure": "7", "second": 5.0}]
    body = {"result": 0, "anchors": anchors}
    status, answer = ask(server, f"/{server.token}/correct", "POST", body)
    assert status == 409
    assert "measure 5 is anchored at 6 s, measure 7 at 5 s" in json.loads(answer)["error"]
    assert (folder / "measures.csv").read_bytes() == before
    assert not (folder / ".before").exists()


def test_the_page_is_served_only_with_the_token_to_our_host_and_origin(server: ViewServer) -> None:
    page = f"/{server.token}/"
    assert ask(server, page)[0] == 200
    assert ask(server, "/")[0] == 403
    assert ask(server, "/wrong/")[0] == 403
    assert ask(server, page, Host="evil.example")[0] == 421
    assert ask(server, page, Origin="http://evil.example")[0] == 403
    for name in ("../inputs.json", "..%2finputs.json", "measures.csv", "%2e%2e/measures.csv", "/etc/passwd"):
        assert ask(server, page + name)[0] in (403, 404), name


def test_another_origin_can_neither_correct_nor_undo(server: ViewServer) -> None:
    body = {"result": 0, "anchors": [{"measure": "5", "second": 4.0}]}
    path = f"/{server.token}/correct"
    assert ask(server, path, "POST", body, Origin="http://evil.example")[0] == 403
    assert ask(server, path, "POST", body, Origin="null")[0] == 403
    assert ask(server, path, "POST", body, **{"Content-Type": "text/plain"})[0] == 403
    assert ask(server, "/correct", "POST", body)[0] == 403
    assert ask(server, path, "POST", {"result": 7, "anchors": []})[0] == 400
    assert ask(server, path, "POST", [])[0] == 400
    assert server.corrections[0].is_saved


NONSENSE = (
    b"",
    b"{",
    b"[" * 100_000,
    b"\xff",
    b"[]",
    b'{"result": 1, "anchors": []}',
    b'{"result": -2, "anchors": []}',
    b'{"result": 0.5, "anchors": []}',
    b'{"result": Infinity, "anchors": []}',
    b'{"result": 0, "anchors": [[]]}',
    b'{"result": 0, "anchors": [{"second": 1, "page": Infinity, "x": 0, "y": 0}]}',
    b'{"result": 0, "anchors": [{"second": 1, "page": 0, "x": NaN, "y": 0}]}',
    b'{"result": 0, "anchors": [{"second": 1, "measure": "\\ud800"}]}',
)


def test_requests_that_make_no_sense_are_refused_in_one_word(
    server: ViewServer, capfd: pytest.CaptureFixture[str]
) -> None:
    headers = {"Origin": server.origin, "Content-Type": "application/json"}
    for body in NONSENSE:
        connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=30)
        connection.request("POST", f"/{server.token}/correct", body, headers)
        assert connection.getresponse().status == 400, body[:80]
        connection.close()
    assert capfd.readouterr().err == ""


def test_a_part_of_a_sound_that_no_sound_has_is_none(
    server: ViewServer, capfd: pytest.CaptureFixture[str]
) -> None:
    server.sounds = {"0" * 16: ("view.mp3", Embedded(b"sound", "audio/mpeg"))}
    path = f"/{server.token}/view.mp3"
    assert ask(server, path, Range="bytes=1-3") == (206, b"oun")
    assert ask(server, path, Range=f"bytes={'9' * 5000}-") == (200, b"sound")
    assert capfd.readouterr().err == ""
