"""What is fuzzed: every reader of a stranger's file, with a whole file of its kind made on the spot."""

from __future__ import annotations

import json
import shutil
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import partitura as pt
import soundfile
from PIL import Image

from fusili_benchmarks.fuzzed_reader import FuzzedReader
from fusili_mir.alignment.anchors import as_anchors
from fusili_mir.audio.heard_recording import HeardRecording
from fusili_mir.audio.recording import open_recording
from fusili_mir.batch.pair_table import as_pairs
from fusili_mir.collection.encoded_piece import EncodedPiece, load_piece
from fusili_mir.demo.example import load_example
from fusili_mir.model.bundle import Bundle, default_bundle, load_bundle
from fusili_mir.model.embedding_cache import EmbeddingKey, load_encoded_score, save_encoded_score
from fusili_mir.model.encoded import EncodedScore
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import load_pages, render_pages
from fusili_mir.pages.score_axis import COLUMN_DTYPE, ScoreAxis
from fusili_mir.scores.playing_order import read_playing_order
from fusili_mir.scores.score_file import read_score_file
from fusili_mir.scores.verovio_process import convert_to_mei
from fusili_mir.viewer.inputs import load_inputs
from fusili_training.loop.recipe_files import find_recipe, read_recipe

__all__ = ["make_seeds"]

_KERN = "**kern\t**kern\n*clefF4\t*clefG2\n*M4/4\t*M4/4\n=1\t=1\n4C\t4c\n4D\t4d\n2E\t2e\n=\t=\n*-\t*-\n"
_ABC = "X:1\nT:Scale\nM:4/4\nL:1/4\nK:C\nCDEF|GABc|]\n"
_KEY = EmbeddingKey("bundle", "score")


def make_seeds(folder: Path, folders: bool = False) -> list[FuzzedReader]:
    """Write a whole file for each reader into a folder; on request for readers of folders, too.

    The latter load torch and faiss, whose threads do not survive a fork: set OMP_NUM_THREADS=1 before.
    """
    folder.mkdir(parents=True, exist_ok=True)
    example = load_example()
    return [
        *_scores(folder, example.score),
        *_pictures(folder, example.page),
        *_sounds(folder),
        *_bundles(folder),
        *_tables(folder),
        *_arrays(folder),
        *_folder_readers(folder, folders),
    ]


def _folder_readers(folder: Path, wanted: bool) -> list[FuzzedReader]:
    if not wanted:
        return []
    from fusili_benchmarks.fuzzed_folders import folder_readers

    return folder_readers(folder, folder / "score.musicxml")


