"""Small datasets in the layouts that evaluation reads: MSMD, tables of pairs, tables of scores, shards."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import partitura as pt
import soundfile
from example_bundles import sine_recording, write_pitch_bundle
from example_performances import perform, record, tune
from PIL import Image

from fusili_mir.alignment.played import play_pages
from fusili_mir.arrays import Float32, Float64
from fusili_mir.model.bundle import Bundle
from fusili_mir.pages.engraving import EngravingOptions
from fusili_mir.pages.pages import Pages, render_pages
from fusili_training.data.shard_folder import Pair
from fusili_training.evaluation.msmd import MsmdTree
from fusili_training.rendering.pair_segments import Sample
from fusili_training.rendering.render_recipe import RenderRecipe
from fusili_training.rendering.shards import shard_name, sidecar_of, write_json, write_shard
from fusili_training.truth import truth_to_json

SAMPLE_RATE_HZ = 16_000
LINES = EngravingOptions(page_width_mm=60)  # a few measures per line
MELODIES = {
    "Tune": ("C4", "E4", "G4", "C5", "A4", "F4", "D5", "B4", "E5", "D4", "F5", "G5", "A3", "B3", "A5", "C6"),
    "Other": ("G5", "A3", "C4", "F5", "E4", "B3", "D5", "C5", "A4", "D4", "G4", "E5", "F4", "A5", "B4", "C6"),
}


@dataclass(frozen=True)
class MungObject:
    """A note head or a system: (left, top, width, height), links, and data items."""

    id: int
    kind: str
    box: tuple[float, float, float, float]
    links: tuple[int, ...] = ()
    data: tuple[tuple[str, object], ...] = ()


def write_mung(file: Path, objects: Iterable[MungObject]) -> None:
    """Write a page of MuNG as MSMD has it."""
    items = []
    for each in objects:
        left, top, width, height = (round(value) for value in each.box)
        data = "".join(f'<DataItem key="{name}" type="str">{value}</DataItem>' for name, value in each.data)
        items.append(
            f"<CropObject><Id>{each.id}</Id><ClassName>{each.kind}</ClassName><Top>{top}</Top>"
            f"<Left>{left}</Left><Width>{width}</Width><Height>{height}</Height>"
            f"<Outlinks>{' '.join(map(str, each.links))}</Outlinks><Data>{data}</Data></CropObject>"
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"<CropObjectList><CropObjects>{''.join(items)}</CropObjects></CropObjectList>")


def write_performance(folder: Path, name: str, events: Float64, samples: Float32 | None) -> None:
    """Write a performance of MSMD: its events (onset s, pitch, duration s, track, channel) and its recording."""
    (folder / name / "features").mkdir(parents=True)
    np.save(folder / name / "features" / f"{name}_notes.npy", events)
    if samples is not None:
        soundfile.write(folder / name / f"{name}.wav", samples, SAMPLE_RATE_HZ, subtype="FLOAT")


def engrave_tune(folder: Path, pitches: Sequence[str]) -> Pages:
    """Engrave a melody in lines of a few notes."""
    file = folder / "tune.musicxml"
    file.write_text(tune(pitches))
    return render_pages(file, LINES)


def write_engraved_msmd(root: Path, piece: str, pitches: Sequence[str]) -> None:
    """Write a piece of MSMD: a melody engraved and played as sines, for the pitch bundle."""
    score = root / piece / "scores" / f"{piece}_ly"
    (score / "img").mkdir(parents=True)
    pages = engrave_tune(score, pitches)
    performed = perform(play_pages(pages))
    name = f"{piece}_tempo-1000"
    row_of = {str(note["id"]): row for row, note in enumerate(performed)}
    for number, image in enumerate(pages.images):
        Image.fromarray(image).save(score / "img" / f"{number + 1:02d}.png")
        objects = []
        for system in pages.systems[pages.systems["page"] == number]:
            # As in MSMD, the box of a system ends at its staff lines.
            box = (
                system["x0"],
                system["y0"] - 1,
                system["x1"] - system["x0"],
                system["y1"] - system["y0"] + 2,
            )
            objects.append(MungObject(int(system["system"]), "staff", box))
        for head, note in enumerate(pages.notes[pages.notes["page"] == number]):
            row = row_of[str(note["id"])]
            data = (
                (f"{name}_onset_seconds", performed["onset_sec"][row]),
                (f"{name}_note_event_idx", row),
                ("midi_pitch_code", performed["pitch"][row]),
            )
            box = (note["x0"], note["y0"], note["x1"] - note["x0"], note["y1"] - note["y0"])
            objects.append(MungObject(1000 + head, "notehead-full", box, (int(note["system"]),), data))
        write_mung(score / "mung" / f"{number + 1:02d}.xml", objects)
    events = np.zeros((len(performed), 5))
    events[:, 0], events[:, 1] = performed["onset_sec"], performed["pitch"]
    events[:, 2] = performed["duration_sec"]
    write_performance(root / piece / "performances", name, events, sine_recording(performed))


def write_table(file: Path, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a CSV table."""
    with file.open("w", newline="") as out:
        csv.writer(out).writerows([columns, *rows])


