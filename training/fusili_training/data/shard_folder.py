"""Reading the pairs of a folder of shards, local or at any URL that fsspec supports.

The JSON file of a shard says where each pair begins and how long it is, so a pair takes one read. For remote
shards, put ``simplecache::`` before the URL: fsspec then keeps a local copy of each shard.
"""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import fsspec
import numpy as np
import soundfile
from PIL import Image

from fusili_mir.arrays import Float32, GreyImage
from fusili_mir.boundary import printable, reading
from fusili_mir.errors import InputError
from fusili_mir.limits import check_limit, limit
from fusili_mir.untrusted_json import parse_json
from fusili_training.sound.played_clip import BANKS, play_clip
from fusili_training.truth import TruthArray, first_struck_sec, truth_from_json

__all__ = ["HeardClip", "Pair", "PairEntry", "ShardFolder"]

_FORMAT = 1
_MOST = 2**40  # bytes, pixels or seconds
_FORMER_SHAPES = {"strip": "staff_strips"}  # what older folders say, and the name today


@dataclass(frozen=True)
class PairEntry:
    """The place of a pair, the width of its image and the duration of its clip.

    `offset` and `size` are bytes of the shard; `mutant_of` is the key of the original.
    """

    key: str
    mutant_of: str | None
    shard: str
    offset: int
    size: int
    width_px: int = 0
    duration_sec: float = 0.0

    @property
    def piece(self) -> str:
        """Id of the piece."""
        return self.key.split(".")[0]

    @property
    def layout(self) -> str:
        """Layout of the piece."""
        return self.key.split(".")[1]

    @property
    def number(self) -> int:
        """Number of the segment in its rendering."""
        return int(self.key.split(".")[2])

    @property
    def rendering(self) -> str:
        """Piece and layout, which were engraved and performed together."""
        return ".".join(self.key.split(".")[:2])


@dataclass(frozen=True, eq=False)
class HeardClip:
    """The sound of a pair.

    Attributes
    ----------
    waveform : np.ndarray [shape=(samples,)], float32
    sample_rate_hz : int
    start_sec : float or None
        When it begins, in seconds of the performance of the whole piece; None in folders of older versions.
    first_sec : float
        When the first note of the pair is struck in it.
    """

    waveform: Float32
    sample_rate_hz: int
    start_sec: float | None
    first_sec: float = 0.0


@dataclass(frozen=True, eq=False)
class Pair:
    """One pair, decoded.

    Attributes
    ----------
    key : str
    mutant_of : str or None
    image : np.ndarray [shape=(S * strip_height_px, width)], uint8
        0 is ink, 255 is paper; S strips, one below the other.
    waveform : np.ndarray [shape=(samples,)], float32
    truth : np.ndarray of `TRUTH_DTYPE`
    strip_height_px, sample_rate_hz : int
    start_sec : float or None
        When the clip begins, as in `HeardClip`.
    own_sec : (float, float) or None
        From when to when in the waveform the segment itself is heard, of which the truth tells; None: throughout.
    """

    key: str
    mutant_of: str | None
    image: GreyImage
    waveform: Float32
    truth: TruthArray
    strip_height_px: int
    sample_rate_hz: int
    start_sec: float | None = None
    own_sec: tuple[float, float] | None = None


