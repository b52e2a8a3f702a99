"""MSMD as it lies on disk: every system of a piece is a pair, with the places and times of its notes.

`PIECE/scores/NAME/{img/01.png, mung/01.xml}` and `PIECE/performances/NAME/{NAME.midi, features/NAME_notes.npy}`.
The public archive has no audio: the MIDI file is played unless a recording `NAME.wav` (.flac, .mp3, .ogg) exists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fusili_mir.arrays import Float64, GreyImage, Table
from fusili_mir.audio.recording import AudioFile
from fusili_mir.audio.recording_checks import SHORTEST_SEC
from fusili_mir.boundary import reason
from fusili_mir.boxes import SYSTEM_DTYPE
from fusili_mir.errors import InputError, option
from fusili_mir.model.bundle import ImageSpec
from fusili_mir.pages.page_sources import ImagePage
from fusili_mir.pages.segments import Box, cut_segment
from fusili_mir.pages.staves import find_staves
from fusili_training.data.shard_folder import Pair
from fusili_training.evaluation.mung import MungHead, read_mung
from fusili_training.evaluation.pair_encoder import PROTOCOL_SEC
from fusili_training.evaluation.recordings import Sound, play_midi, read_sound
from fusili_training.evaluation.segment_images import SIDE_PX, place_truth, system_segment
from fusili_training.evaluation.split_lists import read_split_lists
from fusili_training.truth import TRUTH_DTYPE, TruthArray

__all__ = ["MsmdPage", "MsmdTree"]

_AUDIO_SUFFIXES = (".wav", ".flac", ".mp3", ".ogg")
_AS_WRITTEN = "tempo-1000"  # in the name of performances at the tempo of the score
_SYSTEM_SPACES = 20  # height of a piano system in staff spaces, assumed where no staves are found


@dataclass(frozen=True, eq=False)
class MsmdPage:
    """A page of a piece.

    Attributes
    ----------
    image_file : Path
    systems : tuple of Box
        From top to bottom, in pixels of the page.
    heads : tuple of np.ndarray of `TRUTH_DTYPE`
        The played heads of each system, in pixels of the page and seconds of the performance.
    """

    image_file: Path
    systems: tuple[Box, ...]
    heads: tuple[TruthArray, ...]


class MsmdTree:
    """The pairs of a folder of MSMD pieces; systems over 20 s or under 0.1 s are dropped.

    Parameters
    ----------
    folder : Path
    image : ImageSpec, optional
        Images that the bundle takes; None: the paper's squares.
    splits : sequence of str
        Splits of the split file; empty: all pieces of the folder.
    split_file : str or Path, optional
    """

    has_truth = True

    def __init__(
        self,
        folder: Path,
        image: ImageSpec | None = None,
        splits: Sequence[str] = (),
        split_file: str | Path | None = None,
    ) -> None:
        self.name, self._folder, self._spec = folder.name, folder, image
        self.dropped: Counter[str] = Counter()
        present = sorted(path.parent.name for path in folder.glob("*/scores"))
        if not present:
            raise InputError(f"{folder}: no pieces; expected PIECE/scores/NAME as in MSMD")
        self.pieces: Sequence[str] = present
        if splits or split_file:
            wanted = _pieces_of_splits(splits, split_file)
            missing = sorted(wanted - set(present))
            if missing:
                raise InputError(
                    f"{folder}: {len(missing)} pieces of the split are missing, such as {missing[0]}; unpack the "
                    "whole archive"
                )
            self.pieces = [piece for piece in present if piece in wanted]

    def read_piece(self, piece: str) -> Iterator[Pair]:
        """Yield the systems of a piece."""
        sound = self.read_sound(piece)
        for number, page in enumerate(self.read_pages(piece)):
            image = ImagePage(page.image_file).read()
            staves = find_staves(image)
            for system, (box, heads) in enumerate(zip(page.systems, page.heads, strict=True)):
                pair = self._pair(
                    f"{piece}.{number}.{system}", image, _staves_in(staves, box), box, heads, sound
                )
                if isinstance(pair, Pair):
                    yield pair
                else:
                    self.dropped[pair] += 1

    def read_pages(self, piece: str) -> list[MsmdPage]:
        """Read where the played note heads of a piece lie."""
        score = _only_folder(self._folder / piece / "scores")
        performance = self._performance(piece)
        notes = _load_notes(performance / "features" / f"{performance.name}_notes.npy")
        images = sorted((score / "img").glob("*.png"))
        if not images:
            raise InputError(f"{score / 'img'}: no pages; expected 01.png, 02.png, ...")
        pages = []
        for image_file in images:
            mung = read_mung(score / "mung" / f"{image_file.stem}.xml")
            heads = {
                system: [head for head in mung.heads if head.system == system] for system in mung.systems
            }
            pages.append(
                MsmdPage(
                    image_file,
                    tuple(mung.systems.values()),
                    tuple(_played_heads(group, performance.name, notes) for group in heads.values()),
                )
            )
        return pages

    def read_sound(self, piece: str) -> Sound:
        """Read the recording of a piece, or play its MIDI."""
        performance = self._performance(piece)
        for suffix in _AUDIO_SUFFIXES:
            recording = performance / f"{performance.name}{suffix}"
            if recording.is_file():
                return read_sound(AudioFile(recording))
        midi = next((path for path in sorted(performance.glob("*.mid*")) if path.is_file()), None)
        if midi is None:
            raise InputError(f"{performance}: no recording and no MIDI; expected {performance.name}.midi")
        return play_midi(midi)

    def _performance(self, piece: str) -> Path:
        """Return the performance at the score's tempo, or the first by name."""
        folder = self._folder / piece / "performances"
        as_written = sorted(path for path in folder.glob(f"*{_AS_WRITTEN}*") if path.is_dir())
        return as_written[0] if as_written else _only_folder(folder)

    def _pair(
        self, key: str, image: GreyImage, staves: Table, box: Box, heads: TruthArray, sound: Sound
    ) -> Pair | str:
        """Return the pair of a system, or the reason why there is none."""
        if not len(heads):
            return "no notes"
        start_sec, end_sec = float(heads["onset_sec"].min()), float(heads["offset_sec"].max())
        if end_sec - start_sec > PROTOCOL_SEC:
            return "over 20 s"
        if end_sec - start_sec < SHORTEST_SEC:
            return "too short"
        if not len(staves) and self._spec is not None and self._spec.segment == "staff_strips":
            return "no staves found"
        segment = system_segment(_system(box, staves), staves, 0, self._spec)
        truth = place_truth(heads, segment, 0)
        if not len(truth):
            return "no notes"
        truth["onset_sec"] -= start_sec
        truth["offset_sec"] -= start_sec
        clip = sound.cut(start_sec, end_sec)
        side_px = SIDE_PX if self._spec is None else self._spec.height_px
        return Pair(
            key=key,
            mutant_of=None,
            image=cut_segment(segment, [image]),
            waveform=clip.samples,
            truth=truth,
            strip_height_px=side_px,
            sample_rate_hz=clip.sample_rate_hz,
        )


