"""What a user may bring, and what comes out: docs/brought.md is made, and kept true, by this file.

``python tests/test_brought_came_out.py`` writes it again. Every row is tried with a tune of sixteen notes whose
times and places are known, and with the pitch bundle, which reads and hears such tunes without a mistake.
"""

from __future__ import annotations

import io
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import mido
import numpy as np
import partitura as pt
import soundfile
import verovio
from example_bundles import write_pitch_bundle
from example_media import write_media
from example_performances import PITCHES, perform, record, tune
from PIL import Image

from fusili_mir.alignment.aligning import align_recording, align_score
from fusili_mir.alignment.played import play_pages
from fusili_mir.alignment.results import Alignment
from fusili_mir.audio.soundfonts import find_fluidsynth, find_soundfonts
from fusili_mir.errors import FusiliError, FusiliWarning, MissingExtraError
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import Pages, render_pages

DOCUMENT = Path(__file__).parents[1] / "docs" / "brought.md"
NEAR_SEC, NEAR_PX = 0.05, 12.0


@dataclass(frozen=True)
class Row:
    """One thing that is brought: how the table names it, and how it is made, as a file or an object."""

    named: str
    make: Callable[[Workshop], Any]
    note: str = ""
    can_be_tried: Callable[[], bool] = lambda: True
    stretch_sec: tuple[float, float] | None = None
    with_shipped_model: bool = False