def write_scored_table(folder: Path, pitches: Sequence[str]) -> Path:
    """Write a score, its recording, a match file, and the table that names them."""
    pages = engrave_tune(folder, pitches)
    played = play_pages(pages)
    performed = perform(played)
    soundfile.write(folder / "tune.wav", record(performed).samples, SAMPLE_RATE_HZ)
    notes = [
        {
            "id": f"n{row}",
            "midi_pitch": int(note["pitch"]),
            "note_on": float(note["onset_sec"]),
            "note_off": float(note["onset_sec"] + note["duration_sec"]),
            "velocity": 64,
            "track": 0,
            "channel": 1,
        }
        for row, note in enumerate(performed)
    ]
    alignment = [
        {"label": "match", "score_id": str(note["id"]), "performance_id": f"n{row}"}
        for row, note in enumerate(performed)
    ]
    part = pt.performance.PerformedPart(notes)
    pt.save_match(
        alignment, part, played.score.parts[0], out=str(folder / "tune.match"), assume_unfolded=True
    )
    table = folder / "scores.csv"
    write_table(
        table,
        ["score_filename", "audio_filename", "match_filename"],
        [["tune.musicxml", "tune.wav", "tune.match"]],
    )
    return table


def write_shards(folder: Path, pairs: Iterable[Pair], *splits_of_all: str) -> None:
    """Write pairs as a rendered corpus, in each split ("test"); keys are PIECE.LAYOUT.NUMBER."""
    folder.mkdir()
    samples, splits = [_sample(pair) for pair in pairs], {}
    for split in splits_of_all or ("test",):
        shard = folder / shard_name(split, 0)
        write_json(sidecar_of(shard), write_shard(shard, samples))
        splits[split] = {"shards": [{"name": shard.name}]}
    recipe = RenderRecipe().to_dict()
    write_json(folder / "manifest.json", {"format": 1, "recipe": recipe, "splits": splits})


def write_melodies(folder: Path, layout: str = "whole") -> Bundle:
    """Write `bundle`, which reads melodies, and two melodies as `msmd`, `shards` and a table in `scored`."""
    bundle = write_pitch_bundle(folder / "bundle")
    pairs = []
    for piece, pitches in MELODIES.items():
        write_engraved_msmd(folder / "msmd", piece, pitches)
        for number, pair in enumerate(MsmdTree(folder / "msmd", bundle.image).read_piece(piece)):
            pairs.append(replace(pair, key=f"{piece}.{layout}.{number}"))
    write_shards(folder / "shards", pairs)
    (folder / "scored").mkdir()
    write_scored_table(folder / "scored", MELODIES["Tune"])
    return bundle


def _sample(pair: Pair) -> Sample:
    image, audio = io.BytesIO(), io.BytesIO()
    Image.fromarray(pair.image).save(image, format="PNG")
    soundfile.write(audio, pair.waveform, pair.sample_rate_hz, format="FLAC")
    described = {"strip_height_px": pair.strip_height_px, "notes": truth_to_json(pair.truth)}
    members = {"png": image.getvalue(), "flac": audio.getvalue(), "json": json.dumps(described).encode()}
    return Sample(pair.key, pair.mutant_of, members)