def _pieces_of_splits(splits: Sequence[str], split_file: str | Path | None) -> set[str]:
    if split_file is None:
        raise InputError(
            f"the split {splits[0]!r} of MSMD needs its split file; give it with "
            f"{option('--split-file', 'split_file')}"
        )
    lists = read_split_lists(split_file)
    unknown = [split for split in splits if split not in lists]
    if unknown:
        raise InputError(f"{split_file}: no split {unknown[0]!r}; it has {', '.join(lists)}")
    return {piece for split in splits or lists for piece in lists[split]}


def _only_folder(parent: Path) -> Path:
    folders = sorted(path for path in parent.glob("*") if path.is_dir())
    if not folders:
        raise InputError(f"{parent}: empty or missing; expected a folder NAME in it, as in MSMD")
    return folders[0]


def _load_notes(filename: Path) -> Float64:
    """Read the note events [shape=(n, 5)]: onset s, pitch, duration s, track, channel."""
    try:
        notes = np.load(filename, allow_pickle=False).astype(np.float64)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(
            f"{filename}: cannot be read ({reason(error)}); expected the note events of MSMD"
        ) from error
    if notes.ndim != 2 or notes.shape[1] < 3:
        raise InputError(f"{filename}: an array of shape {notes.shape}; expected onset, pitch, duration, ...")
    return np.asarray(notes)


def _played_heads(heads: list[MungHead], performance: str, notes: Float64) -> TruthArray:
    """Return the heads with a note event; the second head of a tie has none."""
    rows = []
    for head in heads:
        try:
            onset_sec = float(head.data[f"{performance}_onset_seconds"])
            event = notes[int(head.data[f"{performance}_note_event_idx"])]
        except (KeyError, ValueError):
            continue
        except IndexError as error:
            raise InputError(
                f"head {head.id} has note event {head.data[f'{performance}_note_event_idx']}, but {performance} "
                f"has only {len(notes)}; the MuNG file and the features do not go together"
            ) from error
        box = (head.box.x0, head.box.y0, head.box.x1, head.box.y1)
        rows.append((head.id, int(event[1]), -1, -1, *box, onset_sec, onset_sec + float(event[2]), True))
    return np.array(rows, dtype=TRUTH_DTYPE)


def _staves_in(staves: Table, box: Box) -> Table:
    """Return the staves whose middles lie in the box of a system."""
    middle = (staves["y0"] + staves["y1"]) / 2
    inside = staves[(middle >= box.y0) & (middle < box.y1)]
    inside["page"], inside["system"], inside["staff"] = 0, 0, np.arange(len(inside))
    return np.asarray(inside)


def _system(box: Box, staves: Table) -> Table:
    system = np.zeros(1, SYSTEM_DTYPE)
    system["n_staves"] = len(staves)
    system["x0"], system["x1"] = box.x0, box.x1
    system["y0"] = staves["y0"].min() if len(staves) else box.y0
    system["y1"] = staves["y1"].max() if len(staves) else box.y1
    system["space_px"] = staves["space_px"].mean() if len(staves) else (box.y1 - box.y0) / _SYSTEM_SPACES
    return system