class Workshop:
    """Makes everything out of one tune: its score, its page, its performance and its recording."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "piece.musicxml").write_text(tune(PITCHES), encoding="utf-8")
        self.pages: Pages = render_pages(folder / "piece.musicxml")
        self.performed = perform(play_pages(self.pages))
        self.recording = record(self.performed)
        self.samples: np.ndarray = self.recording.samples
        self.page: np.ndarray = self.pages.images[0]
        self.encoder = Encoder(write_pitch_bundle(folder / "bundle"), n_threads=1)

    def file(self, name: str) -> Path:
        return self.folder / name

    def wav(self, name: str = "recording.wav", **options: Any) -> Path:
        soundfile.write(self.file(name), self.samples, 16_000, **options)
        return self.file(name)

    def media(self, name: str, codec: str, video: bool = False, several: bool = False) -> Path:
        others = (np.zeros_like(self.samples),) if several else ()
        write_media(self.file(name), self.samples, 16_000, codec, video, others=others)
        return self.file(name)

    def midi(self) -> Path:
        """Write the performance for a piano."""
        track = mido.MidiTrack([mido.Message("program_change", program=0)])
        order = np.argsort(self.performed["onset_sec"])
        seconds = 0.0
        for note in self.performed[order]:
            pitch, begin = int(note["pitch"]), float(note["onset_sec"])
            track.append(mido.Message("note_on", note=pitch, time=round(960 * (begin - seconds))))
            track.append(mido.Message("note_off", note=pitch, time=round(960 * float(note["duration_sec"]))))
            seconds = begin + float(note["duration_sec"])
        mido.MidiFile(ticks_per_beat=480, tracks=[track]).save(self.file("performance.mid"))
        return self.file("performance.mid")

    def image(self, name: str, image: Image.Image | None = None, **options: Any) -> Path:
        (image or Image.fromarray(self.page)).save(self.file(name), **options)
        return self.file(name)

    def book(self, name: str) -> Path:
        """Write a blank page, the page of the tune, and a blank page."""
        blank = np.full_like(self.page, 255)
        first, *others = (Image.fromarray(image) for image in (blank, self.page, blank))
        options: dict[str, Any] = {"resolution": 200, "quality": 95} if name.endswith("pdf") else {}
        first.save(self.file(name), save_all=True, append_images=others, **options)
        return self.file(name)

    def photograph(self) -> Path:
        exif = Image.Exif()
        exif[0x0112] = 6  # to be turned clockwise by 90 degrees
        turned = Image.fromarray(self.page).rotate(90, expand=True)
        return self.image("photo.jpg", turned, exif=exif, quality=95)

    def compressed(self) -> Path:
        container = '<container><rootfiles><rootfile full-path="piece.musicxml"/></rootfiles></container>'
        with zipfile.ZipFile(self.file("piece.mxl"), "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("META-INF/container.xml", container)
            archive.writestr("piece.musicxml", tune(PITCHES))
        return self.file("piece.mxl")

    def mei(self) -> Path:
        verovio.enableLog(verovio.LOG_OFF)
        toolkit = verovio.toolkit()
        toolkit.loadData(tune(PITCHES))
        self.file("piece.mei").write_text(toolkit.getMEI(), encoding="utf-8")
        return self.file("piece.mei")

    def two_staves(self) -> Path:
        """Write the tune above an empty staff without saying that there are two staves, as partitura 0.2 did."""
        rest = "<note><rest/><duration>4</duration><voice>2</voice><type>half</type><staff>2</staff></note>"
        lower = f"<backup><duration>4</duration></backup>{rest}</measure>"
        content = tune(PITCHES).replace("</measure>", lower)
        self.file("two-staves.musicxml").write_text(content, encoding="utf-8")
        return self.file("two-staves.musicxml")

    def humdrum(self) -> Path:
        lines = ["**kern", "*clefG2", "*M2/4"]
        for index, name in enumerate(PITCHES):
            if index % 2 == 0:
                lines.append(f"={index // 2 + 1}")
            step, octave = name[0], int(name[1])
            letter = step.lower() * (octave - 3) if octave >= 4 else step * (4 - octave)
            lines.append(f"4{letter}")
        self.file("piece.krn").write_text("\n".join([*lines, "==", "*-", ""]), encoding="utf-8")
        return self.file("piece.krn")

    def abc(self) -> Path:
        names = [name[0] if name[1] == "4" else name[0].lower() for name in PITCHES]
        bars = "|".join("".join(names[i : i + 2]) for i in range(0, len(names), 2))
        self.file("piece.abc").write_text(f"X:1\nT:Tune\nM:2/4\nL:1/4\nK:C\n{bars}|]\n", encoding="utf-8")
        return self.file("piece.abc")

    def score_midi(self) -> Path:
        pt.save_score_midi(self.score, str(self.file("score.mid")))
        return self.file("score.mid")

    def match(self) -> Path:
        performance, alignment, score = align_score(self.pages, self.recording, model=self.encoder)
        pt.save_match(alignment, performance, score, out=str(self.file("piece.match")))
        return self.file("piece.match")

    def rewritten(self) -> Path:
        pt.save_musicxml(self.score, str(self.file("rewritten.musicxml")))
        return self.file("rewritten.musicxml")

    @cached_property
    def score(self) -> pt.score.Score:
        return pt.load_musicxml(str(self.file("piece.musicxml")))

    def outcome(self, row: Row, part: str) -> str:
        """Align what is brought, and say what came out; a refusal is what it says."""
        brought = row.make(self)
        score = brought if part != "recordings" else self.pages
        recording = brought if part == "recordings" else self.recording
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FusiliWarning)
                encoder = None if row.with_shipped_model else self.encoder
                start_sec, end_sec = row.stretch_sec or (0.0, None)
                alignment = align_recording(
                    score, recording, model=encoder, start_sec=start_sec, end_sec=end_sec
                )
        except FusiliError as error:
            return f"refused: {str(error).replace(f'{self.folder}/', '')}"
        return self.places(alignment) if alignment.played is None else self.times(alignment)

    def times(self, alignment: Alignment) -> str:
        """Count the notes whose time is right."""
        notes = alignment.notes[np.argsort(alignment.notes["onset_beat"], kind="stable")]
        played_sec = np.sort(self.performed["onset_sec"])
        inside = (played_sec >= alignment.grid.audio_start_sec) & (played_sec < alignment.grid.end_sec)
        near = np.abs(notes["onset_sec"] - played_sec) < NEAR_SEC
        return f"{int(near.sum())} of {int(inside.sum())} notes within {1000 * NEAR_SEC:.0f} ms"

    def places(self, alignment: Alignment) -> str:
        """Count the note heads that are found at the second in which they sound."""
        heads = self.pages.notes
        played = dict(zip(self.performed["id"].tolist(), self.performed["onset_sec"].tolist(), strict=True))
        seconds = np.array([played[note_id] for note_id in heads["id"].tolist()])
        page, x, y = alignment.position_maps.seconds_to_position(seconds + 0.02)
        near = np.abs(x - (heads["x0"] + heads["x1"]) / 2) < NEAR_PX
        systems = self.pages.systems[heads["system"]]
        near &= (systems["y0"] - 50 < y) & (y < systems["y1"] + 50)
        pages = sorted({int(number) + 1 for number in page[near]})
        where = f"page {', '.join(map(str, pages))}"
        return f"{int(near.sum())} of {len(heads)} note heads at their seconds, on {where}"


def array(convert: Callable[[np.ndarray], Any]) -> Callable[[Workshop], Any]:
    return lambda shop: convert(shop.page)


def midi_can_be_played() -> bool:
    try:
        return bool(find_fluidsynth() and find_soundfonts())
    except MissingExtraError:
        if sys.platform == "linux":  # where `make test` installs both
            raise
        return False


def one_bit(page: np.ndarray) -> Image.Image:
    return Image.fromarray(page > 160)


def transparent(page: np.ndarray) -> Image.Image:
    return Image.fromarray(np.dstack([np.zeros((*page.shape, 3), np.uint8), 255 - page]))


def blank(shop: Workshop) -> Path:
    return shop.image("title.png", Image.fromarray(np.full_like(shop.page, 255)))


def folder_of(shop: Workshop) -> Path:
    shop.file("images").mkdir(exist_ok=True)
    shop.image("images/page-10.png")
    shop.image("images/page-9.png", Image.fromarray(np.full_like(shop.page, 255)))
    return shop.file("images")


def text(shop: Workshop, name: str) -> Path:
    shop.file(name).write_text("This is neither a score nor a sound.")
    return shop.file(name)


SCORES = [
    Row("`piece.musicxml`", lambda shop: shop.file("piece.musicxml")),
    Row("`piece.mxl`", Workshop.compressed),
    Row("`piece.mei`", Workshop.mei),
    Row("MusicXML with two staves that it does not declare", Workshop.two_staves),
    Row("`piece.krn`", Workshop.humdrum),
    Row("`piece.abc`", Workshop.abc),
    Row("a score as MIDI, `piece.mid`", Workshop.score_midi),
    Row("a match file, `piece.match`", Workshop.match),
    Row("a partitura `Score`", lambda shop: shop.score),
    Row("a partitura `Part`", lambda shop: shop.score.parts[0]),
    Row("what `partitura.save_musicxml` writes", Workshop.rewritten),
    Row("`Pages` of `render_pages`", lambda shop: shop.pages),
]
PAGES = [
    Row("`page.png`, `.jpg`, `.tif`, `.webp`, ...", lambda shop: shop.image("page.png")),
    Row(
        "a colour JPEG",
        lambda shop: shop.image("c.jpg", Image.fromarray(shop.page).convert("RGB"), quality=95),
    ),
    Row(
        "a JPEG in CMYK",
        lambda shop: shop.image("k.jpg", Image.fromarray(shop.page).convert("CMYK"), quality=95),
    ),
    Row("a palette PNG", lambda shop: shop.image("p.png", Image.fromarray(shop.page).convert("P"))),
    Row(
        "a fax: 1 bit, TIFF group 4",
        lambda shop: shop.image("fax.tif", one_bit(shop.page), compression="group4"),
    ),
    Row(
        "a 16-bit PNG",
        lambda shop: shop.image("wide.png", Image.fromarray(shop.page.astype(np.uint16) * 257)),
    ),
    Row(
        "a TIFF of floats, 0 to 1",
        lambda shop: shop.image("f.tif", Image.fromarray(shop.page / np.float32(255))),
    ),
    Row("black ink on a transparent PNG", lambda shop: shop.image("ink.png", transparent(shop.page))),
    Row("a photograph that its EXIF data turn", Workshop.photograph),
    Row("`scan.pdf`, pages without music before and after", lambda shop: shop.book("scan.pdf")),
    Row("`scan.pdf#2`, or `--pages 2`", lambda shop: f"{shop.book('scan.pdf')}#2"),
    Row("`scan.tif#2-3`", lambda shop: f"{shop.book('scan.tif')}#2-3"),
    Row("`scan.pdf#7`", lambda shop: f"{shop.book('scan.pdf')}#7"),
    Row("`title.png page.png`, in this order", lambda shop: [blank(shop), shop.image("page.png")]),
    Row("a folder of images", folder_of),
    Row("a PIL image", array(Image.fromarray)),
    Row("an array: `uint8 (h, w)`", array(lambda page: page)),
    Row("an array: `float (h, w, 3)`, 0 to 1", array(lambda page: np.dstack([page / 255.0] * 3))),
    Row("an array: `float (3, h, w)`", array(lambda page: np.stack([page / 255.0] * 3))),
    Row("an array: `uint16`", array(lambda page: page.astype(np.uint16) * 257)),
    Row("an array: `bool`, true for paper or true for ink", array(lambda page: page < 160)),
    Row("an array: RGBA", array(lambda page: np.asarray(transparent(page)))),
    Row("a list of images and arrays", array(lambda page: [Image.fromarray(page), np.full_like(page, 255)])),
    Row("a stack of pages, `(12, h, w)`", array(lambda page: np.stack([page[:9, :9]] * 12))),
    Row("a text file", lambda shop: text(shop, "notes.txt")),
    Row("`None`", lambda shop: None),
]
RECORDINGS = [
    Row("`recording.wav`, `.flac`, `.mp3`, `.ogg`, `.aiff`, ...", Workshop.wav),
    Row("an MP3", lambda shop: shop.wav("recording.mp3")),
    Row("`recording.m4a`", lambda shop: shop.media("a.m4a", "aac"), "with the extra `audio`"),
    Row("`recording.webm`", lambda shop: shop.media("a.webm", "libopus"), "with the extra `audio`"),
    Row("`video.mp4`", lambda shop: shop.media("v.mp4", "aac", video=True), "with the extra `audio`"),
    Row(
        "`video.mkv` with several audio tracks",
        lambda shop: shop.media("v.mkv", "aac", video=True, several=True),
        "the first track; with the extra `audio`",
    ),
    Row(
        "`performance.mid`",
        Workshop.midi,
        "played by fluidsynth with a soundfont of the machine",
        can_be_tried=midi_can_be_played,
        with_shipped_model=True,
    ),
    Row("`recording.wav --start 0:03 --end 0:06`", Workshop.wav, stretch_sec=(3.0, 6.0)),
    Row("`(y, sr)` of `librosa.load`", lambda shop: (shop.samples, 16_000)),
    Row("`(y, sr)`, `y` of shape `(2, n)`", lambda shop: (np.stack([shop.samples] * 2), 16_000)),
    Row(
        "`(samples, rate)` of `soundfile.read`, `(n, 2)`",
        lambda shop: (np.stack([shop.samples] * 2, 1), 16_000),
    ),
    Row(
        "`(rate, samples)` of `scipy.io.wavfile.read`",
        lambda shop: (16_000, (shop.samples * 32767).astype("i2")),
    ),
    Row(
        "an open file, `io.BytesIO`, or `-` for standard input",
        lambda shop: io.BytesIO(shop.wav().read_bytes()),
    ),
    Row("`AudioSamples(samples, rate)`", lambda shop: shop.recording),
    Row("samples without their rate", lambda shop: shop.samples),
    Row("a silent recording", lambda shop: (np.zeros(16_000), 16_000)),
    Row("a text file named `.wav`", lambda shop: text(shop, "text.wav")),
    Row("a folder", folder_of),
    Row("`None`", lambda shop: None),
]
PARTS = {"scores": SCORES, "pages": PAGES, "recordings": RECORDINGS}


HEAD = """# What you bring, and what comes out