class ShardFolder:
    """The pairs of one split of a rendered corpus.

    Parameters
    ----------
    url : str or Path
        Folder written by `fusili_training.rendering.render.render_corpus`: a local path, or a URL for fsspec.
    split : str
    layout : str
        Only pairs of this layout; "": all.
    max_duration_sec : float
        Only pairs up to this duration; 0: all.
    """

    def __init__(
        self, url: str | Path, split: str = "train", layout: str = "", max_duration_sec: float = 0.0
    ) -> None:
        self.url = str(url).rstrip("/")
        self.manifest = self._read_json("manifest.json")
        if self.manifest.get("format") != _FORMAT:
            raise InputError(
                f"{self.url}: shards of format {self.manifest.get('format')!r}; expected {_FORMAT}"
            )
        with reading(self.url, "expected a folder written by fusili-mir render"):
            self.entries = self._list_entries(split)
        if not self.entries:
            raise InputError(f"{self.url}: no pairs for {split!r}; was that split rendered?")
        self._listed = self.entries
        self.entries = [
            entry
            for entry in self.entries
            if layout in ("", entry.layout) and not 0 < max_duration_sec < entry.duration_sec
        ]
        if not self.entries:
            wanted = [f"of the layout {layout!r}"] if layout else []
            wanted += [f"at most {max_duration_sec:g} s long"] if max_duration_sec else []
            raise InputError(f"{self.url}: none of the pairs for {split!r} is {' and '.join(wanted)}")

    def _list_entries(self, split: str) -> list[PairEntry]:
        shards = [shard["name"] for shard in self.manifest["splits"].get(split, {}).get("shards", [])]
        return [
            _checked(
                PairEntry(
                    sample["key"],
                    sample["mutant_of"],
                    shard,
                    sample["offset"],
                    sample["size"],
                    sample.get("width_px", 0),
                    sample.get("duration_sec", 0.0),
                )
            )
            for shard in shards
            for sample in self._read_json(shard.removesuffix(".tar") + ".json")["samples"]
        ]

    @property
    def segment(self) -> dict[str, Any]:
        """Options of the segments, see `fusili_training.rendering.render_recipe.SegmentOptions`."""
        options: dict[str, Any] = self.manifest["recipe"]["segment"]
        return options | {"shape": _FORMER_SHAPES.get(options["shape"], options["shape"])}

    @property
    def sample_rate_hz(self) -> int:
        """Sample rate of all clips."""
        return int(self.manifest["recipe"]["audio"]["sample_rate_hz"])

    def neighbours(self, place: int) -> tuple[PairEntry | None, PairEntry | None]:
        """Return the originals right before and after an entry in its rendering; None where there is none."""
        own = self.entries[place]

        def original(places: range, number: int) -> PairEntry | None:
            for other in (self.entries[p] for p in places):
                if other.rendering != own.rendering or abs(other.number - own.number) > 1:
                    return None
                if other.mutant_of is None and other.number == number:
                    return other
            return None

        before, after = range(place - 1, -1, -1), range(place + 1, len(self.entries))
        return original(before, own.number - 1), original(after, own.number + 1)

    def ends(self, place: int) -> tuple[bool, bool]:
        """Return whether an entry is the first and whether it is the last segment of its rendering."""
        own = self.entries[place]
        return own.number == 0, own.number == self._last_numbers[own.rendering]

    @cached_property
    def _last_numbers(self) -> dict[str, int]:
        """The number of the last segment of each rendering, whatever its layout or duration."""
        last: dict[str, int] = {}
        for entry in self._listed:
            last[entry.rendering] = max(last.get(entry.rendering, 0), entry.number)
        return last

    def read_clip(self, entry: PairEntry) -> HeardClip:
        """Read the sound of one pair."""
        with reading(f"{self.url}/{entry.shard}: the pair {entry.key}", "is the shard complete?"):
            members = self._members(entry)
            waveform, rate_hz = self._read_sound(members, entry)
            described = json.loads(members["json"])
            first_sec = first_struck_sec(truth_from_json(described["notes"]))
            return HeardClip(waveform, int(rate_hz), _start_of(described), first_sec)

    def _members(self, entry: PairEntry) -> dict[str, bytes]:
        """Return the files of a pair by their endings."""
        with fsspec.open(f"{self.url}/{entry.shard}", "rb") as file:
            file.seek(entry.offset)
            data = file.read(entry.size)
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            return {
                member.name.rpartition(".")[2]: archive.extractfile(member).read()  # type: ignore[union-attr]
                for member in archive
            }

    def read(self, entry: PairEntry) -> Pair:
        """Read one pair."""
        with reading(f"{self.url}/{entry.shard}: the pair {entry.key}", "is the shard complete?"):
            members = self._members(entry)
            described = json.loads(members["json"])
            with Image.open(io.BytesIO(members["png"])) as image:
                check_limit("pixels", image.width * image.height, entry.key)
                grey = np.asarray(image)
            waveform, rate_hz = self._read_sound(members, entry)
            return Pair(
                key=entry.key,
                mutant_of=entry.mutant_of,
                image=grey,
                waveform=waveform,
                truth=truth_from_json(described["notes"]),
                strip_height_px=int(described["strip_height_px"]),
                sample_rate_hz=int(rate_hz),
                start_sec=_start_of(described),
            )

    def _read_sound(self, members: dict[str, bytes], entry: PairEntry) -> tuple[Float32, int]:
        if "npz" in members:  # the played notes
            if "://" in self.url:
                raise InputError(f"{self.url}: clips are stored as notes; copy the folder to this machine")
            return play_clip(members["npz"], Path(self.url) / BANKS)
        sound = members["flac"] if "flac" in members else members["ogg"]
        with soundfile.SoundFile(io.BytesIO(sound)) as opened:
            check_limit("clip_samples", opened.frames * opened.channels, entry.key)
            return opened.read(dtype="float32"), opened.samplerate

    def _read_json(self, name: str) -> dict[str, Any]:
        expected = "expected a folder written by fusili-mir render"
        with reading(f"{self.url}/{name}", expected):
            with fsspec.open(f"{self.url}/{name}", "rb") as file:
                content = parse_json(file.read(int(limit("table_bytes"))), f"{self.url}/{name}", expected)
            if not isinstance(content, dict):
                raise InputError(f"{self.url}/{name}: no table; {expected}")
            return content


def _start_of(described: dict[str, Any]) -> float | None:
    start_sec = described.get("start_sec")
    return None if start_sec is None else float(start_sec)


def _checked(entry: PairEntry) -> PairEntry:
    """Return an entry whose values have the types and sizes that they should have."""
    is_typed = isinstance(entry.key, str) and isinstance(entry.mutant_of, str | None)
    numbers = (entry.offset, entry.size, entry.width_px, entry.duration_sec)
    if (
        not is_typed
        or entry.key.count(".") < 1
        or not all(isinstance(number, int | float) and 0 <= number < _MOST for number in numbers)
    ):
        raise InputError(f"the pair {printable(entry.key)} has values that no pair has; render it again")
    if ".." in PurePosixPath(entry.shard).parts or entry.shard.startswith("/"):
        raise InputError(f"the shard {printable(entry.shard)} lies outside its folder; refused")
    return entry
