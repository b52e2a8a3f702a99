from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

import fusili_mir
from fusili_mir.alignment.results import Alignment
from fusili_mir.audio.recording import open_recording
from fusili_mir.errors import InputError
from fusili_mir.viewer import view_page
from fusili_mir.viewer.listening_copy import listening_copy
from fusili_mir.viewer.view_data import view_result
from fusili_mir.viewer.view_page import save_view, view_html
from fusili_mir.viewer.view_reading import read_view

VIEWER = Path(fusili_mir.__file__).parent / "viewer"


def data_of(html: str) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_the_policy_names_the_page_s_own_scripts_and_nothing_else(played: Alignment) -> None:
    html = view_html([view_result(played)])
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    directives = dict(each.split(" ", 1) for each in policy[1].split("; "))
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts]
    assert len(scripts) == 3
    assert directives["script-src"].split() == [f"'sha256-{each}'" for each in hashes]
    assert directives["default-src"] == directives["connect-src"] == "'none'"
    assert "unsafe" not in policy[1]
    assert re.search(r'<style nonce="([^"]*)"', html)[1] in directives["style-src"]  # type: ignore[index]


def test_the_same_result_gives_the_same_page(played: Alignment) -> None:
    assert view_html([view_result(played)]) == view_html([view_result(played)])


def test_what_results_share_is_in_the_page_once(played: Alignment, slower: Alignment) -> None:
    html = view_html([view_result(played), view_result(slower)])
    keys = re.findall(r'id="embedded-(\w+)"', html)
    assert len(keys) == len(set(keys)) == len(played.pages.images) + 2
    assert len(data_of(html)["results"]) == 2


def test_a_title_cannot_end_the_script_that_holds_it(played: Alignment) -> None:
    evil = "</script><script>alert(1)</script>.png"
    html = view_html([view_result(replace(played, pages=replace(played.pages, score=None, filename=evil)))])
    assert "<script>alert" not in html
    assert data_of(html)["results"][0]["score"].endswith("script>.png")


def test_a_large_recording_is_a_file_beside_the_page(
    played: Alignment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_page, "_MOST_SOUND_BYTES", 1000)
    save_view(played, tmp_path / "view.html")
    html = (tmp_path / "view.html").read_text(encoding="utf-8")
    (name,) = data_of(html)["beside"].values()
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(["view.html", name])
    assert soundfile.info(tmp_path / name).samplerate == 16_000
    assert "file:" in html.split("media-src")[1].split(";")[0]


def test_nothing_to_show_is_one_clear_line() -> None:
    with pytest.raises(InputError, match="no results to show"):
        save_view([], "view.html")


def test_third_party_files_are_those_that_the_readme_names() -> None:
    readme = (VIEWER / "third_party" / "README.md").read_text(encoding="utf-8")
    stated = dict(re.findall(r"^\| `([\w.]+)` .*`([0-9a-f]{64})` \|$", readme, re.MULTILINE))
    assert set(stated) == {file.name for file in (VIEWER / "third_party").glob("*.js")}
    for name, digest in stated.items():
        assert hashlib.sha256((VIEWER / "third_party" / name).read_bytes()).hexdigest() == digest


def test_a_compressed_file_is_played_as_it_is_and_an_excerpt_from_its_own_second(tmp_path: Path) -> None:
    sound = 0.1 * np.ones((32_000, 1), np.float32)
    sound[16_000:16_160] = 0.5
    soundfile.write(tmp_path / "a.flac", sound, 16_000)
    whole = listening_copy(open_recording(tmp_path / "a.flac"))
    assert whole.sound.content == (tmp_path / "a.flac").read_bytes()
    assert (whole.start_sec, whole.duration_sec) == (0.0, 2.0)
    peaks = base64.b64decode(whole.peaks)
    assert peaks[100] == 255
    assert peaks[99] == pytest.approx(51, abs=1)
    part = listening_copy(open_recording(tmp_path / "a.flac", start_sec=0.5, end_sec=1.5))
    assert (part.start_sec, part.duration_sec) == (0.5, 1.0)
    assert base64.b64decode(part.peaks)[50] == 255


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"type":"audio/flac"', '"type":"text/html"'),
        ('"type":"audio/flac"', '"type":"audio/../../../x"'),
        ('"type":"image/svg+xml"', '"type":"text/html"'),
        ('"title":', '"heading":'),
        ('"durationSec":', '"durationSec":NaN,"was":'),
        ('"results":', '"results":[],"others":'),
    ],
)
def test_a_page_of_a_stranger_that_we_would_not_write_is_refused(
    tmp_path: Path, played: Alignment, old: str, new: str
) -> None:
    page = tmp_path / "view.html"
    save_view(played, page)
    text = page.read_text(encoding="utf-8")
    assert old in text
    page.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError, match=r"view\.html: "):
        read_view(page)