A tune of sixteen notes, whose times and places are known, was brought in each of these forms and aligned.
`tests/test_brought_came_out.py` wrote this page and fails when it is no longer true. Files can be given on the
command line and in Python, objects in Python. Whatever is refused is refused in one line, before anything slow.
"""
TITLES = {
    "scores": """## Symbolic scores

    fusili-mir align SCORE recording.wav -o out      # align_score(SCORE, "recording.wav")
""",
    "pages": """## Pages

    fusili-mir align PAGES... recording.wav -o out   # align_pages(PAGES, "recording.wav")
""",
    "recordings": """## Recordings

    fusili-mir align SCORE RECORDING -o out          # align_score(SCORE, RECORDING)

`--start` and `--end` (`start_sec` and `end_sec`) align a stretch of any of them, in the recording's own seconds.
""",
}


def outcomes(folder: Path, known: dict[str, str]) -> str:
    """Try every row, and return the document; rows that cannot be tried here keep their `known` lines."""
    shop = Workshop(folder)
    lines = [HEAD]
    for part, rows in PARTS.items():
        lines += [TITLES[part], "| brought | came out |", "| --- | --- |"]
        for row in rows:
            start = f"| {row.named} | "
            if not row.can_be_tried():
                lines.append(known.get(start, start))
                continue
            came_out = shop.outcome(row, part).replace("|", "\\|")
            lines.append(f"{start}{came_out}{f'; {row.note}' if row.note else ''} |")
        lines.append("")
    return "\n".join(lines)


def known_lines() -> dict[str, str]:
    written = DOCUMENT.read_text(encoding="utf-8").splitlines() if DOCUMENT.is_file() else []
    return {f"{line.rsplit(' | ', 1)[0]} | ": line for line in written if line.startswith("| ")}


def test_what_comes_out_is_what_the_documentation_says(tmp_path: Path) -> None:
    assert outcomes(tmp_path, known_lines()) == DOCUMENT.read_text(encoding="utf-8"), (
        "python tests/test_brought_came_out.py writes docs/brought.md again"
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        DOCUMENT.write_text(outcomes(Path(folder), known_lines()), encoding="utf-8")
    sys.exit(0)
