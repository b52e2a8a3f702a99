"""Pieces that LilyPond engraved, written in MSMD's layout: page images, MuNG, note events and a recording."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import soundfile
from lxml import etree
from PIL import Image

from fusili_benchmarks.held_out_lilypond import LilypondPage, LilypondScore
from fusili_mir.arrays import Float32, GreyImage
from fusili_mir.pages.segments import Box
from fusili_training.sound.notes import PerformedArray

__all__ = ["save_msmd_piece"]


def save_msmd_piece(
    folder: Path,
    score: LilypondScore,
    pages: Sequence[tuple[LilypondPage, GreyImage]],
    performed: PerformedArray,
    sound: Float32,
    sample_rate_hz: int,
) -> None:
    """Write a piece as `fusili_training.evaluation.msmd.MsmdTree` reads it.

    Parameters
    ----------
    folder : Path
        Folder named after the piece.
    score : LilypondScore
    pages : sequence of LilypondPage and image
    performed : np.ndarray [shape=(n,), dtype=PERFORMED_DTYPE]
        The played notes of the score, in seconds of the recording.
    sound : np.ndarray [shape=(samples,)]
    sample_rate_hz : int
    """
    name = folder.name
    images, graphs = (folder / "scores" / name / kind for kind in ("img", "mung"))
    performance = folder / "performances" / name
    for place in (images, graphs, performance / "features"):
        place.mkdir(parents=True, exist_ok=True)
    for number, (page, image) in enumerate(pages, start=1):
        Image.fromarray(image).save(images / f"{number:02d}.png")
        graph = _mung(page, image.shape[1] / page.width, score, performed, performance.name)
        graph.write(str(graphs / f"{number:02d}.xml"), pretty_print=True, encoding="utf-8")
    track_and_channel = np.zeros(len(performed))
    events = [performed["onset_sec"], performed["pitch"], performed["duration_sec"], *[track_and_channel] * 2]
    np.save(performance / "features" / f"{performance.name}_notes.npy", np.stack(events, axis=1))
    soundfile.write(performance / f"{performance.name}.flac", sound, sample_rate_hz)


def _mung(
    page: LilypondPage, px_per_space: float, score: LilypondScore, performed: PerformedArray, performance: str
) -> etree._ElementTree:
    root = etree.Element("CropObjectList")
    objects = etree.SubElement(root, "CropObjects")
    for number, system in enumerate(page.systems):
        _crop_object(objects, f"system{number}", "staff", system, px_per_space)
    for number, head in page.heads.items():
        if not page.systems:
            break
        middle = (head.y0 + head.y1) / 2
        away = [max(system.y0 - middle, middle - system.y1) for system in page.systems]
        item = _crop_object(objects, f"head{number}", "notehead-full", head, px_per_space)
        etree.SubElement(item, "Outlinks").text = f"system{int(np.argmin(away))}"
        if number in score.row_of_head:
            row = score.row_of_head[number]
            data = etree.SubElement(item, "Data")
            for key, value in (
                (f"{performance}_onset_seconds", f"{performed['onset_sec'][row]:.6f}"),
                (f"{performance}_note_event_idx", str(row)),
                ("midi_pitch_code", str(performed["pitch"][row])),
            ):
                etree.SubElement(data, "DataItem", key=key).text = value
    return etree.ElementTree(root)


def _crop_object(
    objects: etree._Element, name: str, class_name: str, box: Box, px_per_space: float
) -> etree._Element:
    item = etree.SubElement(objects, "CropObject")
    texts = {
        "Id": name,
        "ClassName": class_name,
        "Top": box.y0 * px_per_space,
        "Left": box.x0 * px_per_space,
        "Width": (box.x1 - box.x0) * px_per_space,
        "Height": (box.y1 - box.y0) * px_per_space,
    }
    for tag, value in texts.items():
        etree.SubElement(item, tag).text = value if isinstance(value, str) else f"{value:.3f}"
    return item
