"""Cases whose results a change of the program must leave as they are, and the one place where they meet it."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import soundfile
from PIL import Image

import fusili_mir as fm
from fusili_benchmarks.golden_music import (
    BASS,
    MELODY,
    even,
    play,
    save_kern,
    save_mei,
    save_midi,
    save_musicxml,
    save_sound,
    tones,
)
from fusili_benchmarks.golden_tables import Tables
from fusili_benchmarks.played_measures import play_midi
from fusili_mir.arrays import Float32, Table
from fusili_mir.demo.example import load_example

__all__ = ["Case", "align_case", "human_cases", "make_human_inputs", "small_cases"]


_IMAGES = (".png", ".pdf")


@dataclass(frozen=True)
class Case:
    """A score and a recording, and how to align them.

    Attributes
    ----------
    name : str
    score : Path or tuple of Path
        Several are page images in order.
    recording : Path
    options : dict
        `start_sec`, `end_sec`; `transpose` in semitones and `a4_hz`, if they are not to be found; `repeats`,
        "maximal", "minimal" or measures as played; `cuts`, whether to expect them; `anchors`, each the attributes
        of an `Anchor`.
    """

    name: str
    score: Path | tuple[Path, ...]
    recording: Path
    options: Mapping[str, Any] = field(default_factory=dict)


def align_case(case: Case) -> Tables:
    """Align a case: the only function here that knows how the program is called.

    Returns
    -------
    Tables
        `notes`, `measures` and `frames` with all their columns, what is known of the `result` as a whole, in one
        row, and, from images, when `places` in the measures are reached. Notes at one beat are sorted by their
        ids: in which order they come depends on the version of numpy.
    """
    given = dict(case.options)
    repeats = given.pop("repeats", "auto")
    given["unfold" if repeats in ("auto", "maximal", "minimal") else "repeats"] = repeats
    given |= {"tuning": given.pop("a4_hz", None), "jumps": given.pop("cuts", False)}
    given["anchors"] = [fm.Anchor(**each) for each in given.get("anchors", ())]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        score: Any = case.score
        if isinstance(score, Path) and score.suffix not in _IMAGES:
            score = fm.render_pages(score, rasteriser="resvg")  # skia draws otherwise, where it is installed
        found = fm.align_recording(score, case.recording, _encoder(), **given)
    doubts = sum(issubclass(each.category, fm.AlignmentWarning) for each in caught)
    return {
        "notes": found.notes[np.lexsort((found.notes["id"], found.notes["onset_beat"].round(6)))],
        "measures": found.measures,
        "frames": found.frames,
        "result": _result(found, doubts),
        **({} if found.played else {"places": _places(found)}),
    }


@cache
def _encoder() -> fm.Encoder:
    return fm.Encoder(fm.default_bundle(), device="cpu", n_threads=1, batch_size=2)


def _result(found: fm.Alignment, doubts: int) -> Table:
    pitch = found.pitch
    assert pitch is not None
    values = {
        "reliability": found.reliability,
        "repeats": found.repeats or "",
        "repeats_probability": found.unfold_probability,
        "pitch_cents": pitch.cents,
        "drift_cents": pitch.drift_cents,
        "written_cents": pitch.written_cents,
        "pitch_source": pitch.source,
        "n_pages": len(found.pages.images),
        "n_systems": len(found.pages.systems),
        "n_doubts": doubts,
    }
    columns = {name: np.array([value]) for name, value in values.items()}
    return _as_table(columns)


def _places(found: fm.Alignment) -> Table:
    """Return when four places in each measure are reached."""
    boxes = found.measures
    share = np.tile(np.arange(4) / 4 + 1 / 8, len(boxes))
    page, x0, y0, x1, y1 = (boxes[name].repeat(4) for name in ("page", "x0", "y0", "x1", "y1"))
    x, y = x0 + share * (x1 - x0), (y0 + y1) / 2
    certainty = found.certainty_at(page, x, y)
    columns = {
        "second_sec": found.position_maps.position_to_seconds(page, x, y),
        "confidence": certainty.confidence,
        "earliest_sec": certainty.earliest_sec,
        "latest_sec": certainty.latest_sec,
    }
    return _as_table(columns)


def _as_table(columns: Mapping[str, npt.NDArray[Any]]) -> Table:
    n_rows = len(next(iter(columns.values())))
    table = np.empty(n_rows, [(name, values.dtype) for name, values in columns.items()])
    for name, values in columns.items():
        table[name] = values
    return table


def small_cases(folder: Path) -> list[Case]:
    """Write the inputs of the small cases into a folder, and list the cases.

    Only `midi-performance` needs fluidsynth and a soundfont.
    """
    return [*_demo_cases(folder), *_written_cases(folder)]


def _demo_cases(folder: Path) -> list[Case]:
    """The example of the package: as it is, at another pitch and speed, in part, with a cut, held by anchors."""
    demo = load_example()
    samples, rate_hz = soundfile.read(demo.recording, dtype="float32")
    with Image.open(demo.page) as page:
        pdf, halves = folder / "page.pdf", (folder / "upper.png", folder / "lower.png")
        page.convert("L").save(pdf, resolution=150)
        for half, top, bottom in zip(halves, (0, 785), (785, page.height), strict=True):  # between systems
            page.crop((0, top, page.width, bottom)).save(half)
    slow = save_sound(folder / "a415.wav", samples[: 30 * rate_hz], round(rate_hz * 415 / 440))
    tape = save_sound(folder / "tape.wav", _on_tape(samples, rate_hz, (-190.0, -216.0)), rate_hz)
    kept = [slice(round(first * rate_hz), round(last * rate_hz)) for first, last in ((0, 13.9), (39.72, 60))]
    cut = save_sound(folder / "cut.wav", np.concatenate([samples[each] for each in kept]), rate_hz)
    # In a part of the recording, the first and the second time are the same: which it is must be said.
    once = {"repeats": "minimal"}
    part, held = {**once, "start_sec": 12.5, "end_sec": 30.3}, {**once, "end_sec": 24.0}
    on_score = (
        {"measure": "3", "second": 7.4},
        {"note": "p1n80-1", "second": 18.98},
        {"place": (0, 489.2, 628.0), "second": 20.04},
    )
    on_page = ({"measure": "4", "second": 7.4}, {"place": (0, 485.0, 627.0), "second": 20.04})
    return [
        Case("demo-score", demo.score, demo.recording),
        Case("demo-png", demo.page, demo.recording),
        Case("demo-pdf", pdf, demo.recording),
        Case("two-pages", halves, demo.recording, part),
        Case("excerpt-score", demo.score, demo.recording, part),
        Case("excerpt-png", demo.page, demo.recording, part),
        Case("anchors-score", demo.score, demo.recording, {**held, "anchors": on_score}),
        Case("anchors-png", demo.page, demo.recording, {**held, "anchors": on_page}),
        Case("a415-score", demo.score, slow, once),
        Case("a415-png", demo.page, slow, once),
        Case("a415-given", demo.score, slow, {**once, "transpose": 0, "a4_hz": 415}),
        Case("tape-score", demo.score, tape),
        Case("tape-png", demo.page, tape),
        Case("cuts-score", demo.score, cut, {"cuts": True}),
        Case("cuts-png", demo.page, cut, {"cuts": True}),
        Case("by-hand-score", demo.score, cut, {"repeats": "0-4 14-17 19-20"}),
        Case("by-hand-png", demo.page, cut, {"repeats": "1-5 15-18 20-21"}),
    ]


def _written_cases(folder: Path) -> list[Case]:
    """A piece in every notation, with tones for sound."""
    parts = (MELODY, BASS)
    sound = save_sound(folder / "piece.wav", tones(play(parts)))
    again = save_sound(folder / "repeated.wav", tones(play(parts, (1, 2, 3, 4, 2, 3, 5, 6, 7, 8))))
    clarinet = play((MELODY,))
    clarinet[:, 2] -= 2  # in B flat
    heard = save_sound(folder / "clarinet.wav", tones(clarinet))
    performed = save_midi(folder / "performed.mid", play(parts))
    repeated = save_musicxml(folder / "repeated.musicxml", parts, repeated=(2, 4))
    ensemble = save_musicxml(folder / "ensemble.musicxml", parts)
    solo = save_musicxml(folder / "solo.musicxml", (MELODY,), written=1)
    return [
        Case("ensemble", ensemble, sound),
        Case("clarinet", solo, heard),
        Case("kern", save_kern(folder / "piece.krn", parts), sound),
        Case("mei", save_mei(folder / "piece.mei", parts), sound),
        Case("midi-score", save_midi(folder / "piece.mid", play(parts, (), even, 1.0, 0.0)), sound),
        Case("repeats-heard", repeated, again),
        Case("repeats-maximal", repeated, again, {"repeats": "maximal"}),
        Case("midi-performance", ensemble, performed),
    ]


def _on_tape(samples: Float32, rate_hz: int, cents: tuple[float, float]) -> Float32:
    """Play samples at a speed that moves from one number of cents to another."""
    speed = 2 ** (np.linspace(*cents, len(samples)) / 1200)
    reached = np.cumsum(1 / speed)  # by each sample, in samples of the slower recording
    now = np.arange(int(reached[-1]))
    places = np.arange(len(samples))
    return np.interp(np.interp(now, reached, places), places, samples).astype(np.float32)


def make_human_inputs(stem: Path, soundfont: Path, folder: Path) -> None:
    """Write what the cases of a human performance are made from: its score, its pages, and its MIDI as sound.

    Parameters
    ----------
    stem : Path
        File of n-ASAP without its suffix.
    soundfont : Path
    folder : Path
        Folder of all human performances.
    """
    with tempfile.TemporaryDirectory() as temporary:
        sound, made = Path(temporary, "sound.wav"), Path(temporary, "made")
        made.mkdir()
        play_midi(stem.with_suffix(".mid"), soundfont, sound)
        samples, rate_hz = soundfile.read(sound, dtype="int16")
        soundfile.write(made / "sound.flac", samples, rate_hz)
        shutil.copy(stem.with_suffix(".mxl"), made / "score.mxl")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pages = fm.render_pages(made / "score.mxl", rasteriser="resvg")
        for number, image in enumerate(pages.images):
            Image.fromarray(image).save(made / f"{number:03d}.png")
        shutil.rmtree(folder / stem.name, ignore_errors=True)
        shutil.copytree(made, folder / stem.name)


def human_cases(folder: Path) -> list[Case]:
    """List the cases whose inputs `make_human_inputs` wrote."""
    cases = []
    for made in sorted(folder.glob("*/")):
        sound, images = made / "sound.flac", tuple(sorted(made.glob("*.png")))
        cases += [Case(f"{made.name}-score", made / "score.mxl", sound)]
        cases += [Case(f"{made.name}-png", images, sound)]
    return cases
