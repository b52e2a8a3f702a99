"""Files and objects are aligned alike, excerpts keep the recording's own seconds, and results print shortly."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from example_bundles import write_pitch_bundle
from example_performances import PITCHES, perform, record, tune
from PIL import Image

from fusili_mir.alignment.aligning import align_pages, align_recording, align_score
from fusili_mir.alignment.played import play_pages
from fusili_mir.alignment.results import Alignment
from fusili_mir.alignment.retrieval import point_at_spot, point_at_time
from fusili_mir.audio.recording import AudioSamples
from fusili_mir.errors import InputError
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import Pages, load_pages, render_pages

START_SEC, END_SEC = 4.28, 12.0  # between two notes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("brought")
    (folder / "tune.musicxml").write_text(tune(PITCHES * 2))
    return folder


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Encoder:
    return Encoder(write_pitch_bundle(folder / "bundle"), n_threads=1)


@pytest.fixture(scope="module")
def pages(folder: Path) -> Pages:
    pages = render_pages(folder / "tune.musicxml")
    Image.fromarray(pages.images[0]).save(folder / "page.png")
    return pages


@pytest.fixture(scope="module")
def recording(folder: Path, pages: Pages) -> AudioSamples:
    recording = record(perform(play_pages(pages)))
    soundfile.write(folder / "tune.wav", recording.samples, 16_000, "FLOAT")
    return recording


@pytest.fixture(scope="module")
def whole(pages: Pages, recording: AudioSamples, encoder: Encoder) -> Alignment:
    return align_recording(pages, recording, model=encoder)


@pytest.fixture(scope="module")
def excerpt(pages: Pages, recording: AudioSamples, encoder: Encoder) -> Alignment:
    return align_recording(pages, recording, model=encoder, start_sec=START_SEC, end_sec=END_SEC)


Bring = Callable[[Path, AudioSamples], Any]


@pytest.mark.parametrize(
    "bring",
    [
        lambda folder, recording: folder / "tune.wav",
        lambda folder, recording: str(folder / "tune.wav"),
        lambda folder, recording: recording,
        lambda folder, recording: (recording.samples, 16_000),
        lambda folder, recording: (np.stack([recording.samples] * 2), 16_000.0),
        lambda folder, recording: io.BytesIO((folder / "tune.wav").read_bytes()),
    ],
    ids=["Path", "str", "AudioSamples", "(y, sr)", "(2, n)", "BytesIO"],
)
def test_a_recording_may_be_brought_in_any_form(
    folder: Path, pages: Pages, recording: AudioSamples, encoder: Encoder, whole: Alignment, bring: Bring
) -> None:
    _, alignment, _ = align_score(pages, bring(folder, recording), model=encoder)
    found = [note["performance_time"] for note in alignment]
    assert found == pytest.approx(whole.notes["onset_sec"].tolist(), abs=1e-6)


def test_a_score_may_be_brought_in_any_form(
    folder: Path, pages: Pages, recording: AudioSamples, encoder: Encoder, whole: Alignment
) -> None:
    for score in (folder / "tune.musicxml", str(folder / "tune.musicxml"), pages):
        performance, _, _ = align_score(score, recording, model=encoder)
        assert len(performance.note_array()) == len(whole.notes)
        assert np.array_equal(align_recording(score, recording, model=encoder).frames, whole.frames)


def test_pages_may_be_brought_in_any_form(
    folder: Path, pages: Pages, recording: AudioSamples, encoder: Encoder
) -> None:
    expected = align_pages(folder / "page.png", recording, model=encoder)
    image = pages.images[0]
    for brought in (
        load_pages(folder / "page.png"),
        str(folder / "page.png"),
        [folder / "page.png"],
        Image.fromarray(image),
        image,
        [np.stack([image / 255.0] * 3)],
    ):
        assert np.array_equal(align_pages(brought, recording, model=encoder), expected)


@pytest.mark.parametrize(
    "wrong", [None, 5, 2.5, [None], {}, object(), "/", ""], ids=lambda wrong: type(wrong).__name__
)
def test_what_is_not_a_score_is_one_line(wrong: Any, recording: AudioSamples, encoder: Encoder) -> None:
    for align in (align_score, align_pages, align_recording):
        with pytest.raises(InputError) as error:
            align(wrong, recording, model=encoder)
        assert "\n" not in str(error.value)


def test_images_have_no_notes_to_align(folder: Path, recording: AudioSamples, encoder: Encoder) -> None:
    for score in (folder / "page.png", load_pages(folder / "page.png")):
        with pytest.raises(InputError, match=r"page\.png: only images are known, .*; use align_pages"):
            align_score(score, recording, model=encoder)


@pytest.mark.parametrize("wrong", [5, object(), ["small"]], ids=["int", "object", "list"])
def test_what_is_not_a_model_is_one_line(wrong: Any, pages: Pages, recording: AudioSamples) -> None:
    with pytest.raises(InputError, match=r"the model: .*, expected the folder of a bundle"):
        align_recording(pages, recording, model=wrong)
    with pytest.raises(InputError, match=r"the model: .*, expected the folder of a bundle"):
        Encoder(wrong)


def test_a_model_is_named_by_its_folder_wherever_one_is_wanted(encoder: Encoder) -> None:
    folder = encoder.bundle.folder
    assert Encoder(folder).bundle == Encoder(str(folder)).bundle == encoder.bundle
    assert Encoder().bundle.manifest.name == "small"
    with pytest.raises(InputError, match=r"nowhere: "):
        Encoder("nowhere")


def test_mistakes_are_found_before_the_score_is_encoded(
    pages: Pages, recording: AudioSamples, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Encoder, "encode_pages", lambda *_: pytest.fail("the score was encoded"))
    silent = AudioSamples(np.zeros(16_000, np.float32), 16_000)
    for options in ({"repeats": "twice"}, {"repeats": "1-999"}, {"start_sec": 100.0}):
        with pytest.raises(InputError):
            align_recording(pages, recording, model=encoder, **options)
    with pytest.raises(InputError, match="it is silent"):
        align_recording(pages, silent, model=encoder)


def test_the_notes_of_an_excerpt_have_the_seconds_of_the_whole_recording(
    whole: Alignment, excerpt: Alignment
) -> None:
    expected, found = whole.notes["onset_sec"], excerpt.notes["onset_sec"]
    inside = (expected > START_SEC) & (expected < END_SEC - 0.1)
    assert np.array_equal(np.isfinite(found), inside)
    assert found[inside] == pytest.approx(expected[inside], abs=0.02)
    assert np.nanmin(found) >= START_SEC
    assert np.nanmax(excerpt.notes["offset_sec"]) <= END_SEC


def test_frames_and_measures_of_an_excerpt_lie_within_it(whole: Alignment, excerpt: Alignment) -> None:
    assert excerpt.frames["onset_sec"][0] == START_SEC
    assert excerpt.grid.end_sec == END_SEC
    same = np.searchsorted(whole.frames["onset_sec"], excerpt.frames["onset_sec"] + 1e-6, side="right") - 1
    middle = slice(25, -25)
    assert excerpt.frames["x"][middle] == pytest.approx(whole.frames["x"][same][middle], abs=2.0)
    for name in ("start_sec", "end_sec"):
        seconds = excerpt.measures[name][np.isfinite(excerpt.measures[name])]
        assert (seconds >= START_SEC).all()
        assert (seconds <= END_SEC).all()


def test_pointing_within_an_excerpt_gives_what_the_whole_recording_gives(
    whole: Alignment, excerpt: Alignment
) -> None:
    (expected,), (found,) = (point_at_time(alignment, 8.0, 1) for alignment in (whole, excerpt))
    assert (found.page, found.measure) == (expected.page, expected.measure)
    assert found.x == pytest.approx(expected.x, abs=2.0)
    (moment,) = point_at_spot(excerpt, found.page, found.x, found.y, 1)
    assert moment.seconds == pytest.approx(8.0, abs=0.05)
    for seconds in (START_SEC - 0.5, END_SEC + 0.5):
        with pytest.raises(InputError, match=r"is outside the recording \(4\.28 to 12\.00 s\)"):
            point_at_time(excerpt, seconds)


def test_the_places_of_an_excerpt_of_page_images_keep_their_seconds(
    folder: Path, recording: AudioSamples, encoder: Encoder
) -> None:
    whole = align_pages(folder / "page.png", recording, model=encoder)
    part = align_pages(folder / "page.png", recording, model=encoder, start_sec=START_SEC, end_sec=END_SEC)
    same = np.searchsorted(whole["onset_sec"], part["onset_sec"] + 1e-6, side="right") - 1
    assert part["onset_sec"][0] == START_SEC
    assert part["x"][25:-25] == pytest.approx(whole["x"][same][25:-25], abs=2.0)


def test_a_result_prints_in_a_few_lines(
    folder: Path, whole: Alignment, recording: AudioSamples, encoder: Encoder
) -> None:
    lines = repr(whole).splitlines()
    assert lines[0] == f"Alignment of {folder / 'tune.musicxml'} with the recording"
    assert lines[1] == f"  score: 1 page, {len(whole.pages.systems)} systems, 16 measures"
    assert lines[3] == "  heard: 32 of 32 notes; repeats: none"
    assert re.fullmatch(r"  reliability: [01]\.\d\d", lines[4])
    assert len(lines) == 5
    images = align_recording(folder / "page.png", recording, model=encoder)
    assert len(repr(images).splitlines()) <= 5
    doubtful = replace(whole, path=replace(whole.path, reliability=0.1))
    assert repr(doubtful).endswith("  reliability: 0.10, LOW: is it a recording of this score?")


def test_all_that_a_result_is_made_of_prints_in_a_line(whole: Alignment, encoder: Encoder) -> None:
    score = encoder.encode_pages(whole.pages)
    audio = encoder.encode_recording((np.sin(np.arange(9_000)), 16_000))
    parts = (whole.pages, whole.pages.images, whole.played, whole.axis, whole.path, whole.similarity)
    for each in (*parts, score, audio, audio.envelope, audio.sound, encoder.bundle):
        assert len(repr(each)) < 600, type(each)
        assert "\n" not in repr(each)


class Tags(HTMLParser):
    """Collects the tags, the images and the texts of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.images: list[str] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.images += [value for name, value in attributes if name == "src" and value]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_notebook_shows_the_viewer_in_a_frame_of_its_own(whole: Alignment) -> None:
    html = whole._repr_html_()
    assert set(Tags(html).tags) == {"div", "p", "br", "iframe"}
    assert 'sandbox="allow-scripts allow-downloads"' in html
    assert "&lt;!DOCTYPE html&gt;" in html