def _scores(folder: Path, example: Path) -> list[FuzzedReader]:
    musicxml, mei, midi = folder / "score.musicxml", folder / "score.mei", folder / "score.mid"
    mxl, kern, abc = folder / "score.mxl", folder / "score.krn", folder / "score.abc"
    data = _few_measures(read_score_file(example).to_bytes())
    musicxml.write_bytes(data)
    mei.write_text(convert_to_mei("score", data.decode(), "xml"), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the repeat of a score that was cut has no end
        pt.save_score_midi(pt.load_score(str(musicxml)), str(midi))
    kern.write_text(_KERN)
    abc.write_text(_ABC)
    container = '<container><rootfiles><rootfile full-path="score.musicxml"/></rootfiles></container>'
    with zipfile.ZipFile(mxl, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("META-INF/container.xml", container)
        archive.writestr("score.musicxml", data)
    return [
        FuzzedReader("musicxml", musicxml, "xml", render_pages, weight=4),
        FuzzedReader("mei", mei, "xml", render_pages, weight=4),
        FuzzedReader("mxl", mxl, "zip", render_pages, weight=4),
        FuzzedReader("midi", midi, "bytes", render_pages, weight=2),
        FuzzedReader("kern", kern, "text", render_pages, weight=2),
        FuzzedReader("abc", abc, "text", render_pages),
        FuzzedReader("match", _match(folder, musicxml), "text", render_pages),
        FuzzedReader("midi recording", midi, "bytes", _open_recording),
    ]


def _match(folder: Path, musicxml: Path) -> Path:
    """Write a match file of a performance that follows the score."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        part = pt.load_score(str(musicxml)).parts[0]
        notes = part.note_array()
        performed = [
            {
                "id": f"n{row}",
                "midi_pitch": int(note["pitch"]),
                "note_on": float(note["onset_quarter"]) / 2,
                "note_off": float(note["onset_quarter"] + note["duration_quarter"]) / 2,
                "velocity": 64,
            }
            for row, note in enumerate(notes)
        ]
        alignment = [
            {"label": "match", "score_id": str(note["id"]), "performance_id": f"n{row}"}
            for row, note in enumerate(notes)
        ]
        out = folder / "score.match"
        pt.save_match(
            alignment, pt.performance.PerformedPart(performed), part, out=str(out), assume_unfolded=True
        )
    return out


def _open_recording(file: Path) -> object:
    return open_recording(file)


def _few_measures(data: bytes, n_measures: int = 4) -> bytes:
    """Return a MusicXML file with the first measures of each part."""
    from lxml import etree

    root = etree.fromstring(data)
    for part in root.findall("part"):
        for measure in part.findall("measure")[n_measures:]:
            part.remove(measure)
    return bytes(etree.tostring(root, encoding="utf-8"))


def _pictures(folder: Path, page: Path) -> list[FuzzedReader]:
    with Image.open(page) as opened:
        image = opened.convert("L").crop((0, 0, opened.width, opened.height // 3))
    image = image.resize((image.width // 2, image.height // 2))
    readers = []
    for name, options in (("png", {}), ("jpg", {}), ("tif", {"compression": "tiff_lzw"}), ("pdf", {})):
        image.save(folder / f"page.{name}", **options)
        kind = "text" if name == "pdf" else "bytes"
        readers.append(FuzzedReader(name, folder / f"page.{name}", kind, load_pages, weight=2))
    return readers


def _sounds(folder: Path) -> list[FuzzedReader]:
    time_sec = np.arange(16_000) / 16_000
    samples = np.sin(2 * np.pi * 440 * time_sec) * np.hanning(16_000)
    readers = []
    for name in ("wav", "flac", "ogg", "mp3"):
        soundfile.write(folder / f"sound.{name}", samples, 16_000)
        readers.append(FuzzedReader(name, folder / f"sound.{name}", "bytes", _hear, weight=2))
    return readers


def _hear(file: Path) -> None:
    with HeardRecording(open_recording(file), 16_000) as heard:
        for _ in heard.blocks():
            pass


def _bundles(folder: Path) -> list[FuzzedReader]:
    bundle = default_bundle()

    def with_file(name: str) -> Callable[[Path], Bundle]:
        """Read a bundle in which one file is another one."""

        def read(file: Path) -> Bundle:
            here = file.with_suffix(".bundle")
            shutil.copytree(bundle.folder, here, dirs_exist_ok=True)
            try:
                shutil.copy(file, here / name)
                loaded = load_bundle(here)
                Encoder(loaded, n_threads=1).check()
                return loaded
            finally:
                shutil.rmtree(here)

        return read

    for name in ("manifest.json", bundle.image.graph):
        shutil.copy(bundle.folder / name, folder / f"bundle-{name}")
    return [
        FuzzedReader(
            "manifest", folder / "bundle-manifest.json", "text", with_file("manifest.json"), weight=3
        ),
        FuzzedReader("onnx", folder / f"bundle-{bundle.image.graph}", "bytes", with_file(bundle.image.graph)),
    ]


def _tables(folder: Path) -> list[FuzzedReader]:
    texts = {
        "anchors.csv": "measure,pass,note,page,x,y,second\n17,1,,,,,42.5\n,,p0n2,,,,1.5\n,,,0,10,20,3\n",
        "pairs.csv": "score,recording,options,name\na.mxl,a.wav,--start 1:15 --jumps,first\nb.pdf#3-7,b.wav,,\n",
        "repeats.txt": "1-8 1-8 9-16\n",
        "inputs.json": json.dumps({"format": 1, "score": ["a.mxl"], "recording": "a.wav", "options": {}}),
        "recipe.toml": (find_recipe("small-hybrid").parent / "base" / "small.toml").read_text(
            encoding="utf-8"
        ),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")

    def read_inputs(file: Path) -> object:
        inside = file.with_suffix(".result")
        inside.mkdir(exist_ok=True)
        shutil.copy(file, inside / "inputs.json")
        return load_inputs(inside)

    return [
        FuzzedReader("anchors", folder / "anchors.csv", "text", as_anchors),
        FuzzedReader("pairs", folder / "pairs.csv", "text", as_pairs),
        FuzzedReader("repeats", folder / "repeats.txt", "text", read_playing_order),
        FuzzedReader("inputs", folder / "inputs.json", "text", read_inputs),
        FuzzedReader("recipe", folder / "recipe.toml", "text", read_recipe, weight=2),
    ]


def _arrays(folder: Path) -> list[FuzzedReader]:
    columns = np.zeros(6, COLUMN_DTYPE)
    columns["x0"], columns["x1"], columns["y1"] = np.arange(6), np.arange(1, 7), 9
    embeddings = np.eye(6, 4, dtype=np.float32)[:, None, :]
    encoded = EncodedScore(ScoreAxis(columns), embeddings, np.ones((6, 1), bool))
    save_encoded_score(encoded, folder / "cache.npz", _KEY)
    piece = EncodedPiece(
        "score",
        embeddings.astype(np.float16),
        np.ones((6, 1), bool),
        np.eye(1, 4, dtype=np.float16),
        np.array([[0, 6]]),
        columns,
    )
    (folder / "piece.npz").write_bytes(piece.to_bytes({"path": "a.mxl"}))
    return [
        FuzzedReader(
            "cache", folder / "cache.npz", "zip", lambda file: load_encoded_score(file, _KEY), weight=2
        ),
        FuzzedReader("piece", folder / "piece.npz", "zip", load_piece, weight=2),
    ]