def test_without_a_recording_a_notebook_shows_a_page_and_a_table_in_few_bytes(whole: Alignment) -> None:
    html = replace(whole, recording=None)._repr_html_()
    shown = Tags(html)
    assert len(html) < 300_000
    assert set(shown.tags) <= {"div", "p", "br", "img", "table", "tr", "th", "td"}
    kind, content = shown.images[0].split(",")
    assert kind == "data:image/png;base64"
    picture = Image.open(io.BytesIO(base64.b64decode(content)))
    assert picture.width <= 760
    first = [shown.texts[shown.texts.index("confidence") + offset] for offset in (1, 2)]
    assert first == ["1", f"{whole.measures['start_sec'][0]:.2f}"]
    assert "and 8 more" in shown.texts


def test_names_are_escaped_in_a_notebook(whole: Alignment) -> None:
    named = replace(whole, pages=replace(whole.pages, filename="<script>alert(1)</script>"))
    measures = whole.measures.copy()
    measures["number"][0] = "<b>1</b>"
    html = replace(named, measures=measures)._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "<b>" not in html


def test_page_images_are_shown_by_their_systems(
    folder: Path, recording: AudioSamples, encoder: Encoder
) -> None:
    alignment = align_recording(folder / "page.png", recording, model=encoder)
    shown = Tags(replace(alignment, recording=None)._repr_html_())
    assert {"page", "system", "from (s)"} <= set(shown.texts) or "measure" in shown.texts
